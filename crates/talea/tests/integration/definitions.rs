//! Claims about names that are taken by another definition, and definitions that are refused.

use crate::support::metrics::{By, Users, difference, message_of, opts, register, registry};
use crate::support::pages::Circuit;
use talea::{
    Bucketing, Bytes, Combine, Count, Counter, Family, FloatCounter, Floats, Gauge, Histogram,
    LabelText, Labels, Opts, Seconds, StateSet, Unit, UpDownCounter,
};

/// Labels that each call names.
struct Free;

impl Labels for Free {
    type Static = Self;
    const NAMES: &'static [&'static str] = &["otel_metric_overflow"];
    fn write(&self, out: &mut LabelText) {
        out.label("any", "x");
    }
}

#[test]
fn a_name_that_another_definition_has_is_taken_and_the_error_says_how_they_differ() {
    let registry = registry();
    let times = |name, buckets: &[f64]| {
        registry.register::<Histogram<Seconds>>(opts(name).buckets(buckets))
    };
    register::<Gauge>(&registry, "gauge");
    times("time", &[0.1, 2.5]).unwrap();
    times("time", &[0.1, 2.5]).unwrap();
    times("unit", &[1.0, 2.0]).unwrap();
    registry.family::<Counter>(opts("labels"), &["a", "b"]).unwrap();
    register::<Family<Free, Gauge>>(&registry, "free");
    register::<StateSet<bool>>(&registry, "light");
    registry.register::<Counter>(Opts::new("help", "Ours.")).unwrap();
    register::<Counter>(&registry, "stored");
    let of_unit = opts("unit_seconds").buckets(&[1.0, 2.0]);
    let differences = [
        difference(registry.register::<Histogram<Count>>(opts("gauge"))),
        difference(registry.register::<StateSet<bool>>(opts("gauge"))),
        difference(registry.register::<Gauge>(opts("time_seconds"))),
        difference(registry.register::<Gauge>(opts("gauge").combine(Combine::Max))),
        difference(registry.register::<UpDownCounter>(opts("gauge"))),
        difference(times("time", &[0.1, 2.0])),
        difference(times("time", &[0.1])),
        difference(registry.register::<Histogram<Count>>(of_unit)),
        difference(registry.family::<Counter>(opts("labels"), &["b", "a"])),
        difference(registry.register::<Users<Gauge>>(opts("gauge"))),
        difference(registry.register::<Family<Free, Gauge>>(opts("gauge"))),
        difference(registry.register::<Gauge>(opts("free"))),
        difference(registry.register::<StateSet<Circuit>>(opts("light"))),
        difference(registry.register::<Counter>(Opts::new("help", "Theirs."))),
        difference(registry.register::<FloatCounter>(opts("stored"))),
        difference(registry.register::<Counter>(opts("stored").striped(false))),
    ];
    let expected = r#""gauge": it is already registered as a gauge, not as a histogram
"gauge": it is already registered as a gauge, not as a stateset
"time_seconds": it is already registered as a histogram, not as a gauge
"gauge": it is already registered with `combine` Latest, not with Max
"gauge": it is already registered with `combine` Latest, not with Sum
"time": it is already registered with the buckets [0.1, 2.5], not with [0.1, 2.0]
"time": it is already registered with the buckets [0.1, 2.5], not with [0.1]
"unit_seconds": it is already registered with a unit that is kept in 1000000000 parts, not with one in 1
"labels": it is already registered with the labels ["a", "b"], not with ["b", "a"]
"gauge": it is already registered with the labels [], not with ["user"]
"gauge": it is already registered with the labels [], not with a choice of labels by each call
"free": it is already registered with a choice of labels by each call, not with the labels []
"light": it is already registered with the states ["false", "true"], not with ["closed", "open"]
"help": it is already registered with the help "Ours.", not with "Theirs."
"stored": it is already registered with values of another kind: striped or not, whole numbers or not
"stored": it is already registered with values of another kind: striped or not, whole numbers or not"#;
    for (found, expected) in differences.iter().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(differences.len(), expected.lines().count());
    // Another unit makes another name, and the resulting storage is compared: a gauge is never striped.
    registry.register::<Histogram<Bytes>>(opts("unit").buckets(&[1.0, 2.0])).unwrap();
    registry.register::<Gauge>(opts("gauge").striped(true)).unwrap();
}

#[test]
fn a_name_with_other_native_buckets_is_taken() {
    let registry = registry();
    let time = |opts: Opts<'_>| registry.register::<Histogram<Seconds>>(opts);
    let opts = || opts("time").buckets(&[0.1]);
    time(opts()).unwrap();
    time(opts().schema(3).max_buckets(160).widest_zero(-0.0)).unwrap();
    let of = |layout| format!("native bucketing of schema {layout}");
    for (opts, found) in [
        (opts().schema(4), of("4, at most 160, with a zero up to 0")),
        (opts().max_buckets(20), of("3, at most 20, with a zero up to 0")),
        (opts().widest_zero(0.5), of("3, at most 160, with a zero up to 0.5")),
        (opts().bucketing(Bucketing::Classic), "no native bucketing".to_owned()),
    ] {
        let usual = of("3, at most 160, with a zero up to 0");
        let expected = format!("\"time\": it is already registered with {usual}, not with {found}");
        assert_eq!(difference(time(opts)), expected);
    }
    assert_eq!(
        difference(time(opts().bucketing(Bucketing::Native))),
        "\"time\": it is already registered with the buckets [0.1], not with []"
    );
}

