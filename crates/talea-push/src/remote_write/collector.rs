//! From families to series: names, labels, times, and what is sent once only.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use talea_page::{Exemplar, Family, Kind, Label, Native, Series, Value};

use super::message::{Histogram, MetricType, Sample, TimeSeries, float};
use super::request::{About, Requests};
use super::spans::spans;
use crate::record::Record;
use crate::relabel::{Rule, Twice, relabelled};

/// The value by which a series ends. Source: Prometheus' `model/value`.
const STALE: u64 = 0x7FF0_0000_0000_0002;

/// The value of `reset_hint` for histograms whose counts can fall.
const IS_GAUGE: i32 = 3;

const NAME: &str = "__name__";

/// Makes requests of pages, one after the other, and remembers what was in the last one.
#[derive(Debug)]
pub(crate) struct Collector {
    /// Labels that each series gets, unless it has one of the name.
    labels: Vec<Label>,
    /// Whether histograms with native buckets are sent with their classic buckets too.
    sends_classic: bool,
    sends_native: bool,
    known: HashMap<Box<[u8]>, Known>,
    /// The number of the page.
    round: u64,
    requests: Requests,
    rules: Vec<Rule>,
    /// Series that were there twice in the last page.
    twice: Twice,
}

/// A series that was sent.
#[derive(Debug)]
struct Known {
    round: u64,
    created: Option<SystemTime>,
    /// The start timestamp that was sent, which never changes with `created` unchanged.
    start: i64,
    /// The time of its newest exemplar.
    exemplar: i64,
    is_histogram: bool,
}

/// What the series of one page have in common.
#[derive(Clone, Copy)]
struct Instant<'a> {
    about: About<'a>,
    /// The labels, but for the name and the one of a bucket or quantile.
    labels: &'a [(&'a str, &'a str)],
    /// Since when the values count, if they do.
    created: Option<SystemTime>,
    time: i64,
}

impl Collector {
    pub(crate) fn new(
        mut labels: Vec<Label>,
        rules: Vec<Rule>,
        sends_classic: bool,
        sends_native: bool,
        most: u64,
    ) -> Self {
        labels.retain(|label| !label.value.is_empty());
        Self {
            labels,
            sends_classic,
            sends_native,
            known: HashMap::new(),
            round: 0,
            requests: Requests::new(most),
            rules,
            twice: Twice::default(),
        }
    }

    /// The requests with a page's values at a time in milliseconds since 1970. Series that were in the page
    /// before and are not in this one are ended by a stale marker.
    pub(crate) fn collect<F: Borrow<Family>>(
        &mut self,
        families: impl IntoIterator<Item = F>,
        time: i64,
    ) -> Vec<Record> {
        self.round += 1;
        self.twice = Twice::default();
        for family in families {
            let family = family.borrow();
            let about = about(family);
            for series in &family.series {
                self.add(family, series, about, time);
            }
        }
        self.end_series(time);
        self.requests.take()
    }

    /// The requests that end all series.
    pub(crate) fn end(&mut self, time: i64) -> Vec<Record> {
        self.collect([] as [Family; 0], time)
    }

    /// The series of the last page that were left out, since another had the same labels.
    pub(crate) fn twice(&self) -> Twice {
        self.twice.clone()
    }

    fn add(&mut self, family: &Family, series: &Series, about: About<'_>, time: i64) {
        let external = std::mem::take(&mut self.labels);
        let own = series.labels.iter();
        let others = external.iter().filter(|label| series.label(&label.name).is_none());
        // A label without a value is the same as no label.
        let labels: Vec<(&str, &str)> = own
            .chain(others)
            .map(|label| (&*label.name, &*label.value))
            .filter(|(_, value)| !value.is_empty())
            .collect();
        let page = Instant { about, labels: &labels, created: series.created, time };
        let name = &*family.name;
        match &series.value {
            Value::Number(number) => {
                let created = series.created.filter(|_| family.kind == Kind::Counter);
                let exemplars = number.exemplar.as_slice();
                self.number(Instant { created, ..page }, name, None, number.value, exemplars);
            }
            Value::Summary(summary) => {
                for quantile in &summary.quantiles {
                    let label = ("quantile", canonical(quantile.quantile));
                    let page = Instant { created: None, ..page };
                    self.number(page, name, Some(label), quantile.value, &[]);
                }
                self.sums(page, name, summary.count, summary.sum);
            }
            Value::Histogram(histogram) => {
                let is_gauge = family.kind == Kind::GaugeHistogram;
                let page = Instant { created: series.created.filter(|_| !is_gauge), ..page };
                let native = histogram.native.as_ref().filter(|_| self.sends_native);
                if let Some(native) = native {
                    self.native(page, name, histogram, native, is_gauge);
                }
                if native.is_none() || self.sends_classic && histogram.has_classic() {
                    let bucket = format!("{name}_bucket");
                    for it in &histogram.classic {
                        let label = ("le", canonical(it.upper_bound));
                        let value = it.cumulative_count as f64;
                        self.number(page, &bucket, Some(label), value, it.exemplar.as_slice());
                    }
                    self.sums(page, name, histogram.count, histogram.sum);
                }
            }
        }
        self.labels = external;
    }

