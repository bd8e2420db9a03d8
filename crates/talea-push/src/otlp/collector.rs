//! From families to OTLP's metrics.

use std::borrow::Borrow;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use talea_page::{Exemplar, Family, Kind, Label, Native, Series, Value};

use super::deltas::Deltas;
use super::message::{
    self, Buckets, ExponentialHistogram, ExponentialHistogramDataPoint,
    ExportMetricsServiceRequest, Gauge, Histogram, HistogramDataPoint, KeyValue, Metric,
    NumberDataPoint, Resource, ResourceMetrics, Scope, ScopeMetrics, Sum, Summary,
    SummaryDataPoint, ValueAtQuantile,
};
use crate::record::{Counts, Record};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`: a request that is repeated changes nothing.
const CUMULATIVE: i32 = 2;

/// The most buckets of a side. OTLP writes empty ones too, so values that are far apart get coarser
/// buckets.
const MOST_BUCKETS: i64 = 1_024;

/// Makes requests of pages, one after the other.
#[derive(Debug)]
pub(crate) struct Collector {
    resource: Resource,
    sends_native: bool,
    /// The most data points of a request.
    most: u64,
    /// The time of the newest exemplar that was sent.
    newest: SystemTime,
    /// If differences are sent.
    pub(crate) deltas: Option<Deltas>,
}

/// The data points of one family, which may be in several requests.
struct Points {
    metric: Metric,
    counts: Counts,
}

impl Collector {
    /// `attributes` are those of the resource.
    pub(crate) fn new(
        attributes: &[Label],
        sends_native: bool,
        most: u64,
        deltas: Option<Deltas>,
    ) -> Self {
        let attributes =
            attributes.iter().map(|label| KeyValue::new(&label.name, &label.value)).collect();
        Self { resource: Resource { attributes }, sends_native, most, newest: UNIX_EPOCH, deltas }
    }

    /// The requests with a page's values at a time in milliseconds since 1970.
    pub(crate) fn collect<F: Borrow<Family>>(
        &mut self,
        families: impl IntoIterator<Item = F>,
        time: i64,
    ) -> Vec<Record> {
        let now = UNIX_EPOCH + Duration::from_millis(time.max(0) as u64);
        let resource = self.resource();
        let mut records = Vec::new();
        let (mut metrics, mut counts) = (Vec::new(), Counts::default());
        let mut newest = self.newest;
        for family in families {
            let family = family.borrow();
            let exemplars = family.series.iter().flat_map(|series| series.exemplars());
            newest = exemplars.filter_map(|it| it.time).fold(newest, SystemTime::max);
            let mut series = family.series.as_slice();
            while !series.is_empty() {
                // At least one, as the last request would be full else.
                let room = (self.most - counts.values()).min(series.len() as u64) as usize;
                let (here, rest) = series.split_at(room);
                let mut points = self.points(family, here, now);
                self.deltas.iter_mut().for_each(|deltas| deltas.apply(&mut points.metric));
                metrics.push(points.metric);
                counts += points.counts;
                series = rest;
                if counts.values() >= self.most {
                    records.push(record(&resource, std::mem::take(&mut metrics), counts));
                    counts = Counts::default();
                }
            }
        }
        if !metrics.is_empty() {
            records.push(record(&resource, metrics, counts));
        }
        self.newest = newest;
        self.deltas.iter_mut().for_each(|deltas| deltas.end(nanos(now)));
        records
    }

    /// The attributes of the configuration, and others that the process publishes.
    fn resource(&self) -> Resource {
        #[allow(unused_mut)]
        let mut resource = self.resource.clone();
        #[cfg(target_os = "linux")]
        for attribute in super::context::attributes("/proc/self".as_ref()).unwrap_or_default() {
            if resource.attributes.iter().all(|known| known.key != attribute.key) {
                resource.attributes.push(attribute);
            }
        }
        resource
    }

    /// A family with some of its series.
    fn points(&self, family: &Family, series: &[Series], now: SystemTime) -> Points {
        let mut metric = Metric {
            name: name_of(family).to_owned(),
            description: family.help.clone(),
            unit: unit_of(family).to_owned(),
            ..Metric::default()
        };
        for series in series {
            let start = series.created.filter(|created| *created < now).map_or(0, nanos);
            let point = Point {
                attributes: attributes(&series.labels),
                start,
                time: nanos(now),
                newest: self.newest,
            };
            self.add(&mut metric, family.kind, &series.value, point);
        }
        let counts = counts_of(&metric);
        Points { metric, counts }
    }

    fn add(&self, metric: &mut Metric, kind: Kind, value: &Value, point: Point) {
        let Point { start: start_time_unix_nano, time: time_unix_nano, newest, .. } = point;
        let attributes = point.attributes;
        match value {
            Value::Number(number) => {
                let point = NumberDataPoint {
                    start_time_unix_nano,
                    time_unix_nano,
                    as_double: Some(number.value),
                    exemplars: exemplars(&number.exemplar, newest),
                    attributes,
                };
                match kind {
                    Kind::Counter => {
                        let sum = metric.sum.get_or_insert_default();
                        sum.data_points.push(point);
                        (sum.aggregation_temporality, sum.is_monotonic) = (CUMULATIVE, true);
                    }
                    _ => metric.gauge.get_or_insert_default().data_points.push(point),
                }
            }
            Value::Summary(summary) => {
                let quantiles = summary.quantiles.iter();
                let quantile_values = quantiles
                    .map(|it| ValueAtQuantile { quantile: it.quantile, value: it.value })
                    .collect();
                let found = metric.summary.get_or_insert_default();
                found.data_points.push(SummaryDataPoint {
                    start_time_unix_nano,
                    time_unix_nano,
                    count: summary.count,
                    sum: summary.sum,
                    quantile_values,
                    attributes,
                });
            }
            Value::Histogram(histogram) => match histogram.native.as_ref() {
                Some(native) if self.sends_native => {
                    let (scale, positive, negative) = dense(native);
                    let found = metric.exponential_histogram.get_or_insert_default();
                    found.aggregation_temporality = CUMULATIVE;
                    found.data_points.push(ExponentialHistogramDataPoint {
                        attributes,
                        start_time_unix_nano,
                        time_unix_nano,
                        count: histogram.count,
                        sum: Some(histogram.sum),
                        scale,
                        zero_count: native.zero_count,
                        positive,
                        negative,
                        exemplars: exemplars(&histogram.exemplars, newest),
                        zero_threshold: native.zero_threshold,
                    });
                }
                _ => {
                    let found = metric.histogram.get_or_insert_default();
                    found.aggregation_temporality = CUMULATIVE;
                    let classic = &histogram.classic;
                    let counts = classic.iter().map(|bucket| bucket.cumulative_count);
                    let before = std::iter::once(0).chain(counts.clone());
                    let bounds = classic.iter().map(|bucket| bucket.upper_bound);
                    let of_buckets = classic.iter().filter_map(|bucket| bucket.exemplar.as_ref());
                    found.data_points.push(HistogramDataPoint {
                        start_time_unix_nano,
                        time_unix_nano,
                        count: histogram.count,
                        sum: Some(histogram.sum),
                        bucket_counts: counts
                            .zip(before)
                            .map(|(count, before)| count.saturating_sub(before))
                            .collect(),
                        explicit_bounds: bounds.filter(|bound| bound.is_finite()).collect(),
                        exemplars: exemplars(of_buckets, newest),
                        attributes,
                    });
                }
            },
        }
    }
}

fn record(resource: &Resource, metrics: Vec<Metric>, counts: Counts) -> Record {
    let scope = Scope {
        name: env!("CARGO_PKG_NAME").to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let scope_metrics = vec![ScopeMetrics { scope: Some(scope), metrics }];
    let resource_metrics =
        vec![ResourceMetrics { resource: Some(resource.clone()), scope_metrics }];
    let message = ExportMetricsServiceRequest { resource_metrics };
    Record { counts, body: compressed(&message.encode_to_vec()) }
}

/// What all kinds of data points have.
struct Point {
    attributes: Vec<KeyValue>,
    start: u64,
    time: u64,
    /// Exemplars that are not newer were sent before.
    newest: SystemTime,
}

fn counts_of(metric: &Metric) -> Counts {
    let Metric { gauge, sum, histogram, exponential_histogram, summary, .. } = metric;
    let numbers = gauge.iter().flat_map(|Gauge { data_points }| data_points);
    let numbers = numbers.chain(sum.iter().flat_map(|Sum { data_points, .. }| data_points));
    let classic = histogram.iter().flat_map(|Histogram { data_points, .. }| data_points);
    let native = exponential_histogram
        .iter()
        .flat_map(|ExponentialHistogram { data_points, .. }| data_points);
    let summaries = summary.iter().flat_map(|Summary { data_points }| data_points).count();
    let exemplars = numbers.clone().map(|it| it.exemplars.len()).sum::<usize>()
        + classic.clone().map(|it| it.exemplars.len()).sum::<usize>()
        + native.clone().map(|it| it.exemplars.len()).sum::<usize>();
    Counts {
        samples: (numbers.count() + classic.count() + summaries) as u64,
        histograms: native.count() as u64,
        exemplars: exemplars as u64,
    }
}

/// The name without the ending that receivers add to a monotonic sum.
fn name_of(family: &Family) -> &str {
    let name = family.name.as_str();
    let bare = name.strip_suffix("_total").filter(|_| family.kind == Kind::Counter);
    bare.filter(|bare| !bare.is_empty()).unwrap_or(name)
}

/// The unit as UCUM has it, if it does.
fn unit_of(family: &Family) -> &str {
    match family.unit.as_str() {
        "seconds" => "s",
        "bytes" => "By",
        "ratio" => "1",
        other => other,
    }
}

fn attributes(labels: &[Label]) -> Vec<KeyValue> {
    labels.iter().map(|label| KeyValue::new(&label.name, &label.value)).collect()
}

fn exemplars<'a>(
    all: impl IntoIterator<Item = &'a Exemplar>,
    newest: SystemTime,
) -> Vec<message::Exemplar> {
    let timed = all.into_iter().filter_map(|exemplar| Some((exemplar, exemplar.time?)));
    let new = timed.filter(|(_, time)| *time > newest);
    new.map(|(exemplar, time)| {
        let mut found = message::Exemplar {
            time_unix_nano: nanos(time),
            as_double: Some(exemplar.value),
            ..message::Exemplar::default()
        };
        for Label { name, value } in &exemplar.labels {
            match (name.as_str(), bytes(value)) {
                ("trace_id", Some(id)) if id.len() == 16 => found.trace_id = id,
                ("span_id", Some(id)) if id.len() == 8 => found.span_id = id,
                _ => found.filtered_attributes.push(KeyValue::new(name, value)),
            }
        }
        found
    })
    .collect()
}

/// The bytes that hexadecimal digits stand for.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => {
                let [high, low] = [high, low].map(|digit| char::from(*digit).to_digit(16));
                Some((high? << 4 | low?) as u8)
            }
            _ => None,
        })
        .collect()
}

/// Native buckets with the empty ones between them, at a schema at which they are not too many.
fn dense(native: &Native) -> (i32, Option<Buckets>, Option<Buckets>) {
    let mut scale = native.schema;
    let [mut positive, mut negative] = [native.positive.clone(), native.negative.clone()];
    while width(&positive).max(width(&negative)) > MOST_BUCKETS {
        [&mut positive, &mut negative].into_iter().for_each(coarsen);
        scale -= 1;
    }
    (scale, side(&positive), side(&negative))
}

fn width(buckets: &[(i32, u64)]) -> i64 {
    match buckets {
        [(first, _), .., (last, _)] => i64::from(*last) - i64::from(*first) + 1,
        _ => buckets.len() as i64,
    }
}

/// Joins buckets by twos: those of the next coarser schema.
fn coarsen(buckets: &mut Vec<(i32, u64)>) {
    for (index, _) in buckets.iter_mut() {
        *index = index.div_euclid(2) + index.rem_euclid(2);
    }
    buckets.dedup_by(|next, last| {
        let is_same = next.0 == last.0;
        if is_same {
            last.1 = last.1.saturating_add(next.1);
        }
        is_same
    });
}

fn side(buckets: &[(i32, u64)]) -> Option<Buckets> {
    let (first, _) = buckets.first()?;
    let mut bucket_counts = vec![0; width(buckets) as usize];
    for (index, count) in buckets {
        bucket_counts[(i64::from(*index) - i64::from(*first)) as usize] = *count;
    }
    // OTLP numbers a bucket by its lower bound, Prometheus by its upper one.
    Some(Buckets { offset: first.saturating_sub(1), bucket_counts })
}

fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn compressed(message: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Memory takes all of it.
    let _ = encoder.write_all(message);
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn native(schema: i32, positive: &[(i32, u64)]) -> Native {
        Native { schema, positive: positive.to_vec(), ..Native::default() }
    }

    #[test]
    fn buckets_are_dense_and_not_too_many() {
        for (what, schema, positive, scale, offset, counts) in [
            ("one", 3, &[(5, 7)][..], 3, 4, vec![7]),
            ("a gap", 0, &[(-1, 1), (2, 3)], 0, -2, vec![1, 0, 0, 3]),
            ("as many as may be", 8, &[(1, 1), (1_024, 2)], 8, 0, {
                let mut all = vec![0; 1_024];
                (all[0], all[1_023]) = (1, 2);
                all
            }),
            ("one more, joined by twos", 8, &[(-1, 1), (0, 1), (1_023, 2), (1_024, 2)], 7, -1, {
                let mut all = vec![0; 513];
                (all[0], all[512]) = (2, 4);
                all
            }),
        ] {
            let (found, side, none) = dense(&native(schema, positive));
            let expected = Some(Buckets { offset, bucket_counts: counts });
            assert_eq!((found, side, none), (scale, expected, None), "{what}");
        }
        let (scale, ..) = dense(&native(8, &[(i32::MIN, 1), (i32::MAX, 1)]));
        assert!(scale < 0, "any indices end");
    }

    #[test]
    fn identifiers_are_bytes_if_they_have_the_length() {
        for (digits, expected) in [
            ("0aFF", Some(vec![10, 255])),
            ("", Some(Vec::new())),
            ("abc", None),
            ("xy", None),
            ("é", None),
        ] {
            assert_eq!(bytes(digits), expected, "{digits}");
        }
    }
}
