//! All families, and the series of one of them.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;

use super::feed::{Feed, Latest};
use super::point::Number;
use super::query::{Selection, TimeRange};
use super::range::replay;
use crate::live::{KnownRegions, is_of_marks, region_of};
use talea_page::{Exemplar, Family, Kind, Label, Series, Value};

/// The most series of a family that are shown.
const MOST_SERIES: usize = 100;
/// The most exemplars of a family that are shown.
const MOST_EXEMPLARS: usize = 50;
/// The most series of a family that are followed, and of which the latest values are kept.
const MOST_READ: usize = 1_000;
const MOST_KEPT: usize = 10_000;

/// A family, as a list has it.
#[derive(Debug, Serialize)]
pub(super) struct FamilyFacts<'a> {
    name: Cow<'a, str>,
    kind: &'static str,
    help: &'a str,
    series: usize,
    labels: Vec<String>,
    /// Whether it is a histogram with native buckets alone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    native: bool,
}

/// The families of the latest page, by name.
pub(super) fn families<'a>(latest: &'a Latest, wanted: &Selection) -> Vec<FamilyFacts<'a>> {
    let of_page = latest.families.iter().flat_map(|family| shown(family, wanted));
    // A family that no region uses yet has no series.
    let has_series = |it: &FamilyFacts<'_>| it.series > 0 || *wanted == Selection::default();
    let mut all: Vec<FamilyFacts<'_>> = of_page.map(facts).filter(has_series).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

fn facts(family: Shown<'_>) -> FamilyFacts<'_> {
    let mut labels: Vec<String> = Vec::new();
    for pair in family.values.iter().flat_map(|(labels, _)| &**labels) {
        if !labels.contains(&pair.name) {
            labels.push(pair.name.clone());
        }
    }
    FamilyFacts {
        name: family.name,
        kind: family.kind,
        help: family.help,
        series: family.values.len(),
        labels,
        native: family.is_native,
    }
}

/// A family as numbers, one for each of its label sets.
struct Shown<'a> {
    name: Cow<'a, str>,
    kind: &'static str,
    help: &'a str,
    /// Whether increases are shown rather than values.
    only_grows: bool,
    is_native: bool,
    values: Vec<(Cow<'a, [Label]>, f64)>,
}

/// The families that are shown of one: of a histogram, how much was observed; of a summary, its quantiles, and as
/// counters its observations and their sum, as Prometheus stores them.
fn shown<'a>(family: &'a Family, wanted: &Selection) -> Vec<Shown<'a>> {
    let all = family.series.iter().filter(|series| wanted.has(&series.labels));
    let of = |ending: &str, kind, only_grows, values| Shown {
        name: if ending.is_empty() {
            Cow::Borrowed(&*family.name)
        } else {
            Cow::Owned(format!("{}{ending}", family.name))
        },
        kind,
        help: &family.help,
        only_grows,
        is_native: is_native(family),
        values,
    };
    if family.kind != Kind::Summary {
        let values = all.filter_map(value).collect();
        return vec![of("", kind(family.kind), family.kind.only_grows(), values)];
    }
    let (mut quantiles, mut counts, mut sums) = (Vec::new(), Vec::new(), Vec::new());
    for series in all {
        let Some(summary) = series.value.summary() else { continue };
        let labels = Cow::Borrowed(&series.labels[..]);
        counts.push((labels.clone(), summary.count as f64));
        sums.push((labels, summary.sum));
        for found in &summary.quantiles {
            let mut labels = series.labels.clone();
            labels.push(Label::new("quantile", found.quantile.to_string()));
            quantiles.push((Cow::Owned(labels), found.value));
        }
    }
    let quantiles = of("", "summary", false, quantiles);
    vec![quantiles, of("_count", "counter", true, counts), of("_sum", "counter", true, sums)]
}

/// Whether Prometheus has a family's buckets only as a native histogram.
fn is_native(family: &Family) -> bool {
    let mut histograms = family.series.iter().filter_map(|series| series.value.histogram());
    histograms.next().is_some_and(|first| first.native.is_some() && !first.has_classic())
}