    fn sums(&mut self, page: Instant<'_>, name: &str, count: u64, sum: f64) {
        self.number(page, &format!("{name}_count"), None, count as f64, &[]);
        self.number(page, &format!("{name}_sum"), None, sum, &[]);
    }

    fn number(
        &mut self,
        page: Instant<'_>,
        name: &str,
        own: Option<(&str, String)>,
        value: f64,
        exemplars: &[Exemplar],
    ) {
        let own = own.as_ref().map(|(name, value)| (*name, &**value));
        let sample = Sample { value: float(value), timestamp: page.time, start_timestamp: 0 };
        let series = TimeSeries { samples: vec![sample], ..TimeSeries::default() };
        self.put(sorted(page.labels, name, own), page, exemplars, series);
    }

    fn native(
        &mut self,
        page: Instant<'_>,
        name: &str,
        histogram: &talea_page::Histogram,
        native: &Native,
        is_gauge: bool,
    ) {
        let (positive_spans, positive_deltas) = spans(&native.positive);
        let (negative_spans, negative_deltas) = spans(&native.negative);
        let message = Histogram {
            count_int: Some(histogram.count),
            sum: float(histogram.sum),
            schema: native.schema,
            zero_threshold: native.zero_threshold,
            zero_count_int: Some(native.zero_count),
            negative_spans,
            negative_deltas,
            positive_spans,
            positive_deltas,
            reset_hint: if is_gauge { IS_GAUGE } else { 0 },
            timestamp: page.time,
            start_timestamp: 0,
        };
        let series = TimeSeries { histograms: vec![message], ..TimeSeries::default() };
        self.put(sorted(page.labels, name, None), page, &histogram.exemplars, series);
    }

    /// Adds a series with its value, by the labels that the rules make of its own, unless they drop it or the page has
    /// it already.
    fn put(
        &mut self,
        labels: Vec<(&str, &str)>,
        page: Instant<'_>,
        exemplars: &[Exemplar],
        mut series: TimeSeries,
    ) {
        let changed;
        let mut labels = labels;
        if !self.rules.is_empty() {
            let Some(relabelled) = relabelled(&self.rules, &labels) else { return };
            changed = relabelled;
            labels = changed.iter().map(|(name, value)| (&**name, &**value)).collect();
        }
        let is_histogram = !series.histograms.is_empty();
        let Some((start, exemplars)) = self.remember(&labels, page, exemplars, is_histogram) else {
            return;
        };
        series.samples.iter_mut().for_each(|sample| sample.start_timestamp = start);
        series.histograms.iter_mut().for_each(|histogram| histogram.start_timestamp = start);
        self.requests.add(&labels, page.about, &exemplars, series);
    }

