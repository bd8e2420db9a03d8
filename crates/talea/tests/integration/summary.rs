//! Claims about summaries and their windows, by a clock that the test moves.

use std::time::Duration;

use crate::support::metrics::{self, By, Users, alone, message_of, opts, register, registry};
use crate::support::pages::{alone as page, assert_no_violation};
use talea::{
    Bucketing, Count, Counter, Escaping, Floats, Format, Histogram, Kind, Opts, Registry, Seconds,
    Snapshot, Summary, Value, Windows,
};
use talea_parse::Syntax;

/// A reader of a registry with windows of its own.
struct Reader {
    registry: Registry,
    windows: Windows,
}

impl Reader {
    fn of(registry: &Registry) -> Self {
        Self { registry: registry.clone(), windows: Windows::new() }
    }

    fn at(&mut self, seconds: u64) -> Snapshot {
        let mut snapshot = self.registry.snapshot();
        self.windows.show(&mut snapshot, Duration::from_secs(seconds));
        snapshot
    }

    /// The median of the summary `s`.
    fn median(&mut self, seconds: u64) -> f64 {
        self.at(seconds).value("s", &[("quantile", "0.5")]).unwrap()
    }
}

fn summary() -> (Registry, Summary<Count>, Reader) {
    let (registry, summary) = alone(fine(opts("s").quantiles(&[0.5])));
    let reader = Reader::of(&registry);
    (registry, summary, reader)
}