/// Whether the families that are shown of one may include that of a name.
fn may_show(family: &str, name: &str) -> bool {
    let rest = name.strip_prefix(family);
    rest.is_some_and(|rest| matches!(rest, "" | "_count" | "_sum"))
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "counter",
        Kind::Gauge | Kind::Info | Kind::StateSet => "gauge",
        Kind::Histogram => "histogram",
        Kind::Summary => "summary",
        Kind::GaugeHistogram | Kind::Unknown => "untyped",
    }
}

fn value(series: &Series) -> Option<(Cow<'_, [Label]>, f64)> {
    let value = match &series.value {
        Value::Number(number) => number.value,
        Value::Histogram(histogram) => histogram.count as f64,
        Value::Summary(_) => return None,
    };
    Some((Cow::Borrowed(&series.labels), value))
}

/// How much a series grew; one that fell began anew from 0. Counts that its region had when it came to the page are no
/// increase; a region that was made since the page before counts from 0.
fn grown(last: Option<f64>, now: f64, labels: &[Label], regions: &KnownRegions) -> f64 {
    let region = region_of(labels);
    if regions.old.have(region) {
        return 0.0;
    }
    let before = last.filter(|_| !regions.new.have(region)).unwrap_or(0.0);
    if now < before { now } else { now - before }
}

/// A number for a series, which is the same in any answer, and exact in a browser.
fn number_of(labels: &[Label]) -> u64 {
    let mut hasher = DefaultHasher::new();
    labels.hash(&mut hasher);
    hasher.finish() >> 11
}

fn pairs(labels: &[Label]) -> Vec<(String, String)> {
    labels.iter().map(|pair| (pair.name.clone(), pair.value.clone())).collect()
}

/// The past of a family's series.
#[derive(Debug, Serialize)]
pub(super) struct SeriesRange {
    family: String,
    kind: &'static str,
    /// Seconds.
    bin: i64,
    /// When bins ended, in milliseconds since 1970, and the seconds that they are of.
    times: Vec<i64>,
    lengths: Vec<Number>,
    /// How many series are left out.
    more: usize,
    series: Vec<SeriesValues>,
}

#[derive(Debug, Serialize)]
struct SeriesValues {
    id: u64,
    labels: Vec<(String, String)>,
    values: Vec<Option<Number>>,
}

/// An exemplar of a series.
#[derive(Debug, Serialize)]
pub(super) struct ExemplarFacts {
    labels: Vec<(String, String)>,
    exemplar: Vec<(String, String)>,
    value: Number,
    /// In milliseconds since 1970.
    t: Option<i64>,
}

/// The latest exemplars of a family.
pub(super) fn exemplars(latest: &Latest, name: &str, wanted: &Selection) -> Vec<ExemplarFacts> {
    let of_name = latest.families.iter().filter(|family| family.name == name);
    let series = of_name.flat_map(|family| &family.series).filter(|it| wanted.has(&it.labels));
    let mut all: Vec<(&Series, &Exemplar)> =
        series.flat_map(|series| series.exemplars().map(move |it| (series, it))).collect();
    all.sort_by_key(|(_, exemplar)| Reverse(exemplar.time));
    all.truncate(MOST_EXEMPLARS);
    let facts = all.into_iter().map(|(series, Exemplar { labels, value, time })| {
        let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        ExemplarFacts {
            labels: pairs(&series.labels),
            exemplar: pairs(labels),
            value: Number(*value),
            t: since.and_then(|since| i64::try_from(since.as_millis()).ok()),
        }
    });
    facts.collect()
}

/// A series in the making.
#[derive(Debug, Default)]
struct Line {
    labels: Vec<Label>,
    /// By the number of its bin.
    values: BTreeMap<usize, f64>,
    last: Option<f64>,
}