    /// Notes that a series is in the page. Returns its start timestamp, and those of its exemplars that
    /// were not sent yet, oldest first; `None` if the page has it already.
    fn remember<'a>(
        &mut self,
        labels: &[(&str, &str)],
        page: Instant<'_>,
        exemplars: &'a [Exemplar],
        is_histogram: bool,
    ) -> Option<(i64, Vec<(&'a Exemplar, i64)>)> {
        let Self { known, round, .. } = self;
        let key = key(labels);
        let Instant { created, time, .. } = page;
        let new = Known { round: 0, created, start: 0, exemplar: i64::MIN, is_histogram };
        let known = match known.get_mut(&*key) {
            Some(known) => known,
            None => known.entry(key).or_insert(new),
        };
        let is_new = known.round == 0;
        if !is_new && known.round == *round {
            self.twice.note(labels.iter().copied());
            return None;
        }
        if is_new || known.created != created {
            known.start = start(created, time);
        }
        (known.round, known.created, known.is_histogram) = (*round, created, is_histogram);
        let newest = known.exemplar;
        let timed = exemplars.iter().filter_map(|it| Some((it, millis(it.time?))));
        let mut exemplars: Vec<_> = timed.filter(|(_, time)| *time > newest).collect();
        // A receiver refuses an exemplar that is older than one before, and one that is as old.
        exemplars.sort_by_key(|(_, time)| *time);
        exemplars.dedup_by_key(|(_, time)| *time);
        known.exemplar = exemplars.last().map_or(newest, |(_, time)| *time);
        Some((known.start, exemplars))
    }

    /// Ends the series that are not in the page.
    fn end_series(&mut self, time: i64) {
        let Self { known, round, requests, .. } = self;
        let stale = Some(f64::from_bits(STALE));
        known.retain(|key, known| {
            if known.round == *round {
                return true;
            }
            let mut series = TimeSeries::default();
            if known.is_histogram {
                let histogram = Histogram { sum: stale, timestamp: time, ..Histogram::default() };
                series.histograms.push(histogram);
            } else {
                series.samples.push(Sample { value: stale, timestamp: time, start_timestamp: 0 });
            }
            requests.add(&labels_of(key), About::UNKNOWN, &[], series);
            false
        });
    }
}

impl About<'_> {
    const UNKNOWN: Self = Self { kind: MetricType::Unspecified, help: "", unit: "" };
}

fn about(family: &Family) -> About<'_> {
    let kind = match family.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram => MetricType::Histogram,
        Kind::GaugeHistogram => MetricType::GaugeHistogram,
        Kind::Summary => MetricType::Summary,
        Kind::Info => MetricType::Info,
        Kind::StateSet => MetricType::StateSet,
        Kind::Unknown => MetricType::Unspecified,
    };
    About { kind, help: &family.help, unit: &family.unit }
}

/// All labels of a series in the order of their names.
fn sorted<'a>(
    labels: &[(&'a str, &'a str)],
    name: &'a str,
    own: Option<(&'a str, &'a str)>,
) -> Vec<(&'a str, &'a str)> {
    let mut all = Vec::with_capacity(labels.len() + 2);
    all.push((NAME, name));
    all.extend(own);
    all.extend(labels.iter().filter(|(name, _)| own.is_none_or(|(own, _)| own != *name)));
    all.sort_unstable();
    all
}

/// Separates names and values in a key: no text in UTF-8 has it.
const SEPARATOR: u8 = 0xFF;

fn key(labels: &[(&str, &str)]) -> Box<[u8]> {
    let len = labels.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
    let mut key = Vec::with_capacity(len);
    for (name, value) in labels {
        for text in [name, value] {
            key.extend_from_slice(text.as_bytes());
            key.push(SEPARATOR);
        }
    }
    key.into()
}

fn labels_of(key: &[u8]) -> Vec<(&str, &str)> {
    let mut texts = key
        .split(|byte| *byte == SEPARATOR)
        .map(|text| std::str::from_utf8(text).unwrap_or_default());
    let mut labels = Vec::new();
    while let (Some(name), Some(value)) = (texts.next(), texts.next()) {
        labels.push((name, value));
    }
    labels
}

/// The start timestamp of a series that is sent for the first time: 0, which stands for unknown, if the
/// clock was set back since it began.
fn start(created: Option<SystemTime>, time: i64) -> i64 {
    match created.map(millis) {
        // It must lie before the first sample, or that sample's increase would not count.
        Some(created) if created == time => time - 1,
        Some(created) if created < time => created,
        _ => 0,
    }
}

/// Milliseconds since 1970, rounded down.
pub(crate) fn millis(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    }
}

/// A number as the value of `le` and `quantile`, as Prometheus 3 stores it: `1.0` rather than `1`, with an
/// exponent from a million on and below a ten-thousandth.
fn canonical(x: f64) -> String {
    let is_usual = x == 0.0 || (1e-4..1e6).contains(&x.abs());
    match x {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        _ if is_usual || x.is_nan() => format!("{x:?}"),
        _ => {
            let text = format!("{x:e}");
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (sign, exponent) =
                exponent.strip_prefix('-').map_or(('+', exponent), |it| ('-', it));
            format!("{digits}e{sign}{exponent:0>2}")
        }
    }
}
