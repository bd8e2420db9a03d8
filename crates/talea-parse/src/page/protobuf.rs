//! Pages in Prometheus' protobuf format: `io.prometheus.client.MetricFamily` messages, each behind its
//! length. Source: `metrics.proto` of Prometheus' client model.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prost::Message;
use talea_page::{
    Bucket, Exemplar, Family, Histogram, Kind, Label, Native, Quantile, Series, Value,
};

use super::{close, count_of};

/// The schemas of exponential buckets. Source: Prometheus' specification of native histograms, 1.0.
const SCHEMAS: std::ops::RangeInclusive<i32> = -4..=8;
/// The most buckets of a side that are read.
const MOST_BUCKETS: usize = 100_000;

/// The families of a page; `None` if it is no such page. Messages of one name and one type that follow
/// each other are one family: a page has several if only some of its histograms have native buckets.
pub(super) fn families(mut page: &[u8]) -> Option<Vec<Family>> {
    let mut families: Vec<Family> = Vec::new();
    while !page.is_empty() {
        let mut next = family(MetricFamily::decode_length_delimited(&mut page).ok()?);
        let last = families.last_mut();
        match last.filter(|last| (&last.name, last.kind) == (&next.name, next.kind)) {
            Some(last) => last.series.append(&mut next.series),
            None => families.push(next),
        }
    }
    Some(families)
}

fn family(from: MetricFamily) -> Family {
    let MetricFamily { name, help, kind, metric, unit } = from;
    let kind = match kind {
        0 => Kind::Counter,
        1 => Kind::Gauge,
        2 => Kind::Summary,
        4 => Kind::Histogram,
        5 => Kind::GaugeHistogram,
        _ => Kind::Unknown,
    };
    let series = metric.into_iter().filter_map(|metric| series(metric, kind)).collect();
    Family { name, help, unit, kind, series }
}

/// A series, if it has a value of its family's type.
fn series(metric: Metric, kind: Kind) -> Option<Series> {
    let Metric { label, gauge, counter, summary, untyped, histogram: found } = metric;
    let (value, created) = match kind {
        Kind::Histogram | Kind::GaugeHistogram => {
            let mut found = found?;
            let created = found.created.take();
            (Value::Histogram(histogram(found)), created)
        }
        Kind::Summary => {
            let Summary { sample_count, sample_sum, quantile, created } = summary?;
            let quantiles = quantile.into_iter();
            let quantiles =
                quantiles.map(|it| Quantile { quantile: it.quantile, value: it.value }).collect();
            let (count, sum) = (sample_count, sample_sum);
            (Value::Summary(talea_page::Summary { count, sum, quantiles }), created)
        }
        _ => {
            let Number { value, exemplar: found, created } = counter.or(gauge).or(untyped)?;
            let exemplar = found.map(exemplar);
            (Value::Number(talea_page::Number { value, exemplar }), created)
        }
    };
    Some(Series { labels: labels(label), value, created: created.and_then(time) })
}

fn histogram(from: HistogramMessage) -> Histogram {
    let native = native(&from);
    let buckets = from.bucket.into_iter().map(|bucket| Bucket {
        upper_bound: bucket.upper_bound,
        cumulative_count: whole(bucket.cumulative_count, bucket.cumulative_count_float),
        exemplar: bucket.exemplar.map(exemplar),
    });
    let mut histogram = Histogram {
        count: whole(from.sample_count, from.sample_count_float),
        sum: from.sample_sum,
        classic: buckets.filter(|bucket| !bucket.upper_bound.is_nan()).collect(),
        native,
        exemplars: from.exemplars.into_iter().map(exemplar).collect(),
    };
    close(&mut histogram);
    histogram
}

/// A count that is whole, or a float if the float is above 0.
fn whole(count: u64, float: f64) -> u64 {
    if float > 0.0 { count_of(float) } else { count }
}

