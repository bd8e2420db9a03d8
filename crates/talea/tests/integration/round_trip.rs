//! Written scrapes are read back: for registries of any names, help, labels and values, in both
//! text formats.
#![cfg(not(miri))]

use std::collections::BTreeSet;

use crate::support::descriptors::raise_limit;
use crate::support::metrics::registry;
use crate::support::pages::{TEXTS, assert_no_violation};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use talea::{
    Count, Counter, Escaping, FloatGauge, Floats, Format, Gauge, Histogram, Kind, Metric, Opts,
    Registry, Snapshot, Summary, Value,
};
use talea_parse::{FamilyRef, Syntax, families};

/// A text for a metric's name, a help or a label's value.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z_]{0,8}",
        4 => "[\\PC\\n\"\\\\{}=,# \u{0}\u{7f}\u{85}]{0,12}",
        1 => Just("\\n\\\"\n\"\\".to_owned()),
        1 => Just("💡\u{0}\r\t\u{2028}\r".to_owned()),
    ]
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-zA-Z][a-z0-9_]{0,9}z",
        1 => "[^\"\\\\\n_]{1,6}z",
    ]
}

fn any_float() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(-0.0),
        Just(f64::MAX),
        Just(f64::MIN),
        Just(f64::MIN_POSITIVE),
        Just(5e-324),
        any::<f64>(),
        (-1e6..1e6),
    ]
}

#[derive(Clone, Debug)]
enum Of {
    Counter(Vec<u64>),
    Gauge(Vec<i64>),
    Float(Vec<f64>),
    Histogram(Vec<Vec<u64>>),
    Summary(Vec<Vec<f64>>),
    /// A histogram of floats.
    Floats(Vec<Vec<f64>>),
}

fn any_values() -> impl Strategy<Value = Of> {
    prop_oneof![
        vec(any::<u64>(), 1..4).prop_map(Of::Counter),
        vec(any::<i64>(), 1..4).prop_map(Of::Gauge),
        vec(any_float(), 1..4).prop_map(Of::Float),
        vec(vec(0..10_000_000_u64, 0..5), 1..4).prop_map(Of::Histogram),
        vec(vec(any_float(), 0..5), 1..4).prop_map(Of::Summary),
        vec(vec(any_float(), 0..5), 1..4).prop_map(Of::Floats),
    ]
}

#[derive(Clone, Debug)]
pub(super) struct Planned {
    name: String,
    help: String,
    labels: Vec<String>,
    /// One text for each label of each series.
    texts: Vec<String>,
    of: Of,
}

pub(super) fn any_family() -> impl Strategy<Value = Planned> {
    (any_name(), any_text(), btree_set(any_name(), 1..4), vec(any_text(), 12), any_values())
        .prop_map(|(name, help, labels, texts, of)| Planned {
            name,
            // Blanks before a help are none of it in the older format.
            help: format!("H{help}"),
            labels: labels.into_iter().collect(),
            texts,
            of,
        })
}

/// Registers a family, unless it clashes with another, and gives each series its values.
fn fill<M: Metric, V>(
    registry: &Registry,
    opts: Opts<'_>,
    Planned { labels, texts, .. }: &Planned,
    values: &[V],
    update: impl Fn(&M, &V),
) {
    let Ok(family) = registry.family::<M>(opts, labels) else { return };
    for (n, value) in values.iter().enumerate() {
        // The first label distinguishes the series.
        let own = ["a", "b", "c", "d"][n];
        let others = (1..labels.len()).map(|label| texts[n * 3 + label].as_str());
        let texts: Vec<&str> = std::iter::once(own).chain(others).collect();
        update(&family.with_values(&texts), value);
    }
}

/// A registry of these, as far as they do not clash.
pub(super) fn filled(plan: &[Planned]) -> Registry {
    raise_limit();
    let registry = &registry();
    for planned in plan {
        let opts = Opts::new(&planned.name, &planned.help).utf8_names(true);
        match &planned.of {
            Of::Counter(all) => fill(registry, opts, planned, all, |it: &Counter, n| it.add(*n)),
            Of::Gauge(all) => fill(registry, opts, planned, all, |it: &Gauge, n| it.set(*n)),
            Of::Float(all) => fill(registry, opts, planned, all, |it: &FloatGauge, x| it.set(*x)),
            Of::Summary(all) => {
                let opts = opts.quantiles(&[0.0, 0.5, 0.999, 1.0]);
                fill(registry, opts, planned, all, |it: &Summary<Floats>, values| {
                    values.iter().for_each(|x| it.observe(*x));
                });
            }
            Of::Floats(all) => {
                fill(registry, opts, planned, all, |it: &Histogram<Floats>, values| {
                    values.iter().for_each(|x| it.observe(*x));
                })
            }
            Of::Histogram(all) => {
                fill(registry, opts, planned, all, |it: &Histogram<Count>, values| {
                    values.iter().for_each(|n| it.observe(*n));
                })
            }
        }
    }
    registry.clone()
}

