//! Claims about how native histograms are shown.

use std::time::Duration;

use crate::support::metrics::{self, registry};
use crate::support::pages::{TEXTS, alone, assert_no_violation};
use crate::support::protobuf::{self, Buckets, Span};
use talea::{Bucketing, Count, Floats, Format, Histogram, Opts, Registry, Seconds};

fn opts(bucketing: Bucketing) -> Opts<'static> {
    metrics::opts("x").bucketing(bucketing)
}

/// The snapshot of a histogram of floats that observed these.
fn shown(opts: Opts<'_>, values: &[f64]) -> (Registry, Buckets) {
    let (registry, histogram) = metrics::alone::<Histogram<Floats>>(opts);
    values.iter().for_each(|&x| histogram.observe(x));
    let buckets = protobuf::histogram(&registry.snapshot(), "x");
    (registry, buckets)
}

fn span(offset: i32, length: u32) -> Span {
    Span { offset, length }
}

#[test]
fn samples_that_are_read_back_are_those_of_the_snapshot() {
    let values: Vec<f64> = (0..400)
        .map(|n| f64::from(n * n % 97 - 40) * 2_f64.powi(n % 30 - 20))
        .chain([f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, f64::MAX, 1e-300])
        .collect();
    for bucketing in [Bucketing::Native, Bucketing::Dual] {
        for schema in [-4, 0, 3, 8] {
            let opts =
                opts(bucketing).schema(schema).max_buckets(99_999).buckets(&[-1.0, 0.0, 9.0]);
            let (registry, found) = shown(opts, &values);
            let snapshot = registry.snapshot().histogram("x", &[]).unwrap();
            let native = snapshot.native().unwrap();
            assert_eq!(found.schema, Some(i32::from(schema)));
            assert_eq!(
                (found.positive(), found.negative()),
                (native.positive().to_vec(), native.negative().to_vec())
            );
            let zero = (native.zero_count(), 2_f64.powi(-128));
            assert_eq!((found.zero_count, found.zero_threshold), zero);
            assert_eq!((found.count, found.in_native()), (407, 406), "NaN is in none");
            assert!(found.sum.is_nan() && found.created.is_some());
            let classic: Vec<_> =
                found.bucket.iter().map(|b| (b.upper_bound, b.cumulative)).collect();
            let mut expected: Vec<_> = snapshot.cumulative().collect();
            assert_eq!(expected.pop(), Some((f64::INFINITY, 407)));
            assert_eq!(classic, expected);
            assert_eq!(classic.len(), if bucketing == Bucketing::Dual { 3 } else { 0 });
        }
    }
}

#[test]
fn spans_bridge_two_empty_buckets_and_no_more() {
    // Of schema 0: (1, 2], (2, 4], then 1, 2 and 3 empty ones.
    let values = [2.0, 4.0, 4.0, 16.0, 128.0, 2048.0, 2048.0, 2048.0];
    let negative: Vec<f64> = values.iter().map(|x| -x).collect();
    for (values, side) in [(&values[..], 1), (&negative[..], -1)] {
        let (_, found) = shown(opts(Bucketing::Native).schema(0), values);
        let (spans, deltas, others) = match side {
            1 => (found.positive_span, found.positive_delta, found.negative_span),
            _ => (found.negative_span, found.negative_delta, found.positive_span),
        };
        assert_eq!(spans, [span(1, 7), span(3, 1)]);
        assert_eq!(deltas, [1, 1, -2, 1, -1, 0, 1, 2]);
        assert_eq!(others, []);
    }
}

#[test]
fn numbers_of_buckets_are_negative_below_1_and_beyond_all_floats_follow_the_largest() {
    let (_, found) = shown(opts(Bucketing::Native).schema(0), &[0.25, 0.125, -0.125]);
    assert_eq!((found.positive_span, found.positive_delta), (vec![span(-3, 2)], vec![1, 0]));
    assert_eq!((found.negative_span, found.negative_delta), (vec![span(-3, 1)], vec![1]));
    let values = [f64::MAX, f64::INFINITY, f64::MIN, f64::NEG_INFINITY];
    let (_, found) = shown(opts(Bucketing::Native), &values);
    assert_eq!([found.positive(), found.negative()], [[(8192, 1), (8193, 1)]; 2]);
}

