//! Gauges: what is made of what processes set. Here one process is all there is;
//! `processes.rs` has several.

use talea::{
    Bytes, Combine, Counter, Family, FloatCounter, FloatGauge, Gauge, Histogram, Info, Labels,
    Opts, StateSet, UpDownCounter, Value,
};

use crate::support::metrics::{By, OVERFLOW, Users, alone, opts, reason, registry};

const ALL: [Combine; 5] =
    [Combine::Latest, Combine::Sum, Combine::Max, Combine::Min, Combine::Each];

#[derive(Labels)]
struct Pid<'a> {
    pid: &'a str,
}

fn depth(combine: Combine) -> Opts<'static> {
    opts("depth").combine(combine)
}

/// The labels of a value that belongs to this process.
fn own(combine: Combine, pid: &str) -> Vec<(&'static str, &str)> {
    if combine == Combine::Each { vec![("pid", pid)] } else { vec![] }
}

/// Whether a process that set nothing has no value.
fn is_silent(combine: Combine) -> bool {
    matches!(combine, Combine::Max | Combine::Min | Combine::Each)
}

#[test]
fn however_gauges_combine_one_process_shows_what_it_set() {
    let pid = std::process::id().to_string();
    for combine in ALL {
        let (registry, gauge) = alone::<Gauge>(depth(combine));
        let shown = || registry.snapshot().value("depth", &own(combine, &pid));
        assert_eq!(shown(), (!is_silent(combine)).then_some(0.0), "{combine:?}");
        for value in [7, 0, -3, i64::MAX, i64::MIN + 1] {
            gauge.set(value);
            assert_eq!((gauge.get(), shown()), (value, Some(value as f64)), "{combine:?}");
        }
        gauge.set(-1);
        assert_eq!(gauge.add(5), 4);
        gauge.inc();
        gauge.dec();
        gauge.set_max(2);
        gauge.set_min(3);
        assert_eq!((gauge.get(), shown()), (3, Some(3.0)), "{combine:?}");
        let snapshot = registry.snapshot();
        let series: Vec<_> = snapshot.select("depth", &[]).map(|series| series.value()).collect();
        assert_eq!(series, [Value::Signed(3)]);
    }
}

#[test]
fn the_first_bound_that_a_process_gives_is_its_value() {
    let pid = std::process::id().to_string();
    for combine in [Combine::Max, Combine::Min, Combine::Each] {
        for value in [12, 0, -3] {
            let (registry, gauge) = alone::<Gauge>(depth(combine));
            let other: FloatGauge = registry.register(opts("other").combine(combine)).unwrap();
            let shown = |name| registry.snapshot().value(name, &own(combine, &pid));
            gauge.set_min(value);
            other.set_max(value as f64);
            assert_eq!(shown("depth"), Some(value as f64), "{combine:?}");
            assert_eq!(shown("other"), Some(value as f64), "{combine:?}");
            gauge.set_min(value + 1);
            other.set_max(value as f64 - 1.0);
            assert_eq!((gauge.get(), other.get()), (value, value as f64), "{combine:?}");
            other.set(-1.0);
            other.set_max(-0.0);
            assert_eq!((other.get(), shown("other")), (0.0, Some(0.0)), "{combine:?}");
        }
    }
    // The others are 0 before that.
    for combine in [Combine::Latest, Combine::Sum] {
        let (registry, gauge) = alone::<Gauge>(depth(combine));
        gauge.set_min(12);
        gauge.set_max(-3);
        assert_eq!(registry.snapshot().value("depth", &[]), Some(0.0), "{combine:?}");
    }
}

#[test]
fn a_bound_takes_the_place_of_a_value_that_is_no_number() {
    let (_registry, gauge) = alone::<FloatGauge>(opts("depth"));
    for bound in [FloatGauge::set_max, FloatGauge::set_min] {
        gauge.set(f64::NAN);
        bound(&gauge, f64::NAN);
        assert!(gauge.get().is_nan());
        bound(&gauge, 2.0);
        bound(&gauge, f64::NAN);
        assert_eq!(gauge.get(), 2.0);
    }
}

#[test]
fn however_float_gauges_combine_one_process_shows_what_it_set() {
    let pid = std::process::id().to_string();
    for combine in ALL {
        let (registry, gauge) = alone::<FloatGauge>(depth(combine));
        let shown = || registry.snapshot().value("depth", &own(combine, &pid));
        for value in [0.5, 0.0, -0.0, -1e300, f64::INFINITY, f64::NEG_INFINITY] {
            gauge.set(value);
            assert_eq!((gauge.get(), shown()), (value, Some(value)), "{combine:?}");
        }
        gauge.set(f64::NAN);
        assert!(shown().is_some_and(f64::is_nan), "{combine:?}");
        gauge.set(0.5);
        gauge.add(-2.0);
        assert_eq!((gauge.get(), shown()), (-1.5, Some(-1.5)), "{combine:?}");
    }
}

#[test]
fn the_smallest_integer_is_kept_as_its_neighbour_only_where_silence_is_known() {
    for combine in ALL {
        let (_registry, gauge) = alone::<Gauge>(depth(combine));
        gauge.set(i64::MIN);
        assert_eq!(gauge.get(), i64::MIN + i64::from(is_silent(combine)), "{combine:?}");
    }
}

#[test]
fn each_process_has_a_series_behind_its_labels() {
    let (registry, depths) = alone::<Users<Gauge>>(depth(Combine::Each).limit(1));
    depths.with(By { user: "in" }).set(3);
    let pid = std::process::id();
    let expected =
        format!("# HELP depth Some.\n# TYPE depth gauge\ndepth{{user=\"in\",pid=\"{pid}\"}} 3\n");
    assert_eq!(registry.snapshot().to_text(), expected);
    depths.with(By { user: "out" }).set(4);
    let labels = [OVERFLOW[0], ("pid", &pid.to_string())];
    assert_eq!(registry.snapshot().value("depth", &labels), Some(4.0));
}

#[test]
fn the_label_pid_is_ours_where_each_process_has_a_series() {
    let registry = registry();
    let family =
        |combine| registry.register::<Family<Pid<'static>, Gauge>>(opts("x").combine(combine));
    assert_eq!(
        reason(family(Combine::Each)),
        "its label \"pid\" cannot be used: a gauge of which each process has its own gets this \
         label from us"
    );
    family(Combine::Max).unwrap().with(Pid { pid: "7" }).set(1);
    assert_eq!(registry.snapshot().value("x", &[("pid", "7")]), Some(1.0));
}

#[test]
fn only_gauges_can_be_combined_otherwise() {
    let registry = registry();
    let opts = opts("x").combine(Combine::Max);
    let message = [
        reason(registry.register::<Counter>(opts)),
        reason(registry.register::<FloatCounter>(opts)),
        reason(registry.register::<Histogram<Bytes>>(opts)),
        reason(registry.register::<UpDownCounter>(opts)),
        reason(registry.register::<StateSet<bool>>(opts)),
        reason(registry.register::<Info<By<'static>>>(opts)),
        reason(registry.family::<Counter>(opts, &["a"])),
        reason(registry.observable_counter(opts, || 0.0)),
    ];
    for message in message {
        assert_eq!(
            message,
            "`combine` is Max, and only a `Gauge` or a `FloatGauge` can be combined otherwise \
             than its type says; leave it out"
        );
    }
    assert_eq!(registry.snapshot().families().len(), 0, "nothing is left of them");
}
