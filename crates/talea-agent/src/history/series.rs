//! Families of a page as series of cells, and back.

use std::collections::BTreeMap;

use talea_page::{
    Bucket, Family, Histogram, Kind, Label, Native, Number, Quantile, Series, Summary, Value,
};

/// The part of a series that stays the same. One whose buckets become others is another series.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Definition {
    pub(super) family: String,
    pub(super) kind: Kind,
    pub(super) labels: Vec<Label>,
    /// The bits of a histogram's thresholds, or of a summary's quantiles.
    pub(super) thresholds: Vec<u64>,
    /// The schema of the native buckets, and the bits of the threshold of zero.
    pub(super) native: Option<(i32, u64)>,
}

/// The cells of a series by their keys, in the order of those. A cell that is not there is 0.
pub(super) type Cells = Vec<(i64, f64)>;

/// The value of a number, or the count of a histogram or a summary.
const VALUE: i64 = 0;
const SUM: i64 = 1;
const ZEROS: i64 = 2;
/// The first classic bucket, each of which counts what is in it alone; or the value of the first quantile.
const CLASSIC: i64 = 16;
/// The native bucket of index 0. A page has at most 1,024 thresholds in practice; more end here.
const NATIVE: i64 = 1 << 40;

/// The value of a number, or the count of a histogram.
pub(super) fn value_of(cells: &Cells) -> f64 {
    cells.first().filter(|cell| cell.0 == VALUE).map_or(0.0, |cell| cell.1)
}

/// The number of a kind in a history.
pub(super) fn number_of(kind: Kind) -> i64 {
    match kind {
        Kind::Counter => 0,
        Kind::Gauge => 1,
        Kind::Summary => 2,
        Kind::Unknown => 3,
        Kind::Histogram => 4,
        Kind::GaugeHistogram => 5,
        Kind::Info => 6,
        Kind::StateSet => 7,
    }
}

/// The kind of a number in a history. A summary of an earlier version has a number for each quantile.
pub(super) fn kind_of(number: i64) -> Kind {
    let all = [Kind::Counter, Kind::Gauge, Kind::Summary, Kind::Histogram, Kind::GaugeHistogram];
    let all = all.into_iter().chain([Kind::Info, Kind::StateSet]);
    all.into_iter().find(|kind| number_of(*kind) == number).unwrap_or(Kind::Unknown)
}

/// The series of a family, each with its cells.
pub(super) fn of_family(family: &Family) -> impl Iterator<Item = (Definition, Cells)> {
    family.series.iter().map(|series| {
        let mut definition = Definition {
            family: family.name.clone(),
            kind: family.kind,
            labels: series.labels.clone(),
            thresholds: Vec::new(),
            native: None,
        };
        let cells = match &series.value {
            Value::Histogram(histogram) => of_histogram(histogram, &mut definition),
            Value::Summary(summary) => of_summary(summary, &mut definition),
            Value::Number(number) => vec![(VALUE, number.value)],
        };
        (definition, cells)
    })
}

fn of_summary(summary: &Summary, definition: &mut Definition) -> Cells {
    let mut cells = vec![(VALUE, summary.count as f64), (SUM, summary.sum)];
    for (number, found) in (0..).zip(&summary.quantiles) {
        definition.thresholds.push(found.quantile.to_bits());
        cells.push((CLASSIC + number, found.value));
    }
    cells
}

fn of_histogram(histogram: &Histogram, definition: &mut Definition) -> Cells {
    let native = histogram.native.as_ref();
    let zeros = native.map_or(0, |native| native.zero_count);
    let mut cells =
        vec![(VALUE, histogram.count as f64), (SUM, histogram.sum), (ZEROS, zeros as f64)];
    let mut below = 0;
    // Native buckets say more, and are enough.
    let classic = histogram.classic.iter().filter(|_| native.is_none());
    for (number, bucket) in (0..).zip(classic) {
        definition.thresholds.push(bucket.upper_bound.to_bits());
        let here = bucket.cumulative_count.saturating_sub(below);
        below = bucket.cumulative_count;
        cells.push((CLASSIC + number, here as f64));
    }
    if let Some(native) = native {
        definition.native = Some((native.schema, native.zero_threshold.to_bits()));
        let buckets = native.positive.iter();
        cells.extend(buckets.map(|&(index, count)| (NATIVE + i64::from(index), count as f64)));
    }
    cells.retain(|(key, value)| *key <= SUM || *value != 0.0);
    cells.sort_by_key(|(key, _)| *key);
    cells.dedup_by_key(|(key, _)| *key);
    cells
}

