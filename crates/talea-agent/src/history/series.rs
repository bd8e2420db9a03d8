//! Families of a page as series of cells, and back.

use std::collections::BTreeMap;

use talea_view::families::protobuf::{
    Bucket, BucketSpan, Histogram, Kind, LabelPair, Metric, MetricFamily, Number,
};

/// The part of a series that stays the same. One whose buckets become others is another series.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Definition {
    pub(super) family: String,
    pub(super) kind: i32,
    pub(super) labels: Vec<LabelPair>,
    /// The bits of a histogram's thresholds.
    pub(super) thresholds: Vec<u64>,
    /// The schema of the native buckets, and the bits of the threshold of zero.
    pub(super) native: Option<(i32, u64)>,
}

/// The cells of a series by their keys, in the order of those. A cell that is not there is 0.
pub(super) type Cells = Vec<(i64, f64)>;

/// The value of a number, or the count of a histogram.
const VALUE: i64 = 0;
const SUM: i64 = 1;
const ZEROS: i64 = 2;
/// The first classic bucket; each counts what is in it alone.
const CLASSIC: i64 = 16;
/// The native bucket of index 0. A page has at most 1,024 thresholds in practice; more end here.
const NATIVE: i64 = 1 << 40;

/// The value of a number, or the count of a histogram.
pub(super) fn value_of(cells: &Cells) -> f64 {
    cells.first().filter(|cell| cell.0 == VALUE).map_or(0.0, |cell| cell.1)
}

/// The series of a family, each with its cells.
pub(super) fn of_family(family: &MetricFamily) -> impl Iterator<Item = (Definition, Cells)> {
    family.metric.iter().filter_map(|metric| {
        let mut definition = Definition {
            family: family.name.clone(),
            kind: family.kind,
            labels: metric.label.clone(),
            thresholds: Vec::new(),
            native: None,
        };
        let cells = match &metric.histogram {
            Some(histogram) => of_histogram(histogram, &mut definition),
            None => vec![(VALUE, metric.value()?)],
        };
        Some((definition, cells))
    })
}

fn of_histogram(histogram: &Histogram, definition: &mut Definition) -> Cells {
    let mut cells = vec![
        (VALUE, histogram.sample_count as f64),
        (SUM, histogram.sample_sum),
        (ZEROS, histogram.zero_count as f64),
    ];
    let mut below = 0;
    // Native buckets say more, and are enough.
    let classic = histogram.bucket.iter().filter(|_| histogram.schema.is_none());
    for (number, bucket) in (0..).zip(classic) {
        definition.thresholds.push(bucket.upper_bound.to_bits());
        let here = bucket.cumulative_count.saturating_sub(below);
        below = bucket.cumulative_count;
        cells.push((CLASSIC + number, here as f64));
    }
    if let Some(schema) = histogram.schema {
        definition.native = Some((schema, histogram.zero_threshold.to_bits()));
        let (mut index, mut count) = (0i64, 0i64);
        let mut deltas = histogram.positive_delta.iter();
        for span in &histogram.positive_span {
            index += i64::from(span.offset);
            for delta in deltas.by_ref().take(span.length as usize) {
                count = count.saturating_add(*delta);
                cells.push((NATIVE + index, count as f64));
                index += 1;
            }
        }
    }
    cells.retain(|(key, value)| *key <= SUM || *value != 0.0);
    cells.sort_by_key(|(key, _)| *key);
    cells.dedup_by_key(|(key, _)| *key);
    cells
}

pub(super) fn to_families<'a>(
    series: impl Iterator<Item = (&'a Definition, &'a Cells)>,
) -> Vec<MetricFamily> {
    let mut families: BTreeMap<(&str, i32), Vec<Metric>> = BTreeMap::new();
    for (definition, cells) in series {
        let metrics = families.entry((&definition.family, definition.kind)).or_default();
        metrics.push(metric(definition, cells));
    }
    let family = |((name, kind), metric): ((&str, i32), Vec<Metric>)| MetricFamily {
        name: name.to_owned(),
        kind,
        metric,
        ..MetricFamily::default()
    };
    families.into_iter().map(family).collect()
}

fn metric(definition: &Definition, cells: &Cells) -> Metric {
    let mut metric = Metric { label: definition.labels.clone(), ..Metric::default() };
    let value = |key| cells.binary_search_by_key(&key, |cell| cell.0).map_or(0.0, |at| cells[at].1);
    let number = Some(Number { value: value(VALUE), exemplar: None });
    match Kind::try_from(definition.kind) {
        Ok(Kind::Counter) => metric.counter = number,
        Ok(Kind::Gauge) => metric.gauge = number,
        Ok(Kind::Histogram) => metric.histogram = Some(histogram(definition, cells, value)),
        _ => metric.untyped = number,
    }
    metric
}

fn histogram(definition: &Definition, cells: &Cells, value: impl Fn(i64) -> f64) -> Histogram {
    let mut below = 0;
    let bucket = |(number, bits): (i64, &u64)| {
        below = u64::saturating_add(below, value(CLASSIC + number) as u64);
        Bucket { cumulative_count: below, upper_bound: f64::from_bits(*bits), exemplar: None }
    };
    let mut histogram = Histogram {
        sample_count: value(VALUE) as u64,
        sample_sum: value(SUM),
        zero_count: value(ZEROS) as u64,
        bucket: (0..).zip(&definition.thresholds).map(bucket).collect(),
        ..Histogram::default()
    };
    let Some((schema, zero_threshold)) = definition.native else { return histogram };
    histogram.schema = Some(schema);
    histogram.zero_threshold = f64::from_bits(zero_threshold);
    // The end of the last span, and the count of its last bucket.
    let (mut end, mut last) = (None, 0);
    for (key, count) in cells.iter().filter(|(key, _)| *key > NATIVE / 2) {
        let (index, count) = (key - NATIVE, *count as i64);
        if end != Some(index) {
            let offset = i32::try_from(index - end.unwrap_or(0)).unwrap_or(i32::MAX);
            histogram.positive_span.push(BucketSpan { offset, length: 0 });
        }
        if let Some(span) = histogram.positive_span.last_mut() {
            span.length += 1;
        }
        histogram.positive_delta.push(count.saturating_sub(last));
        (end, last) = (Some(index + 1), count);
    }
    histogram
}