#[test]
fn how_many_series_and_how_long_is_what_the_latest_says() {
    let registry = registry();
    let register = |limit| -> Users<Counter> { registry.register(opts("x").limit(limit)).unwrap() };
    let first = register(1);
    first.with(By { user: "a" }).inc();
    assert!(first.try_with(By { user: "b" }).is_err());
    register(2);
    assert!(first.try_with(By { user: "b" }).is_ok());
}

#[test]
fn a_refused_definition_changes_nothing() {
    let registry = registry();
    let x: Gauge = register(&registry, "x");
    x.set(3);
    let before = registry.snapshot().to_text();
    let _ = registry.register::<Histogram<Count>>(opts("x"));
    let _ = registry.register::<Counter>(opts("x"));
    assert_eq!(registry.snapshot().to_text(), before);
}

#[track_caller]
fn check_refused(opts: Opts<'_>, reason: &str) {
    let expected = format!("cannot register the metric \"x\": {reason}");
    assert_eq!(message_of(registry().register::<Histogram<Floats>>(opts)), expected);
    // Where there are none, nothing is asked of them.
    let classic = opts.bucketing(Bucketing::Classic);
    assert!(registry().register::<Histogram<Floats>>(classic).is_ok());
}

#[test]
fn native_buckets_that_cannot_be_are_refused() {
    for schema in [9, -5, i8::MIN, i8::MAX] {
        let reason = format!("its schema is {schema}; expected -4 to 8");
        check_refused(opts("x").schema(schema), &reason);
    }
    check_refused(
        opts("x").max_buckets(0),
        "its max_buckets is 0; expected at least 1, or Bucketing::Classic for no native buckets",
    );
    for (zero, shown) in [(f64::NAN, "NaN"), (-1.0, "-1"), (f64::INFINITY, "inf")] {
        let reason = format!("its widest zero is {shown}; expected a finite number of at least 0");
        check_refused(opts("x").widest_zero(zero), &reason);
    }
}

/// A unit of a program's own, of which a number follows the size.
#[derive(Clone, Copy)]
enum Parts<const N: i64> {}

impl<const N: i64> Unit for Parts<N> {
    type Value = u64;
    const SUFFIX: &'static str = "";
    const PER_UNIT: f64 = match N {
        0 => f64::NAN,
        n => 1000.0 / n as f64 - 1.0,
    };
    const BUCKETS: &'static [f64] = &[1e6];
    fn kept(value: u64) -> u64 {
        value
    }
}

#[test]
fn a_unit_without_size_is_refused_with_the_reason() {
    fn refused<const N: i64>(found: &str) {
        for bucketing in [Bucketing::Classic, Bucketing::Native, Bucketing::Dual] {
            let opts = opts("x").bucketing(bucketing);
            let message = message_of(registry().register::<Histogram<Parts<N>>>(opts));
            let reason = format!("the PER_UNIT of its unit is {found}; expected a finite number");
            assert!(message.contains(&reason), "{message}");
        }
    }
    refused::<0>("NaN");
    refused::<1000>("0");
    refused::<-1000>("-2");
    let registry = registry();
    registry.register::<Histogram<Parts<1>>>(opts("x")).unwrap().observe(999);
    assert_eq!(registry.snapshot().expect_histogram("x", &[]).sum(), 1.0);
}

#[test]
fn extreme_options_are_accepted() {
    for (schema, most, zero) in [(-4, 1, 0.0), (8, u32::MAX, f64::MAX), (0, 1, 5e-324)] {
        let opts = opts("x").schema(schema).max_buckets(most).widest_zero(zero);
        let floats: Histogram<Floats> = registry().register(opts).unwrap();
        floats.observe(f64::MAX);
    }
}

#[test]
fn thresholds_that_do_not_ascend_or_are_no_numbers_are_refused() {
    fn check<U: Unit>(thresholds: &[f64], expected: &str) {
        let opts = opts("x").buckets(thresholds);
        let message = message_of(registry().register::<Histogram<U>>(opts));
        let expected = format!("cannot register the metric \"x\": buckets are finite, {expected}");
        assert_eq!(message, expected, "{thresholds:?}");
    }
    let twice = "1 does not exceed the bucket before it";
    for (thresholds, fault) in [
        (&[][..], "found 0 buckets"),
        (&[1.0, 1.0], twice),
        (&[0.0, -0.0], "-0 does not exceed the bucket before it"),
        (&[2.0, -1.0], "-1 does not exceed the bucket before it"),
        (&[f64::NAN], "found NaN"),
        (&[1.0, f64::INFINITY], "found inf"),
    ] {
        check::<Floats>(thresholds, &format!("ascending and at most 1,024; {fault}"));
    }
    let large = format!("found {}", 1e300);
    for (thresholds, fault) in [
        (&[][..], "found 0 buckets"),
        (&[1.0, 1.0], twice),
        (&[0.0], "found 0"),
        (&[f64::NAN], "found NaN"),
        (&[f64::INFINITY], "found inf"),
        (&[1e300], &large),
    ] {
        let expected = format!("positive, ascending and at most 1,024; {fault}");
        check::<Seconds>(thresholds, &expected);
    }
}