#[test]
fn an_empty_native_histogram_is_one_by_a_span_of_nothing_and_a_classic_one_has_none() {
    for bucketing in [Bucketing::Native, Bucketing::Dual] {
        let (registry, things) = metrics::alone::<Histogram<Count>>(opts(bucketing));
        let found = || protobuf::histogram(&registry.snapshot(), "x");
        assert_eq!(found().positive_span, [span(0, 0)]);
        assert_eq!((found().schema, found().count), (Some(3), 0));
        // By this too, for scrapers that look for it.
        assert_eq!(found().zero_threshold, 2f64.powi(-128));
        things.observe(0);
        assert_eq!(found().positive_span, [span(0, 0)], "zero is in no bucket");
        assert_eq!((found().zero_count, found().count), (1, 1));
        things.observe(1);
        assert_eq!(found().positive_span, [span(0, 1)]);
    }
    let (_, found) = shown(opts(Bucketing::Classic), &[1.0, -1.0]);
    assert_eq!((found.schema, found.zero_count, found.count), (None, 0, 2));
    assert!(found.positive_span.is_empty() && found.positive_delta.is_empty());
}

#[test]
fn exemplars_are_shown_with_native_buckets() {
    for bucketing in [Bucketing::Native, Bucketing::Dual] {
        let opts = opts(bucketing).buckets(&[0.1, 1.0]);
        let (registry, times) = metrics::alone::<Histogram<Seconds>>(opts);
        for (n, millis) in [(0, 5), (1, 50), (2, 500), (3, 200_000)] {
            let labels = [("trace_id", ["a", "b", "c", "d"][n])];
            times.observe_with_exemplar(Duration::from_millis(millis), &labels).unwrap();
        }
        let found = protobuf::histogram(&registry.snapshot(), "x_seconds");
        let traces = found.exemplars.iter().map(|e| (e.label[0].value.as_str(), e.value));
        let last = traces.max_by(|one, other| one.1.total_cmp(&other.1));
        assert!(found.exemplars.iter().all(|exemplar| exemplar.time.is_some()));
        assert_eq!(last, Some(("d", 200.0)));
        let of_classic = found.bucket.iter().map(|bucket| bucket.exemplar.as_ref().unwrap().value);
        let expected =
            if bucketing == Bucketing::Native { &[200.0][..] } else { &[0.05, 0.5, 200.0] };
        assert_eq!(of_classic.collect::<Vec<_>>(), expected);
        let text = alone(&registry, Format::OpenMetrics);
        assert!(text.contains("x_seconds_bucket{le=\"+Inf\"} 4 # {trace_id=\"d\"} 200 "), "{text}");
    }
}

#[test]
fn text_formats_show_the_count_and_the_sum_of_native_buckets() {
    let (registry, _) = shown(opts(Bucketing::Native), &[1.0, 2.5]);
    let expected = "x_bucket{le=\"+Inf\"} 2\nx_sum 3.5\nx_count 2\n";
    assert!(alone(&registry, Format::Text).ends_with(expected));
    let page = alone(&registry, Format::OpenMetrics);
    let expected = "x_bucket{le=\"+Inf\"} 2\nx_count 2\nx_sum 3.5\nx_created ";
    assert!(page.contains(expected), "{page}");
}

/// The names of the samples of a page of OpenMetrics, in its order, each once.
fn sample_names(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut names: Vec<_> = lines.filter_map(|line| line.split(['{', ' ']).next()).collect();
    names.dedup();
    names
}

