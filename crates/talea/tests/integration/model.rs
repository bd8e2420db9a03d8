//! Claims about pages in the types of talea-page: a snapshot gives the same families directly and by way
//! of each format.
#![cfg(not(miri))]

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use talea::model::{Family, Histogram as Buckets, Kind, Label, Series, Value};
use talea::{
    Bucketing, Count, Floats, Format, Histogram, Page, Registry, Scrapable, Scraper, Seconds,
    Summary,
};

use super::round_trip::{any_family, filled};
use crate::support::metrics::{alone, opts, registry};
use crate::support::model::{as_shown_by, assert_protobuf_agrees, assert_same, both_ways};
use crate::support::pages::{Several, gauge, one_of_each};

/// Checks that all ways of filling a page agree.
fn assert_ways_agree<S: Scrapable>(of: &S) {
    assert_protobuf_agrees(of);
    let [direct, read] = both_ways(of, Format::Text);
    assert_same(read, as_shown_by(Format::Text, direct), "text");
    let [mut direct, mut read] = both_ways(of, Format::OpenMetrics);
    // A histogram or a summary that OpenMetrics' type cannot hold is there as several families.
    direct.retain(|family| {
        let is_typed = read.iter().any(|it| (&it.name, it.kind) == (&family.name, family.kind));
        let is_held = is_typed || !matches!(family.kind, Kind::Histogram | Kind::Summary);
        assert!(is_held || family.series.iter().any(is_below_zero), "{family:#?}");
        is_held
    });
    read.retain(|family| family.kind != Kind::Unknown);
    assert_same(read, as_shown_by(Format::OpenMetrics, direct), "OpenMetrics");
}

/// Whether a series has something below zero, or a sum that is no number.
fn is_below_zero(series: &Series) -> bool {
    match &series.value {
        Value::Number(_) => false,
        Value::Histogram(histogram) => {
            let has_negative = histogram.native.as_ref().is_some_and(|it| !it.negative.is_empty());
            // A histogram without native buckets hides what was below zero once.
            histogram.sum < 0.0
                || histogram.sum.is_nan()
                || has_negative
                || histogram.native.is_none()
        }
        Value::Summary(_) => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn all_ways_of_filling_a_page_agree_for_any_families(plan in vec(any_family(), 0..6)) {
        assert_ways_agree(&filled(&plan));
    }
}

/// A histogram with exemplars, of values that are far apart.
fn buckets(bucketing: Bucketing) -> Registry {
    let opts = opts("x").bucketing(bucketing).buckets(&[0.0, 2.0, 1e9]);
    let (registry, histogram) = alone::<Histogram<Floats>>(opts);
    [0.0, 1.0, 1.5, 1e-200, 1e200, f64::INFINITY].iter().for_each(|x| histogram.observe(*x));
    histogram.observe_with_exemplar(3.0, &[("trace_id", "a")]).unwrap();
    histogram.observe_with_exemplar(1e100, &[("trace_id", "b")]).unwrap();
    registry
}

fn with_threshold_below_zero() -> Registry {
    let (registry, histogram) = alone::<Histogram<Floats>>(opts("x").buckets(&[-1.0, 1.0]));
    [-3.0, 0.0, 9.0].iter().for_each(|x| histogram.observe(*x));
    registry
}

fn with_constant_labels() -> Registry {
    let registry = one_of_each(2);
    registry.set_constant_labels(&[("zone", "a"), ("tier", "b\"\\")]).unwrap();
    registry
}

#[test]
fn all_ways_of_filling_a_page_agree_for_each_kind_of_value() {
    for (of, registry) in [
        ("each kind, exemplars, overflow", one_of_each(5)),
        ("classic", buckets(Bucketing::Classic)),
        ("native", buckets(Bucketing::Native)),
        ("dual", buckets(Bucketing::Dual)),
        ("a threshold below zero", with_threshold_below_zero()),
        ("constant labels", with_constant_labels()),
        ("no family", registry()),
        ("a summary without an observation", alone::<Summary<Count>>(opts("s")).0),
        ("a histogram without an observation", alone::<Histogram<Seconds>>(opts("h")).0),
    ] {
        println!("{of}");
        assert_ways_agree(&registry);
    }
}

#[test]
fn a_joined_page_has_each_series_with_the_label_of_its_part_and_all_types() {
    let parts = [("a", one_of_each(1)), ("b", one_of_each(2)), ("c", gauge("wait_seconds", 7))];
    let several = Several::by("user", parts);
    assert_protobuf_agrees(&several);
    let mut scraper = Scraper::new(&several);
    let families: Vec<_> = scraper.families().collect();
    let kinds: Vec<Kind> =
        families.iter().filter(|it| it.name == "wait_seconds").map(|it| it.kind).collect();
    assert_eq!(kinds, [Kind::Gauge, Kind::Histogram]);
    let calls = family(&families, "calls_total");
    let labels: Vec<&[Label]> = calls.series.iter().map(|series| &*series.labels).collect();
    assert!(labels.contains(&&[Label::new("user", "b"), Label::new("exported_user", "bob")][..]));
    assert_eq!(Page::new().to_families(), []);
}

#[test]
fn a_family_has_what_a_snapshot_knows() {
    let families = one_of_each(3).snapshot().to_families();
    for (name, kind, unit, help) in [
        ("calls_total", Kind::Counter, "", "Some."),
        ("fill_ratio", Kind::Gauge, "ratio", "Some."),
        ("wait_seconds", Kind::Histogram, "seconds", "Some."),
        ("size", Kind::Summary, "", "Some."),
        ("build_info", Kind::Info, "", "Some."),
        ("circuit", Kind::StateSet, "", "Some."),
    ] {
        let found = family(&families, name);
        assert_eq!((found.kind, &*found.unit, &*found.help), (kind, unit, help), "{name}");
        let counts = matches!(kind, Kind::Counter | Kind::Histogram | Kind::Summary);
        assert!(found.series.iter().all(|it| it.created.is_some() == counts), "{name}");
    }
    let mut calls = family(&families, "calls_total").series.iter();
    assert!(calls.any(|series| series.label("otel_metric_overflow") == Some("true")));
    let states = &family(&families, "circuit").series;
    let states: Vec<_> = states
        .iter()
        .map(|it| (it.label("circuit").unwrap(), it.value.number().unwrap()))
        .collect();
    assert_eq!(states, [("closed", 1.0), ("open", 0.0)]);
}

#[test]
fn a_dual_histogram_has_both_views_of_its_observations() {
    let opts = opts("x").bucketing(Bucketing::Dual).buckets(&[0.5]).schema(0);
    let (registry, histogram) = alone::<Histogram<Seconds>>(opts);
    histogram.observe(Duration::from_millis(250));
    histogram.observe(Duration::from_secs(3));
    let families = registry.snapshot().to_families();
    let found: &Buckets = families[0].series[0].value.histogram().unwrap();
    let classic: Vec<_> =
        found.classic.iter().map(|it| (it.upper_bound, it.cumulative_count)).collect();
    assert_eq!((found.count, found.sum), (2, 3.25));
    assert_eq!(classic, [(0.5, 1), (f64::INFINITY, 2)]);
    // (0.125, 0.25] and (2, 4].
    assert_eq!(found.native.as_ref().unwrap().positive, [(-2, 1), (2, 1)]);
}

fn family<'a>(families: &'a [Family], name: &str) -> &'a Family {
    families.iter().find(|family| family.name == name).expect("the family is there")
}