/// A sample: its name, its labels, and its value in bits.
type Samples = BTreeSet<(String, Vec<(String, String)>, u64)>;

fn bits(x: f64) -> u64 {
    // The payload of a NaN does not come back.
    if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() }
}

/// The samples that a snapshot should be written as.
fn expected(snapshot: &Snapshot) -> Samples {
    let mut samples = Samples::new();
    for family in snapshot.families() {
        for series in family.series() {
            let labels = series.labels().into_iter();
            let labels: Vec<_> = labels.map(|(name, value)| (name.to_owned(), value)).collect();
            let mut insert = |ending: &str, own: Option<(&str, f64)>, value: f64| {
                let own = own.map(|(name, bound)| (name.to_owned(), format!("{bound:e}")));
                let labels = labels.iter().cloned().chain(own).collect();
                samples.insert((format!("{}{ending}", family.name()), labels, bits(value)));
            };
            match series.value() {
                Value::Unsigned(n) => insert("", None, n as f64),
                Value::Signed(n) => insert("", None, n as f64),
                Value::Float(x) => insert("", None, x),
                Value::Summary(summary) => {
                    insert("_sum", None, summary.sum);
                    insert("_count", None, summary.count as f64);
                    for (q, value) in summary.quantiles {
                        insert("", Some(("quantile", q)), value);
                    }
                }
                Value::Histogram(histogram) => {
                    insert("_sum", None, histogram.sum());
                    insert("_count", None, histogram.count() as f64);
                    for (bound, count) in histogram.cumulative() {
                        insert("_bucket", Some(("le", bound)), count as f64);
                    }
                }
            }
        }
    }
    samples
}

/// The samples that a reader finds in the text.
fn found(text: &str, syntax: Syntax) -> Samples {
    let families = families(text, syntax).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let samples = families.iter().flat_map(|family| &family.samples);
    samples
        .filter(|sample| !sample.name.ends_with("_created"))
        .map(|sample| {
            let labels = sample
                .labels
                .iter()
                .map(|(name, value): (std::borrow::Cow<'_, str>, std::borrow::Cow<'_, str>)| {
                    let is_bound =
                        name == "le" && sample.name.ends_with("_bucket") || name == "quantile";
                    let value = match is_bound {
                        true => format!("{:e}", value.parse::<f64>().unwrap()),
                        false => value.into_owned(),
                    };
                    (name.into_owned(), value)
                })
                .collect();
            (sample.name.to_string(), labels, bits(sample.value))
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn both_text_formats_say_what_the_snapshot_does(plan in vec(any_family(), 0..6)) {
        let registry = filled(&plan);
        let snapshot = registry.snapshot();
        let all = expected(&snapshot);
        for (format, syntax) in TEXTS {
            let bytes: Vec<u8> =
                snapshot.chunks(format, Escaping::AllowUtf8, 1 << 12).flatten().collect();
            let text = String::from_utf8(bytes).unwrap();
            prop_assert_eq!(Syntax::of_text(&text), syntax, "{}", text);
            prop_assert_eq!(&found(&text, syntax), &all, "{}", text);
            let read = families(&text, syntax).unwrap();
            for family in snapshot.families().filter(|f| f.series().next().is_some()) {
                let name = match (format, family.kind()) {
                    (Format::OpenMetrics, Kind::Counter) => {
                        family.name().strip_suffix("_total").unwrap()
                    }
                    _ => family.name(),
                };
                // One that OpenMetrics' types cannot hold is there as several.
                let read = read.iter().find(|read: &&FamilyRef<'_>| {
                    let ending = read.name.strip_prefix(name);
                    ending.is_some_and(|ending| ["", "_bucket"].contains(&ending))
                });
                let help = read.and_then(|read| read.help.as_deref());
                prop_assert_eq!(help, Some(family.help()), "{}", text);
            }
            assert_no_violation(&text, syntax);
        }
    }
}