/// With buckets as narrow as there are.
fn fine(opts: Opts<'_>) -> Opts<'_> {
    opts.schema(8).max_buckets(10_000)
}

/// Whether a value is about another, within the error of schema 8.
fn is_about(found: f64, expected: f64) -> bool {
    (found / expected - 1.0).abs() < 0.0014
}

#[test]
fn quantiles_are_of_the_last_ten_minutes() {
    let (_registry, summary, mut reader) = summary();
    assert!(reader.median(0).is_nan(), "an empty window has no median");
    (0..10).for_each(|_| summary.observe(1000));
    assert!(is_about(reader.median(5), 1000.0), "what is new shows at once");
    assert!(is_about(reader.median(100), 1000.0));
    (0..100).for_each(|_| summary.observe(7));
    assert!(is_about(reader.median(400), 7.0));
    assert!(is_about(reader.median(720), 7.0), "the first have left");
    // They were noted at 100 seconds, up to ten seconds after they came.
    assert!(is_about(reader.median(990), 7.0));
    assert!(reader.median(1011).is_nan(), "all have left");
    summary.observe(3);
    assert!(is_about(reader.median(1012), 3.0));
}

#[test]
fn observations_leave_the_window_in_steps_of_ten_seconds() {
    let (_registry, summary, mut reader) = summary();
    reader.at(0);
    // One observation a second, as large as the second.
    let mut earliest = Vec::new();
    for second in 1..2000 {
        summary.observe(second);
        let snapshot = reader.at(second);
        let median = snapshot.value("s", &[("quantile", "0.5")]).unwrap();
        // Half-way between the second that the window begins at and now.
        earliest.push(2.0 * median - second as f64);
    }
    for (second, earliest) in (1..2000).zip(earliest) {
        let begin = (second as f64 - 600.0).max(0.0);
        let slack = 11.0 + 0.0028 * second as f64;
        assert!((begin - slack..begin + slack).contains(&earliest), "{second}: {earliest}");
    }
}

#[test]
fn a_series_is_idle_for_hours_and_shows_what_comes_then() {
    let (_registry, summary, mut reader) = summary();
    for second in (0..4 * 3600).step_by(10) {
        if second < 100 {
            summary.observe(50);
        }
        let median = reader.median(second);
        assert_eq!(median.is_nan(), second >= 690, "{second}: {median}");
    }
    summary.observe(9);
    assert!(is_about(reader.median(4 * 3600 + 1), 9.0));
}

#[test]
fn time_that_jumps_ahead_empties_the_window_and_time_that_goes_back_stands_still() {
    let (_registry, summary, mut reader) = summary();
    reader.at(0);
    summary.observe(5);
    reader.at(10);
    // Observations of an interval without a look came at some time within it.
    summary.observe(8);
    assert!(is_about(reader.median(100_000), 8.0));
    assert!(is_about(reader.median(3), 8.0));
    summary.observe(8);
    assert!(is_about(reader.median(100_000), 8.0));
    assert!(is_about(reader.median(200_000), 8.0), "it came after the last step");
    assert!(reader.median(300_000).is_nan());
    assert!(reader.median(0).is_nan());
}

#[test]
fn two_readers_do_not_disturb_each_other_and_neither_does_one_that_scrapes_often() {
    let (registry, summary, mut often) = summary();
    let mut seldom = Reader::of(&registry);
    let mut differ = 0;
    for second in 0..1500 {
        summary.observe(second + 1);
        let shown = [often.median(second), often.median(second)];
        assert_eq!(shown[0], shown[1], "a second scrape changes nothing");
        if second % 15 == 0 {
            let seldom = seldom.median(second);
            // Their steps end at other times, fifteen seconds apart at most.
            let differ_by = (shown[0] - seldom).abs();
            assert!(differ_by <= 8.0 + 0.0014 * seldom, "{second} {shown:?} {seldom}");
            differ += 1;
        }
    }
    assert_eq!(differ, 100);
}

#[test]
fn a_summary_that_is_wiped_or_removed_begins_anew() {
    let registry = registry();
    let opts = fine(opts("s").quantiles(&[0.5]));
    let family = registry.family::<Summary<Count>>(opts, &["x"]).unwrap();
    let mut reader = Reader::of(&registry);
    let labels = [("x", "a"), ("quantile", "0.5")];
    let mut median = |at| reader.at(at).value("s", &labels);
    for round in 0..5 {
        let at = round * 100;
        (0..3).for_each(|_| family.with_values(&["a"]).observe(700));
        assert!(is_about(median(at).unwrap(), 700.0));
        let begins_anew = match round % 2 {
            0 => family.wipe(),
            _ => family.remove_values(&["a"]),
        };
        assert!(begins_anew);
        assert_eq!(median(at + 1), None);
        family.with_values(&["a"]).observe(20);
        assert!(is_about(median(at + 2).unwrap(), 20.0), "{round}");
        family.remove_values(&["a"]);
    }
}

#[test]
fn a_window_may_be_shorter_and_quantiles_any_set() {
    let opts = opts("s").quantiles(&[0.0, 0.1, 0.999, 1.0]).window(Duration::from_secs(60));
    let (registry, summary) = alone::<Summary<Seconds>>(fine(opts));
    let mut reader = Reader::of(&registry);
    reader.at(0);
    (1..=1000).for_each(|ms| summary.observe(Duration::from_millis(ms)));
    let snapshot = reader.at(1);
    let series = snapshot.family("s_seconds").unwrap().series().next().unwrap();
    let Value::Summary(shown) = series.value() else { panic!("{series:?}") };
    for ((q, found), exact) in shown.quantiles.iter().zip([0.001, 0.1, 0.999, 1.0]) {
        assert!(is_about(*found, exact), "{q}: {found}");
    }
    assert_eq!((shown.count, shown.sum), (1000, 500.5));
    let late = reader.at(62).value("s_seconds", &[("quantile", "1")]).unwrap();
    assert!(late.is_nan(), "{late}");
}

#[test]
fn a_registry_keeps_windows_of_its_own() {
    let (registry, summary, _) = summary();
    (0..9).for_each(|_| summary.observe(40));
    let median = |snapshot: &Snapshot| snapshot.value("s", &[("quantile", "0.5")]).unwrap();
    assert!(is_about(median(&registry.snapshot()), 40.0));
    let mut scraper = registry.scraper();
    for _ in 0..3 {
        assert!(is_about(median(scraper.snapshot()), 40.0));
    }
    assert!(is_about(median(&registry.snapshot_of(|name| name == "s")), 40.0));
    assert_eq!(registry.snapshot().family("s").unwrap().kind(), Kind::Summary);
}

#[test]
fn formats_show_quantiles_sum_and_count() {
    let (registry, prices) = alone::<Users<Summary<Floats>>>(opts("price").quantiles(&[0.5, 1.0]));
    prices.with(By { user: "a" }).observe(0.0);
    drop(prices.with(By { user: "b" }));
    let snapshot = registry.snapshot();
    let expected = "# HELP price Some.\n# TYPE price summary\n\
        price{user=\"a\",quantile=\"0.5\"} 0\nprice{user=\"a\",quantile=\"1.0\"} 0\n\
        price_sum{user=\"a\"} 0\nprice_count{user=\"a\"} 1\n\
        price{user=\"b\",quantile=\"0.5\"} NaN\nprice{user=\"b\",quantile=\"1.0\"} NaN\n\
        price_sum{user=\"b\"} 0\nprice_count{user=\"b\"} 0\n";
    assert_eq!(snapshot.to_text(), expected);
    let all = snapshot.chunks(Format::OpenMetrics, Escaping::default(), usize::MAX);
    let text = String::from_utf8(all.flatten().collect()).unwrap();
    let lines = text.lines().filter(|line| !line.contains("_created")).take(6);
    let expected = "# TYPE price summary\n# HELP price Some.\n\
        price{user=\"a\",quantile=\"0.5\"} 0\nprice{user=\"a\",quantile=\"1.0\"} 0\n\
        price_count{user=\"a\"} 1\nprice_sum{user=\"a\"} 0";
    assert_eq!(lines.collect::<Vec<_>>().join("\n"), expected);
}

#[test]
fn a_histogram_may_show_its_quantiles_beside_itself() {
    let (registry, pricing) =
        alone::<Users<Histogram<Seconds>>>(opts("pricing").quantiles(&[0.5, 0.99]));
    register::<Histogram<Count>>(&registry, "other").observe(3);
    (1..=100).for_each(|ms| {
        pricing.with(By { user: "a" }).observe(Duration::from_millis(ms));
    });
    for snapshot in [registry.snapshot(), registry.scraper().snapshot().clone()] {
        let names: Vec<_> = snapshot.families().map(|family| family.name()).collect();
        assert_eq!(names, ["other", "pricing_recent_seconds", "pricing_seconds"]);
        let labels = [("user", "a"), ("quantile", "0.99")];
        let p99 = snapshot.value("pricing_recent_seconds", &labels).unwrap();
        assert!((p99 / 0.099 - 1.0).abs() < 0.0434, "{p99}");
        let histogram = snapshot.histogram("pricing_seconds", &[]).unwrap();
        let summary = snapshot.histogram("pricing_recent_seconds", &[]).unwrap();
        assert_eq!((histogram.count(), summary.count()), (100, 100));
        let text = snapshot.to_text();
        assert!(text.contains("pricing_recent_seconds_count{user=\"a\"} 100\n"), "{text}");
        assert!(text.contains("pricing_seconds_bucket{user=\"a\",le=\"+Inf\"} 100\n"), "{text}");
    }
    // Each is found by its name.
    for name in ["pricing_seconds", "pricing_recent_seconds"] {
        let snapshot = registry.snapshot_of(|wanted| wanted == name);
        let names: Vec<_> = snapshot.families().map(|family| family.name()).collect();
        assert_eq!(names, [name]);
    }
    // A family that has that name stays.
    register::<Histogram<Seconds>>(&registry, "pricing_recent");
    let kind = registry.snapshot().family("pricing_recent_seconds").unwrap().kind();
    assert_eq!(kind, Kind::Histogram);
}

#[test]
fn a_family_with_a_name_of_the_quantiles_of_a_histogram_is_shown_without_them() {
    // In OpenMetrics the counter is called as the summary is, and its own samples end in these.
    for counter in ["a_recent_seconds", "a_recent_seconds_sum", "a_recent_seconds_count"] {
        let (registry, _) = alone::<Histogram<Seconds>>(opts("a").quantiles(&[0.5]));
        let _: Counter = registry.register(opts(counter)).unwrap();
        let names = [&format!("{counter}_total"), "a_seconds"];
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.families().map(|family| family.name()).collect::<Vec<_>>(), names);
        assert_no_violation(&page(&registry, Format::OpenMetrics), Syntax::OpenMetrics);
        // The quantiles come once it has ended.
        assert!(registry.unregister(names[0]));
        assert!(registry.snapshot().family("a_recent_seconds").is_some());
    }
}