fn native(from: &HistogramMessage) -> Option<Native> {
    let schema = from.schema.filter(|schema| SCHEMAS.contains(schema))?;
    // A classic histogram may have a schema of 0 all the same. Source: the comment on spans in
    // `metrics.proto`, by which one of length 0 says that there are native buckets.
    let HistogramMessage { positive_span, negative_span, zero_threshold, zero_count, .. } = from;
    let zero_count = whole(*zero_count, from.zero_count_float);
    if positive_span.is_empty()
        && negative_span.is_empty()
        && (*zero_threshold, zero_count) == (0.0, 0)
    {
        return None;
    }
    Some(Native {
        schema,
        zero_threshold: *zero_threshold,
        zero_count,
        positive: side(positive_span, &from.positive_delta, &from.positive_count)?,
        negative: side(negative_span, &from.negative_delta, &from.negative_count)?,
    })
}

/// The buckets of one side that are not empty, from the differences of whole counts or from counts as
/// floats; `None` if they do not ascend or a number leaves the range of its type.
fn side(spans: &[BucketSpan], deltas: &[i64], counts: &[f64]) -> Option<Vec<(i32, u64)>> {
    let mut buckets = Vec::new();
    let (mut index, mut count, mut place) = (0i32, 0i64, 0);
    let end = deltas.len().max(counts.len()).min(MOST_BUCKETS);
    for (n, span) in spans.iter().enumerate() {
        if n > 0 && span.offset < 0 {
            return None;
        }
        index = index.checked_add(span.offset)?;
        for _ in 0..span.length {
            if place == end {
                break;
            }
            let here = match counts.get(place) {
                Some(count) => count_of(*count),
                None => {
                    count = count.checked_add(deltas.get(place).copied().unwrap_or_default())?;
                    u64::try_from(count).unwrap_or_default()
                }
            };
            if here > 0 {
                buckets.push((index, here));
            }
            place += 1;
            index = index.checked_add(1)?;
        }
    }
    Some(buckets)
}

fn labels(from: Vec<LabelPair>) -> Vec<Label> {
    from.into_iter().map(|LabelPair { name, value }| Label { name, value }).collect()
}

fn exemplar(from: ExemplarMessage) -> Exemplar {
    let ExemplarMessage { label, value, timestamp } = from;
    Exemplar { labels: labels(label), value, time: timestamp.and_then(time) }
}

fn time(from: Timestamp) -> Option<SystemTime> {
    let (seconds, nanos) = (u64::try_from(from.seconds).ok()?, u32::try_from(from.nanos).ok()?);
    let nanos = Duration::from_nanos(nanos.into());
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?.checked_add(nanos)
}

#[derive(Clone, PartialEq, Message)]
struct MetricFamily {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    help: String,
    #[prost(int32, tag = "3")]
    kind: i32,
    #[prost(message, repeated, tag = "4")]
    metric: Vec<Metric>,
    #[prost(string, tag = "5")]
    unit: String,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(message, repeated, tag = "1")]
    label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    counter: Option<Number>,
    #[prost(message, optional, tag = "4")]
    summary: Option<Summary>,
    #[prost(message, optional, tag = "5")]
    untyped: Option<Number>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<HistogramMessage>,
}

/// A counter; a gauge and an untyped number have the value alone.
#[derive(Clone, PartialEq, Message)]
struct Number {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(message, optional, tag = "2")]
    exemplar: Option<ExemplarMessage>,
    #[prost(message, optional, tag = "3")]
    created: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Message)]
struct ExemplarMessage {
    #[prost(message, repeated, tag = "1")]
    label: Vec<LabelPair>,
    #[prost(double, tag = "2")]
    value: f64,
    #[prost(message, optional, tag = "3")]
    timestamp: Option<Timestamp>,
}

