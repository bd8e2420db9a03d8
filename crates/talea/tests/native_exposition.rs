//! Claims about how native histograms are shown.

mod stage;

use std::time::Duration;

use stage::protobuf::{self, Buckets, Span};
use talea::{Bucketing, Escaping, Floats, Format, Histogram, Opts, Registry, Seconds, Things};

fn opts(bucketing: Bucketing) -> Opts<'static> {
    Opts::new("x", "Some.").bucketing(bucketing)
}

/// What is shown of a histogram of floats that was told these.
fn shown(opts: Opts<'_>, values: &[f64]) -> (Registry, Buckets) {
    let registry = Registry::for_test().unwrap();
    let histogram: Histogram<Floats> = registry.register(opts).unwrap();
    values.iter().for_each(|&x| histogram.observe(x));
    let buckets = protobuf::histogram(&registry.snapshot(), "x");
    (registry, buckets)
}

fn text(registry: &Registry, format: Format) -> String {
    let mut scraper = registry.scraper();
    scraper.format(format, Escaping::default());
    String::from_utf8(scraper.scrape().to_vec()).unwrap()
}

fn span(offset: i32, length: u32) -> Span {
    Span { offset, length }
}

#[test]
fn what_is_read_back_is_what_a_snapshot_has() {
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
            assert_eq!(
                (found.zero_count, found.zero_threshold),
                (native.zero_count(), 2_f64.powi(-128))
            );
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
fn buckets_below_1_have_negative_numbers() {
    let (_, found) = shown(opts(Bucketing::Native).schema(0), &[0.25, 0.125, -0.125]);
    assert_eq!((found.positive_span, found.positive_delta), (vec![span(-3, 2)], vec![1, 0]));
    assert_eq!((found.negative_span, found.negative_delta), (vec![span(-3, 1)], vec![1]));
}

#[test]
fn an_empty_native_histogram_is_one_by_a_span_of_nothing() {
    for bucketing in [Bucketing::Native, Bucketing::Dual] {
        let registry = Registry::for_test().unwrap();
        let things: Histogram<Things> = registry.register(opts(bucketing)).unwrap();
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
}

#[test]
fn a_classic_histogram_has_nothing_native() {
    let (_, found) = shown(opts(Bucketing::Classic), &[1.0, -1.0]);
    assert_eq!((found.schema, found.zero_count, found.count), (None, 0, 2));
    assert!(found.positive_span.is_empty() && found.positive_delta.is_empty());
}

#[test]
fn what_is_beyond_all_floats_is_behind_the_largest() {
    let values = [f64::MAX, f64::INFINITY, f64::MIN, f64::NEG_INFINITY];
    let (_, found) = shown(opts(Bucketing::Native), &values);
    assert_eq!(found.positive(), [(8192, 1), (8193, 1)]);
    assert_eq!(found.negative(), [(8192, 1), (8193, 1)]);
}

#[test]
fn exemplars_are_shown_with_native_buckets() {
    for bucketing in [Bucketing::Native, Bucketing::Dual] {
        let registry = Registry::for_test().unwrap();
        let opts = opts(bucketing).buckets(&[0.1, 1.0]);
        let times: Histogram<Seconds> = registry.register(opts).unwrap();
        for (n, millis) in [(0, 5), (1, 50), (2, 500), (3, 200_000)] {
            let labels = [("trace_id", ["a", "b", "c", "d"][n])];
            times.observe_with_exemplar(Duration::from_millis(millis), &labels).unwrap();
        }
        let found = protobuf::histogram(&registry.snapshot(), "x_seconds");
        let mut traces: Vec<_> =
            found.exemplars.iter().map(|e| (e.label[0].value.clone(), e.value)).collect();
        traces.sort_by(|one, other| one.1.total_cmp(&other.1));
        assert!(found.exemplars.iter().all(|exemplar| exemplar.time.is_some()));
        assert_eq!(traces.last().unwrap(), &("d".to_owned(), 200.0));
        let of_classic = found.bucket.iter().map(|bucket| bucket.exemplar.as_ref().unwrap().value);
        match bucketing {
            Bucketing::Native => assert_eq!(of_classic.collect::<Vec<_>>(), [200.0]),
            _ => assert_eq!(of_classic.collect::<Vec<_>>(), [0.05, 0.5, 200.0]),
        }
        let text = text(&registry, Format::OpenMetrics);
        assert!(text.contains("x_seconds_bucket{le=\"+Inf\"} 4 # {trace_id=\"d\"} 200 "), "{text}");
    }
}

#[test]
fn text_formats_show_the_count_and_the_sum_of_native_buckets() {
    let (registry, _) = shown(opts(Bucketing::Native), &[1.0, 2.5]);
    let expected = "x_bucket{le=\"+Inf\"} 2\nx_sum 3.5\nx_count 2\n";
    assert!(text(&registry, Format::Text).ends_with(expected));
    let told = text(&registry, Format::OpenMetrics);
    let expected = "x_bucket{le=\"+Inf\"} 2\nx_count 2\nx_sum 3.5\nx_created ";
    assert!(told.contains(expected), "{told}");
}

#[test]
fn openmetrics_has_a_sum_and_a_count_where_the_sum_can_but_grow() {
    let cases: [(&[f64], &[f64], bool); 6] = [
        (&[0.0, 1.0], &[1.0, 2.0], true),
        (&[-1.0, 1.0], &[1.0, 2.0], false),
        (&[1.0], &[1.0, f64::NAN], false),
        (&[1.0], &[-1.0], false),
        (&[1.0], &[1.0, f64::INFINITY], true),
        (&[1.0], &[], true),
    ];
    for (thresholds, values, expected) in cases {
        let (registry, _) = shown(opts(Bucketing::Dual).buckets(thresholds), values);
        let told = text(&registry, Format::OpenMetrics);
        for line in ["\nx_count ", "\nx_sum "] {
            assert_eq!(told.contains(line), expected, "{values:?}\n{told}");
        }
        let count = format!("x_bucket{{le=\"+Inf\"}} {}\n", values.len());
        assert!(told.contains(&count), "{told}");
        let told = text(&registry, Format::Text);
        assert!(told.contains("\nx_count ") && told.contains("\nx_sum "), "{told}");
    }
}

#[test]
fn every_format_shows_a_histogram_of_floats_as_its_readers_allow() {
    let values = [f64::NAN, f64::INFINITY, -3.0, 0.0, 1e-40, 2.0];
    for bucketing in [Bucketing::Classic, Bucketing::Native, Bucketing::Dual] {
        let (registry, _) = shown(opts(bucketing).buckets(&[-5.0, 0.0, 5.0]), &values);
        for format in [Format::Text, Format::OpenMetrics] {
            let syntax = match format {
                Format::Text => talea::parse::Syntax::Text,
                _ => talea::parse::Syntax::OpenMetrics,
            };
            let text = text(&registry, format);
            let found = talea::parse::check(&text, syntax);
            let errors: Vec<_> = found
                .iter()
                .filter(|told| told.severity == talea::parse::Severity::Violation)
                .collect();
            assert!(errors.is_empty(), "{errors:?}\n{text}");
        }
    }
}