#[test]
fn options_that_a_summary_cannot_have_are_refused_with_the_reason() {
    let registry = registry();
    let opts = opts("s");
    let of = |quantiles| registry.register::<Summary<Seconds>>(opts.quantiles(quantiles));
    for quantiles in [&[1.1][..], &[-0.1], &[f64::NAN], &[0.5, 0.5], &[0.9, 0.5]] {
        let message = message_of(of(quantiles));
        assert!(message.contains("from 0 to 1, ascending"), "{message}");
    }
    for window in [Duration::ZERO, Duration::from_millis(1500), Duration::MAX] {
        let message = message_of(registry.register::<Summary<Seconds>>(opts.window(window)));
        assert!(message.contains("whole seconds, 1 to 4294967295"), "{message}");
    }
    let classic = opts.quantiles(&[0.1]).bucketing(Bucketing::Classic);
    let classic = message_of(registry.register::<Histogram<Seconds>>(classic));
    registry.register::<Summary<Seconds>>(opts).unwrap();
    let labelled = registry.family::<Summary<Count>>(metrics::opts("x"), &["quantile"]);
    for (message, parts) in [
        (classic, ["classic alone", ""]),
        (message_of(of(&[0.1])), ["the quantiles", "0.1"]),
        (
            message_of(registry.register::<Histogram<Seconds>>(opts)),
            ["registered as a summary", ""],
        ),
        (message_of(labelled), ["write this label themselves", ""]),
    ] {
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
}