/// Since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct Timestamp {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct LabelPair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct HistogramMessage {
    #[prost(uint64, tag = "1")]
    sample_count: u64,
    #[prost(double, tag = "2")]
    sample_sum: f64,
    #[prost(message, repeated, tag = "3")]
    bucket: Vec<BucketMessage>,
    #[prost(double, tag = "4")]
    sample_count_float: f64,
    #[prost(sint32, optional, tag = "5")]
    schema: Option<i32>,
    #[prost(double, tag = "6")]
    zero_threshold: f64,
    #[prost(uint64, tag = "7")]
    zero_count: u64,
    #[prost(double, tag = "8")]
    zero_count_float: f64,
    #[prost(message, repeated, tag = "9")]
    negative_span: Vec<BucketSpan>,
    #[prost(sint64, repeated, tag = "10")]
    negative_delta: Vec<i64>,
    #[prost(double, repeated, tag = "11")]
    negative_count: Vec<f64>,
    #[prost(message, repeated, tag = "12")]
    positive_span: Vec<BucketSpan>,
    #[prost(sint64, repeated, tag = "13")]
    positive_delta: Vec<i64>,
    #[prost(double, repeated, tag = "14")]
    positive_count: Vec<f64>,
    #[prost(message, optional, tag = "15")]
    created: Option<Timestamp>,
    /// Of the native buckets.
    #[prost(message, repeated, tag = "16")]
    exemplars: Vec<ExemplarMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct BucketMessage {
    #[prost(uint64, tag = "1")]
    cumulative_count: u64,
    #[prost(double, tag = "2")]
    upper_bound: f64,
    #[prost(message, optional, tag = "3")]
    exemplar: Option<ExemplarMessage>,
    #[prost(double, tag = "4")]
    cumulative_count_float: f64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct BucketSpan {
    #[prost(sint32, tag = "1")]
    offset: i32,
    #[prost(uint32, tag = "2")]
    length: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Summary {
    #[prost(uint64, tag = "1")]
    sample_count: u64,
    #[prost(double, tag = "2")]
    sample_sum: f64,
    #[prost(message, repeated, tag = "3")]
    quantile: Vec<QuantileMessage>,
    #[prost(message, optional, tag = "4")]
    created: Option<Timestamp>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct QuantileMessage {
    #[prost(double, tag = "1")]
    quantile: f64,
    #[prost(double, tag = "2")]
    value: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(spans: &[(i32, u32)], deltas: &[i64]) -> HistogramMessage {
        HistogramMessage {
            schema: Some(3),
            positive_span: spans
                .iter()
                .map(|&(offset, length): &(i32, u32)| BucketSpan { offset, length })
                .collect(),
            positive_delta: deltas.to_vec(),
            ..HistogramMessage::default()
        }
    }

    fn positive(message: &HistogramMessage) -> Option<Vec<(i32, u64)>> {
        native(message).map(|native| native.positive)
    }

    #[test]
    fn native_buckets_that_make_no_sense_are_read_as_far_as_they_do() {
        let all = MOST_BUCKETS as u32;
        let many = vec![(0, 1); MOST_BUCKETS + 5];
        for (of, spans, deltas, expected) in [
            (
                "two spans",
                &[(-2, 2), (1, 1)][..],
                &[1, 1, -1][..],
                Some(vec![(-2, 1), (-1, 2), (1, 1)]),
            ),
            ("an empty bucket", &[(0, 3)], &[1, -1, 2], Some(vec![(0, 1), (2, 2)])),
            ("a count below zero", &[(0, u32::MAX)], &[2, -5], Some(vec![(0, 2)])),
            ("fewer counts than a span has buckets", &[(0, u32::MAX)], &[2], Some(vec![(0, 2)])),
            ("more counts than buckets", &[(0, 1)], &[2, 1], Some(vec![(0, 2)])),
            ("an index too large", &[(i32::MAX, 2), (i32::MAX, 1)], &[1, 1, 1], None),
            ("a count too large", &[(0, 2)], &[i64::MAX, i64::MAX], None),
            ("a count too small", &[(0, 2)], &[i64::MIN, -1], None),
            ("a span that goes back", &[(0, 2), (-1, 1)], &[1, 0, 0], None),
            ("a span of nothing", &[(0, 0)], &[], Some(vec![])),
            ("neither spans nor zeros", &[], &[1], None),
        ] {
            assert_eq!(positive(&message(spans, deltas)), expected, "{of}");
        }
        let found = positive(&message(&many, &vec![0; many.len()]));
        assert_eq!(found, Some(vec![]), "spans without counts");
        let mut ones = vec![0; MOST_BUCKETS + 5];
        ones[0] = 1;
        assert_eq!(positive(&message(&[(0, u32::MAX)], &ones)).unwrap().len(), all as usize);
    }

    #[test]
    fn only_exponential_schemas_give_native_buckets() {
        for (schema, is_native) in
            [(None, false), (Some(-4), true), (Some(8), true), (Some(9), false), (Some(-53), false)]
        {
            let message = HistogramMessage { schema, ..message(&[(0, 1)], &[1]) };
            assert_eq!(native(&message).is_some(), is_native, "{schema:?}");
        }
    }

    #[test]
    fn float_histograms_are_rounded_down() {
        let message = HistogramMessage {
            sample_count_float: 7.5,
            zero_count_float: 1.9,
            positive_count: vec![2.5, f64::NAN, -1.0, f64::INFINITY],
            bucket: vec![BucketMessage {
                cumulative_count_float: 3.2,
                upper_bound: 1.0,
                ..BucketMessage::default()
            }],
            ..message(&[(1, 4)], &[])
        };
        let found = histogram(message);
        let classic: Vec<_> =
            found.classic.iter().map(|it| (it.upper_bound, it.cumulative_count)).collect();
        assert_eq!((found.count, classic), (7, vec![(1.0, 3), (f64::INFINITY, 7)]));
        let native = found.native.unwrap();
        assert_eq!((native.zero_count, native.positive), (1, vec![(1, 2), (4, u64::MAX)]));
    }

    #[test]
    fn a_value_that_does_not_fit_its_family_is_left_out() {
        let number = Some(Number { value: 1.0, ..Number::default() });
        let metric = Metric { gauge: number.clone(), ..Metric::default() };
        for (kind, name, is_there) in [
            (1, Kind::Gauge, true),
            (4, Kind::Histogram, false),
            (2, Kind::Summary, false),
            (9, Kind::Unknown, true),
        ] {
            let metric = vec![metric.clone()];
            let found = family(MetricFamily { kind, metric, ..MetricFamily::default() });
            assert_eq!((found.kind, found.series.len() == 1), (name, is_there), "{kind}");
        }
    }

    #[test]
    fn a_time_out_of_range_is_no_time() {
        for (seconds, nanos, is_time) in [
            (1_700_000_000, 5, true),
            (0, i32::MAX, true),
            (-1, 0, false),
            (0, -1, false),
            (i64::MAX, i32::MAX, false),
        ] {
            assert_eq!(time(Timestamp { seconds, nanos }).is_some(), is_time, "{seconds} {nanos}");
        }
    }

    #[test]
    fn no_cut_and_no_changed_byte_of_a_page_panics() {
        let label = vec![LabelPair { name: "a".to_owned(), value: "b".to_owned() }];
        let mut histogram = message(&[(-2, 2), (1, 1)], &[1, 1, -1]);
        histogram.exemplars = vec![ExemplarMessage { label: label.clone(), ..Default::default() }];
        let metric = vec![Metric { label, histogram: Some(histogram), ..Metric::default() }];
        let name = "x".to_owned();
        let family = MetricFamily { name, kind: 4, metric, ..MetricFamily::default() };
        let page = family.encode_length_delimited_to_vec();
        assert_eq!(families(&page).unwrap().len(), 1);
        for end in 1..page.len() {
            assert_eq!(families(&page[..end]), None, "cut at {end}");
        }
        for (at, bit) in (0..page.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut changed = page.clone();
            changed[at] ^= 1 << bit;
            let _ = families(&changed);
        }
    }
}