#[test]
fn a_histogram_has_a_sum_and_a_count_in_openmetrics_whatever_was_observed() {
    let all = ["x_bucket", "x_count", "x_sum", "x_created"];
    let of_no_type = "# TYPE x_bucket unknown\n";
    let cases: [(&[f64], &[f64], &str); 8] = [
        (&[0.0, 1.0], &[1.0, 2.0], "# TYPE x histogram\n"),
        (&[1.0], &[1.0, f64::INFINITY], "# TYPE x histogram\n"),
        (&[1.0], &[], "# TYPE x histogram\n"),
        // Its type can hold neither of these.
        (&[1.0], &[1.0, f64::NAN], of_no_type),
        (&[1.0], &[f64::NEG_INFINITY], of_no_type),
        (&[1.0], &[-1.0], of_no_type),
        // A sum that is above zero again: the type stays as it is.
        (&[0.0, 1.0], &[-1.0, 5.0], of_no_type),
        (&[], &[-1.0], of_no_type),
    ];
    for bucketing in [Bucketing::Dual, Bucketing::Classic] {
        for (thresholds, values, kind) in cases {
            // Without native buckets it is forgotten that something was below zero.
            if bucketing == Bucketing::Classic && (thresholds.is_empty() || values == [-1.0, 5.0]) {
                continue;
            }
            let opts = match thresholds {
                [] => opts(Bucketing::Native),
                thresholds => opts(bucketing).buckets(thresholds),
            };
            let (registry, _) = shown(opts, values);
            let page = alone(&registry, Format::OpenMetrics);
            assert_eq!(sample_names(&page), all, "{values:?}\n{page}");
            assert!(page.contains(kind), "{values:?}\n{page}");
            // As many as in the text format.
            let snapshot = registry.snapshot().histogram("x", &[]).unwrap();
            let count = format!("\nx_count {}\n", values.len());
            let sum = match snapshot.sum() {
                x if x.is_infinite() => format!("\nx_sum {x:+}\n").replace("inf", "Inf"),
                x => format!("\nx_sum {x}\n"),
            };
            let whole = format!("x_bucket{{le=\"+Inf\"}} {}\n", values.len());
            for page in [page, alone(&registry, Format::Text)] {
                for line in [&count, &sum, &whole] {
                    assert!(page.contains(line), "{line}{values:?}\n{page}");
                }
            }
        }
        // With a threshold below zero it has neither, also while the sum is above it.
        for values in [&[][..], &[1.0], &[-1.0], &[f64::NAN]] {
            let (registry, _) = shown(opts(bucketing).buckets(&[-1.0, 1.0]), values);
            let page = alone(&registry, Format::OpenMetrics);
            assert!(page.contains("# TYPE x histogram\n"), "{page}");
            assert_eq!(sample_names(&page), ["x_bucket", "x_created"], "{page}");
        }
    }
}

#[test]
fn a_family_has_one_type_for_all_of_its_series() {
    let registry = registry();
    let opts = metrics::opts("x").buckets(&[0.0, 1.0]);
    let family = registry.family::<Histogram<Floats>>(opts, &["n"]).unwrap();
    let (one, two) = (family.with_values(&["1"]), family.with_values(&["2"]));
    one.observe(0.5);
    two.observe_with_exemplar(0.5, &[("trace_id", "beef")]).unwrap();
    let page = alone(&registry, Format::OpenMetrics);
    assert!(page.contains("# TYPE x histogram\n") && page.contains("beef"), "{page}");
    one.observe(-2.5);
    let page = alone(&registry, Format::OpenMetrics);
    let expected = "\
        # TYPE x_bucket unknown\n# HELP x_bucket Some.\n\
        x_bucket{n=\"1\",le=\"0.0\"} 1\nx_bucket{n=\"1\",le=\"1.0\"} 2\nx_bucket{n=\"1\",le=\"+Inf\"} 2\n\
        x_bucket{n=\"2\",le=\"0.0\"} 0\nx_bucket{n=\"2\",le=\"1.0\"} 1\nx_bucket{n=\"2\",le=\"+Inf\"} 1\n\
        # TYPE x_count unknown\n# HELP x_count Some.\nx_count{n=\"1\"} 2\nx_count{n=\"2\"} 1\n\
        # TYPE x_sum unknown\n# HELP x_sum Some.\nx_sum{n=\"1\"} -2\nx_sum{n=\"2\"} 0.5\n\
        # TYPE x_created unknown\n# HELP x_created Some.\nx_created{n=\"1\"} ";
    assert!(page.starts_with(expected), "{page}");
}

#[test]
fn every_format_shows_a_histogram_of_floats_as_its_readers_allow() {
    let values = [f64::NAN, f64::INFINITY, -3.0, 0.0, 1e-40, 2.0];
    for bucketing in [Bucketing::Classic, Bucketing::Native, Bucketing::Dual] {
        let (registry, _) = shown(opts(bucketing).buckets(&[-5.0, 0.0, 5.0]), &values);
        for (format, syntax) in TEXTS {
            assert_no_violation(&alone(&registry, format), syntax);
        }
    }
}