impl SeriesRange {
    pub(super) fn of(feed: &Feed, name: &str, wanted: &Selection, span: TimeRange) -> Self {
        let stretch = feed.between(span.from, span.to);
        let mut lines: BTreeMap<u64, Line> = BTreeMap::new();
        // The number, the end and the length of each bin.
        let (mut bins, mut found): (Vec<(i64, i64, f64)>, _) = (Vec::new(), "untyped");
        let (mut last_after, mut regions) = (None, KnownRegions::default());
        replay(
            &stretch,
            span,
            |family| may_show(family, name) || is_of_marks(family),
            |tick, families| {
                let time = tick.time.unix_millis;
                regions = KnownRegions::of(&families, time, Some(&regions));
                let passed =
                    last_after.replace(tick.after).map(|last| tick.after.saturating_sub(last));
                if let Some(passed) = passed.filter(|_| time >= span.from) {
                    let (number, seconds) = (span.bin_of(time), passed.as_secs_f64());
                    match bins.last_mut().filter(|last| last.0 == number) {
                        Some(last) => (last.1, last.2) = (time, last.2 + seconds),
                        None => bins.push((number, time, seconds)),
                    }
                }
                let bin = bins.len().checked_sub(1);
                let all = families.iter().flat_map(|family| shown(family, wanted));
                for family in all.filter(|it| it.name == name) {
                    found = family.kind;
                    for (labels, value) in &family.values {
                        let line = lines.entry(number_of(labels)).or_default();
                        line.add(labels, *value, family.only_grows, &regions, passed.and(bin));
                    }
                }
            },
        );
        let mut lines: Vec<(u64, Line)> =
            lines.into_iter().filter(|it| !it.1.values.is_empty()).collect();
        lines.sort_by(|one, other| other.1.size().total_cmp(&one.1.size()));
        let more = lines.len().saturating_sub(MOST_SERIES);
        lines.truncate(MOST_SERIES);
        // A wall clock that was set back shows times again.
        let mut order: Vec<usize> = (0..bins.len()).collect();
        order.sort_by_key(|bin| bins[*bin].1);
        let series = lines.into_iter().map(|(id, line)| line.series(id, &order)).collect();
        Self {
            family: name.to_owned(),
            kind: found,
            bin: span.bin / 1000,
            times: order.iter().map(|bin| bins[*bin].1).collect(),
            lengths: order.iter().map(|bin| Number(bins[*bin].2)).collect(),
            more,
            series,
        }
    }
}

impl Line {
    /// Adds a value in a bin.
    fn add(
        &mut self,
        labels: &[Label],
        now: f64,
        only_grows: bool,
        regions: &KnownRegions,
        bin: Option<usize>,
    ) {
        if self.labels.is_empty() {
            self.labels = labels.to_vec();
        }
        let last = self.last.replace(now);
        let Some(bin) = bin else { return };
        if only_grows {
            *self.values.entry(bin).or_default() += grown(last, now, labels, regions);
        } else {
            self.values.insert(bin, now);
        }
    }

    fn size(&self) -> f64 {
        self.values.values().filter(|value| !value.is_nan()).map(|value| value.abs()).sum()
    }

    fn series(&self, id: u64, bins: &[usize]) -> SeriesValues {
        SeriesValues {
            id,
            labels: pairs(&self.labels),
            values: bins.iter().map(|bin| self.values.get(bin).map(|it| Number(*it))).collect(),
        }
    }
}

/// A family's series as they change, for one browser.
#[derive(Debug)]
pub(super) struct Follower {
    family: String,
    wanted: Selection,
    only_grows: bool,
    last: BTreeMap<u64, f64>,
    began: bool,
    regions: KnownRegions,
    /// When they were read, by the clock that is never set.
    at: Duration,
}

/// The changes that a follower found: the series that are new, and the values that changed.
#[derive(Debug)]
pub(super) struct News {
    pub(super) series: Vec<NewSeries>,
    pub(super) values: Values,
}

#[derive(Debug, Serialize)]
pub(super) struct NewSeries {
    id: u64,
    labels: Vec<(String, String)>,
}

#[derive(Debug, Serialize)]
pub(super) struct Values {
    #[serde(rename = "t")]
    unix_millis: i64,
    #[serde(rename = "s")]
    seconds: Number,
    #[serde(rename = "v")]
    values: Vec<(u64, Number)>,
}

