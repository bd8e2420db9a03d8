//! Pages in the text formats.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use talea_page::{
    Bucket, Exemplar, Family, Histogram, Kind, Label, Number, Quantile, Series, Summary, Value,
};

use super::{close, count_of};
use crate::families::{FamilyRef, families as grouped};
use crate::labels::LabelsRef;
use crate::number::float;
use crate::sample::{ExemplarRef, SampleRef};
use crate::{MetricType, ParseError, Syntax};

const CREATED: &str = "_created";

pub(super) fn families(text: &str, syntax: Syntax) -> Result<Vec<Family>, ParseError> {
    Ok(grouped(text, syntax)?.iter().map(family).collect())
}

fn family(from: &FamilyRef<'_>) -> Family {
    let kind = kind_of(from.kind);
    let mut series: Vec<Series> = Vec::new();
    let mut places: HashMap<Vec<Label>, usize> = HashMap::new();
    let is_created = |sample: &&SampleRef<'_>| ending(from, sample) == CREATED;
    for sample in from.samples.iter().filter(|sample| !is_created(sample)) {
        let new = series.len();
        let place = *places.entry(labels(sample.labels, kind)).or_insert_with_key(|labels| {
            series.push(new_series(labels.clone(), kind));
            new
        });
        match &mut series[place].value {
            Value::Number(number) => {
                let exemplar = sample.exemplar.map(exemplar);
                *number = Number { value: sample.value, exemplar };
            }
            Value::Histogram(histogram) => add(histogram, ending(from, sample), sample),
            Value::Summary(summary) => add_to(summary, ending(from, sample), sample),
        }
    }
    for sample in from.samples.iter().filter(is_created) {
        if let Some(place) = places.get(&labels(sample.labels, kind)) {
            series[*place].created = time(sample.value);
        }
    }
    for series in &mut series {
        if let Value::Histogram(histogram) = &mut series.value {
            close(histogram);
        }
    }
    Family {
        name: name_of(from),
        help: from.help.clone().unwrap_or_default().into_owned(),
        unit: from.unit.unwrap_or_default().to_owned(),
        kind,
        series,
    }
}

fn kind_of(declared: MetricType) -> Kind {
    match declared {
        MetricType::Counter => Kind::Counter,
        MetricType::Gauge => Kind::Gauge,
        MetricType::Histogram => Kind::Histogram,
        MetricType::GaugeHistogram => Kind::GaugeHistogram,
        MetricType::Summary => Kind::Summary,
        MetricType::Info => Kind::Info,
        MetricType::StateSet => Kind::StateSet,
        MetricType::Unknown => Kind::Unknown,
    }
}

/// The name as samples have it. OpenMetrics names a counter and an info without the ending of
/// their samples.
fn name_of(from: &FamilyRef<'_>) -> String {
    let own = match from.kind {
        MetricType::Counter => "_total",
        MetricType::Info => "_info",
        _ => "",
    };
    let mut endings = from.samples.iter().map(|sample| ending(from, sample));
    let has_ending = !own.is_empty() && endings.any(|ending| ending == own);
    format!("{}{}", from.name, if has_ending { own } else { "" })
}

/// The part of a sample's name behind the name of its family.
fn ending<'a>(from: &FamilyRef<'_>, sample: &'a SampleRef<'_>) -> &'a str {
    sample.name.strip_prefix(&*from.name).unwrap_or_default()
}

/// The labels that distinguish series.
fn labels(labels: LabelsRef<'_>, kind: Kind) -> Vec<Label> {
    let own = match kind {
        Kind::Histogram | Kind::GaugeHistogram => "le",
        Kind::Summary => "quantile",
        _ => "",
    };
    let labels = labels.iter().filter(|(name, _)| name != own);
    labels.map(|(name, value)| Label::new(name, value)).collect()
}

fn new_series(labels: Vec<Label>, kind: Kind) -> Series {
    let sum = f64::NAN;
    let value = match kind {
        Kind::Histogram | Kind::GaugeHistogram => {
            Value::Histogram(Histogram { sum, ..Histogram::default() })
        }
        Kind::Summary => Value::Summary(Summary { sum, ..Summary::default() }),
        _ => Value::default(),
    };
    Series { labels, value, created: None }
}

fn add(histogram: &mut Histogram, ending: &str, sample: &SampleRef<'_>) {
    let count = count_of(sample.value);
    match ending {
        "_sum" | "_gsum" => histogram.sum = sample.value,
        "_count" | "_gcount" => histogram.count = count,
        "_bucket" => {
            let bound = sample.labels.get("le").and_then(|le| float(&le));
            let Some(upper_bound) = bound.filter(|bound| !bound.is_nan()) else { return };
            if upper_bound == f64::INFINITY {
                // With thresholds below zero, OpenMetrics has no other count.
                histogram.count = count;
            }
            let exemplar = sample.exemplar.map(exemplar);
            histogram.classic.push(Bucket { upper_bound, cumulative_count: count, exemplar });
        }
        _ => {}
    }
}

fn add_to(summary: &mut Summary, ending: &str, sample: &SampleRef<'_>) {
    match ending {
        "_sum" => summary.sum = sample.value,
        "_count" => summary.count = count_of(sample.value),
        _ => {
            let quantile = sample.labels.get("quantile").and_then(|it| float(&it));
            let value = sample.value;
            summary.quantiles.extend(quantile.map(|quantile| Quantile { quantile, value }));
        }
    }
}

fn exemplar(from: ExemplarRef<'_>) -> Exemplar {
    let labels = from.labels.iter().map(|(name, value)| Label::new(name, value)).collect();
    Exemplar { labels, value: from.value, time: from.timestamp.and_then(time) }
}

/// The time that is this number of seconds after 1970.
fn time(seconds: f64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(seconds).ok()?)
}