pub(super) fn to_families<'a>(
    series: impl Iterator<Item = (&'a Definition, &'a Cells)>,
) -> Vec<Family> {
    let mut families: BTreeMap<(&str, i64), Family> = BTreeMap::new();
    for (definition, cells) in series {
        let Definition { family: name, kind, labels, .. } = definition;
        let family = families.entry((name, number_of(*kind))).or_insert_with(|| Family {
            name: name.clone(),
            kind: *kind,
            ..Family::default()
        });
        let value = value(definition, cells);
        family.series.push(Series { labels: labels.clone(), value, created: None });
    }
    families.into_values().collect()
}

fn cell(cells: &Cells, key: i64) -> f64 {
    cells.binary_search_by_key(&key, |cell| cell.0).map_or(0.0, |at| cells[at].1)
}

fn value(definition: &Definition, cells: &Cells) -> Value {
    match definition.kind {
        Kind::Histogram | Kind::GaugeHistogram => Value::Histogram(histogram(definition, cells)),
        Kind::Summary => Value::Summary(summary(definition, cells)),
        _ => Value::Number(Number { value: cell(cells, VALUE), exemplar: None }),
    }
}

fn summary(definition: &Definition, cells: &Cells) -> Summary {
    let quantiles = (CLASSIC..).zip(&definition.thresholds);
    Summary {
        count: cell(cells, VALUE) as u64,
        sum: cell(cells, SUM),
        quantiles: quantiles
            .map(|(key, bits)| Quantile {
                quantile: f64::from_bits(*bits),
                value: cell(cells, key),
            })
            .collect(),
    }
}

fn histogram(definition: &Definition, cells: &Cells) -> Histogram {
    let count = cell(cells, VALUE) as u64;
    let (mut below, mut classic) = (0u64, Vec::new());
    for (key, bits) in (CLASSIC..).zip(&definition.thresholds) {
        below = below.saturating_add(cell(cells, key) as u64);
        let upper_bound = f64::from_bits(*bits);
        classic.push(Bucket { upper_bound, cumulative_count: below, exemplar: None });
    }
    if classic.is_empty() {
        classic.push(Bucket {
            upper_bound: f64::INFINITY,
            cumulative_count: count,
            exemplar: None,
        });
    }
    let native = definition.native.map(|(schema, zero_threshold)| Native {
        schema,
        zero_threshold: f64::from_bits(zero_threshold),
        zero_count: cell(cells, ZEROS) as u64,
        positive: native_buckets(cells).collect(),
        negative: Vec::new(),
    });
    Histogram { count, sum: cell(cells, SUM), classic, native, exemplars: Vec::new() }
}

fn native_buckets(cells: &Cells) -> impl Iterator<Item = (i32, u64)> {
    let native = cells.iter().filter(|(key, count)| *key > NATIVE / 2 && *count != 0.0);
    native.filter_map(|(key, count)| Some((i32::try_from(key - NATIVE).ok()?, *count as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(kind: Kind, value: Value) -> Family {
        let labels = vec![Label::new("region", "shop")];
        let series = vec![Series { labels, value, created: None }];
        Family { name: "x".to_owned(), kind, series, ..Family::default() }
    }

    #[test]
    fn each_kind_of_value_is_the_same_when_it_is_read_back() {
        let number = || Value::Number(Number { value: 2.5, exemplar: None });
        let bucket = |upper_bound, cumulative_count| Bucket {
            upper_bound,
            cumulative_count,
            exemplar: None,
        };
        let everything = bucket(f64::INFINITY, 5);
        let classic = vec![bucket(0.1, 2), bucket(1.0, 2), everything.clone()];
        let histogram = Histogram { count: 5, sum: 3.0, classic, ..Histogram::default() };
        let native = Native {
            schema: -2,
            zero_threshold: 1e-9,
            zero_count: 1,
            positive: vec![(-3, 1), (-2, 2), (7, 1)],
            negative: Vec::new(),
        };
        let native =
            Histogram { classic: vec![everything], native: Some(native), ..histogram.clone() };
        let quantiles = [(0.5, 7.0), (0.99, 9.0)];
        let quantiles = quantiles.map(|(quantile, value)| Quantile { quantile, value }).to_vec();
        let summary = Summary { count: 4, sum: 30.0, quantiles };
        for (kind, value) in [
            (Kind::Counter, number()),
            (Kind::Gauge, number()),
            (Kind::Info, number()),
            (Kind::StateSet, number()),
            (Kind::Unknown, number()),
            (Kind::Histogram, Value::Histogram(histogram.clone())),
            (Kind::GaugeHistogram, Value::Histogram(histogram)),
            (Kind::Histogram, Value::Histogram(native)),
            (Kind::Summary, Value::Summary(summary)),
        ] {
            let family = family(kind, value);
            let series: Vec<_> = of_family(&family).collect();
            let read = to_families(series.iter().map(|(definition, cells)| (definition, cells)));
            assert_eq!(read, [family], "{kind:?}");
            assert_eq!(kind_of(number_of(kind)), kind);
        }
    }
}