impl Follower {
    pub(super) fn new(family: String, wanted: Selection) -> Self {
        let (last, regions) = (BTreeMap::new(), KnownRegions::default());
        Self { family, wanted, only_grows: false, last, began: false, regions, at: Duration::ZERO }
    }

    /// The changes since the page before. Increases of series that only grow; values of others, NaN once they are
    /// missing. Those of the first page are no increases.
    pub(super) fn next(&mut self, latest: &Latest) -> News {
        let (mut series, mut values) = (Vec::new(), Vec::new());
        self.regions = KnownRegions::of(&latest.families, latest.unix_millis, Some(&self.regions));
        // Series that only grow count on while they are missing.
        let mut now = BTreeMap::new();
        if self.only_grows && self.last.len() <= MOST_KEPT {
            now.clone_from(&self.last);
        }
        for family in latest.families.iter().filter(|it| may_show(&it.name, &self.family)) {
            for family in shown(family, &self.wanted).iter().filter(|it| it.name == self.family) {
                self.only_grows = family.only_grows;
                // The others are left out; their number is known from the list.
                for (labels, value) in family.values.iter().take(MOST_READ) {
                    let id = number_of(labels);
                    let last = self.last.get(&id).copied();
                    now.insert(id, *value);
                    if last.is_none() {
                        series.push(NewSeries { id, labels: pairs(labels) });
                    }
                    let (change, is_news) = if self.only_grows {
                        let grown = grown(last, *value, labels, &self.regions);
                        (grown, self.began && grown != 0.0)
                    } else {
                        (*value, last != Some(*value))
                    };
                    if is_news {
                        values.push((id, Number(change)));
                    }
                }
            }
        }
        if !self.only_grows {
            let missing = self.last.keys().filter(|id| !now.contains_key(id));
            values.extend(missing.map(|id| (*id, Number(f64::NAN))));
        }
        let passed = latest.steady.saturating_sub(self.at);
        let seconds = if self.began { passed.as_secs_f64() } else { 0.0 };
        (self.last, self.began, self.at) = (now, true, latest.steady);
        let values = Values { unix_millis: latest.unix_millis, seconds: Number(seconds), values };
        News { series, values }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::live::{CREATED, UP};
    use crate::page::range::Range;
    use crate::page::range::tests::feed;
    use talea_view::families::pages::{self, counter, gauge, requests};

    fn latest(second: u64, unix_millis: i64, page: &str) -> Latest {
        let families = Arc::new(pages::read(page));
        Latest { unix_millis, steady: Duration::from_secs(second), families }
    }

    #[test]
    fn a_wall_clock_that_is_set_changes_no_rate() {
        let mut follower = Follower::new("orders_total".to_owned(), Selection::default());
        for (second, unix_millis, length) in
            [(5, 5_000, "0"), (6, 3_606_000, "1"), (8, 8_000, "2"), (9, 9_000, "1")]
        {
            let latest = latest(second, unix_millis, &counter("orders_total", &[("", second)]));
            let Values { seconds, .. } = follower.next(&latest).values;
            assert_eq!(serde_json::to_string(&seconds).unwrap(), length, "{second}");
        }
    }

    #[test]
    fn the_past_is_in_the_order_of_a_wall_clock_that_was_set_back() {
        let page = |count: u64| requests(&[("method=\"GET\",route=\"/a\"", count)]);
        let seconds = (0u64..).zip([100, 101, 3_702, 3_703, 104, 105]);
        let feed = feed(seconds.map(|(steady, second)| (second, steady, page(steady * steady))));
        let span = TimeRange { from: 100_001, to: 4_000_000, bin: 1_000 };
        let range = serde_json::to_value(Range::of(&feed, span)).unwrap();
        let points = range["points"].as_array().unwrap().iter();
        let points: Vec<_> = points.map(|it| (&it["t"], &it["e"][0][1])).collect();
        let series =
            SeriesRange::of(&feed, "http_request_duration_seconds", &Selection::default(), span);
        let series = serde_json::to_value(series).unwrap();
        let [times, values] = [&series["times"], &series["series"][0]["values"]];
        let pairs = times.as_array().unwrap().iter().zip(values.as_array().unwrap());
        assert_eq!(points, pairs.collect::<Vec<_>>());
        assert_eq!(times, &serde_json::json!([101_000, 104_000, 105_000, 3_702_000, 3_703_000]));
        assert_eq!(values, &serde_json::json!([1, 7, 9, 3, 5]));
    }

    #[test]
    fn what_a_series_had_when_its_region_was_found_is_no_increase() {
        let mut follower = Follower::new("orders_total".to_owned(), Selection::default());
        let of = |created: u32, count: u32| {
            gauge(CREATED, &[("region=\"shop\"", created)])
                + &counter("orders_total", &[("", count)])
        };
        for (created, expected) in [(50, vec![7.0]), (101, vec![1_000.0, 7.0])] {
            let mut grown = Vec::new();
            for (second, page) in
                [(100, String::new()), (101, of(created, 1_000)), (102, of(created, 1_007))]
            {
                let latest = latest(second, second as i64 * 1000, &page);
                grown.extend(follower.next(&latest).values.values.into_iter().map(|it| it.1.0));
            }
            assert_eq!(grown, expected);
        }
    }

    #[test]
    fn a_label_with_the_name_of_a_new_region_makes_no_increase() {
        let mut follower = Follower::new("orders_total".to_owned(), Selection::default());
        let orders = counter("orders_total", &[("region=\"web\",upstream=\"api\"", 5_000)]);
        let web = ("region=\"web\"", 50);
        for created in [&[web][..], &[web, ("region=\"api\"", 101)]] {
            let page = gauge(CREATED, created) + &orders;
            let values = follower.next(&latest(102, 100_000, &page)).values.values;
            assert!(values.is_empty(), "{values:?}");
        }
    }

    #[test]
    fn a_series_of_a_region_that_could_not_be_read_counts_on_from_what_it_had() {
        let mut follower = Follower::new("orders_total".to_owned(), Selection::default());
        let unreadable = &gauge(UP, &[("", 0)]);
        let of = |count| counter("orders_total", &[("", count)]);
        let mut grown = Vec::new();
        for page in [&of(1_000), unreadable, unreadable, &of(1_007)] {
            let latest = latest(0, 0, page);
            grown.extend(follower.next(&latest).values.values.into_iter().map(|it| it.1.0));
        }
        assert_eq!(grown, [7.0]);
    }

    #[test]
    fn a_gauge_that_is_missing_or_no_number_has_no_value() {
        let mut follower = Follower::new("level".to_owned(), Selection::default());
        let of = |value| gauge("level", &[("", value)]);
        let mut next = |page: &str| {
            let values = follower.next(&latest(0, 0, page)).values.values;
            serde_json::to_string(&values.iter().map(|it| it.1).collect::<Vec<_>>()).unwrap()
        };
        assert_eq!(next(""), "[]");
        for (value, expected) in [("0", "[0]"), ("2", "[2]"), ("2", "[]"), ("NaN", "[null]")] {
            assert_eq!(next(&of(value)), expected);
        }
        assert_eq!([next(&of("2")), next(""), next("")], ["[2]", "[null]", "[]"]);
    }

    #[test]
    fn a_value_that_is_no_number_makes_no_series_the_largest() {
        let size = |values: [f64; 2]| {
            let values = (0..).zip(values).collect();
            Line { values, ..Line::default() }.size()
        };
        assert_eq!(size([f64::NAN, -2.0]), 2.0);
        assert_eq!(size([f64::NEG_INFINITY, 1.0]), f64::INFINITY);
    }

    #[test]
    fn a_summary_is_shown_as_its_quantiles_and_as_counters_of_its_observations_and_their_sum() {
        let page = |count: u64| {
            format!(
                "# TYPE gc_seconds summary\ngc_seconds{{quantile=\"0.5\"}} 0.25\n\
                 gc_seconds_sum {}\ngc_seconds_count {count}\n",
                count * 2
            )
        };
        let latest = [10, 13].map(|count| latest(count, 0, &page(count)));
        let listed: Vec<String> = families(&latest[0], &Selection::default())
            .iter()
            .map(|it| format!("{} {} {}", it.name, it.kind, it.series))
            .collect();
        assert_eq!(
            listed,
            ["gc_seconds summary 1", "gc_seconds_count counter 1", "gc_seconds_sum counter 1"]
        );
        for (name, shown) in [
            ("gc_seconds", ["[0.25]", "[]"]),
            ("gc_seconds_count", ["[]", "[3]"]),
            ("gc_seconds_sum", ["[]", "[6]"]),
        ] {
            let mut follower = Follower::new(name.to_owned(), Selection::default());
            for (latest, shown) in latest.iter().zip(shown) {
                let values = follower.next(latest).values.values;
                let values: Vec<Number> = values.into_iter().map(|it| it.1).collect();
                assert_eq!(serde_json::to_string(&values).unwrap(), shown, "{name}");
            }
            let feed = feed((0u64..3).map(|second| (second as i64, second, page(second + 1))));
            let span = TimeRange { from: 1_000, to: 3_000, bin: 1_000 };
            let range = SeriesRange::of(&feed, name, &Selection::default(), span);
            let found: Vec<f64> = range.series[0].values.iter().flatten().map(|it| it.0).collect();
            let expected =
                [("gc_seconds", 0.25), ("gc_seconds_count", 1.0), ("gc_seconds_sum", 2.0)];
            let expected = expected.into_iter().find(|it| it.0 == name).unwrap().1;
            assert!(
                found.iter().all(|it| *it == expected) && !found.is_empty(),
                "{name}: {found:?}"
            );
        }
    }

    #[test]
    fn the_explorer_of_one_region_has_its_families_series_and_exemplars_alone() {
        let page = "# TYPE up_total counter\nup_total{region=\"a\"} 1\nup_total{region=\"b\"} 2\n\
            # TYPE only_b gauge\nonly_b{region=\"b\"} 3\n\
            # TYPE d_seconds histogram\n\
            d_seconds_bucket{region=\"a\",le=\"+Inf\"} 1 # {trace_id=\"17\"} 0.5 20\n\
            d_seconds_count{region=\"a\"} 1\nd_seconds_sum{region=\"a\"} 0.5\n\
            d_seconds_bucket{region=\"b\",le=\"+Inf\"} 1 # {trace_id=\"18\"} 0.7 30\n\
            d_seconds_count{region=\"b\"} 1\nd_seconds_sum{region=\"b\"} 0.7\n# EOF\n";
        let latest = latest(1, 1_000, page);
        let of = |region: Option<&str>| {
            let query = region.map(|it| ("region".to_owned(), it.to_owned()));
            Selection::of(&query.into_iter().collect())
        };
        let listed = |region| {
            let wanted = of(region);
            let all = families(&latest, &wanted).into_iter();
            all.map(|it| format!("{} {}", it.name, it.series)).collect::<Vec<String>>()
        };
        assert_eq!(listed(None), ["d_seconds 2", "only_b 1", "up_total 2"]);
        assert_eq!(listed(Some("a")), ["d_seconds 1", "up_total 1"]);
        assert_eq!(listed(Some("gone")), [""; 0]);
        let traces = |region| {
            let all = serde_json::to_value(exemplars(&latest, "d_seconds", &of(region))).unwrap();
            let all = all.as_array().unwrap().iter();
            all.map(|it| format!("{} {} {}", it["exemplar"][0][1], it["value"], it["t"]))
                .collect::<Vec<String>>()
        };
        assert_eq!(traces(None), ["\"18\" 0.7 30000", "\"17\" 0.5 20000"]);
        assert_eq!(traces(Some("a")), ["\"17\" 0.5 20000"]);
        let mut follower = Follower::new("up_total".to_owned(), of(Some("b")));
        assert_eq!(follower.next(&latest).series.len(), 1);
    }
}
