//! A snapshot or a page in the types of talea-page, without an encoding in between. Names are as the
//! registry has them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use talea_page as model;

use super::Escaping;
use super::openmetrics::unit;
use super::pages::{Family, Pages};
use super::shown_names::{LabelNames, ShownNames};
use crate::definition::kind::Kind;
use crate::histogram::native_buckets::NativeBuckets;
use crate::labels::{RawLabel, raw_labels};
use crate::page::Page;
use crate::snapshot::{FamilySnapshot, SeriesSnapshot, Shown, Snapshot};

impl Snapshot {
    /// Its families in the types of the [model of a page](crate::model), with the constant labels.
    /// Families without series are left out. Cost: a few allocations for each series and label.
    pub fn to_families(&self) -> Vec<model::Family> {
        families(self).collect()
    }
}

impl Page {
    /// Its families in the types of the [model of a page](crate::model), each series with the label of
    /// its part. All families keep their types, as in protobuf. Families without series are left out.
    ///
    /// The page must be joined, as the page of [`Scraper::page`](crate::Scraper::page) is.
    pub fn to_families(&self) -> Vec<model::Family> {
        families(self).collect()
    }

    /// The same, each made as it is asked for.
    pub(crate) fn families(&self) -> impl Iterator<Item = model::Family> {
        families(self)
    }
}

fn families(pages: &dyn Pages) -> impl Iterator<Item = model::Family> {
    let names = ShownNames::new(Escaping::AllowUtf8);
    let mut place = 0;
    let wholes = std::iter::from_fn(move || {
        let whole = Family::at(pages, place)?;
        place += whole.places();
        Some(whole)
    });
    wholes.filter_map(move |whole| model_of(&whole, &names))
}

/// `None` if it has no series.
fn model_of(whole: &Family<'_>, names: &ShownNames) -> Option<model::Family> {
    let labels = names.labels(whole);
    let mut series = Vec::new();
    for (label, part) in whole.parts() {
        let bounds: Vec<f64> = part.bounds().collect();
        series.extend(part.series().map(|it| Part { label, bounds: &bounds }.series(&it, &labels)));
    }
    let family = whole.first();
    (!series.is_empty()).then(|| model::Family {
        name: family.name().to_owned(),
        help: family.help().to_owned(),
        unit: unit(family.kind(), family.name()).unwrap_or_default().to_owned(),
        kind: kind_of(&family),
        series,
    })
}

fn kind_of(family: &FamilySnapshot<'_>) -> model::Kind {
    match family.kind() {
        Kind::Counter => model::Kind::Counter,
        Kind::Gauge => model::Kind::Gauge,
        Kind::Histogram => model::Kind::Histogram,
        Kind::Info => model::Kind::Info,
        Kind::StateSet => model::Kind::StateSet,
        Kind::Summary => model::Kind::Summary,
    }
}

/// What the series of one part of a family have in common.
struct Part<'a> {
    /// Label text that each begins with.
    label: &'a str,
    /// The upper bounds of their classic buckets.
    bounds: &'a [f64],
}

impl Part<'_> {
    fn series(&self, series: &SeriesSnapshot<'_>, names: &LabelNames) -> model::Series {
        let mut labels = labels(self.label.as_bytes());
        labels.extend(raw_labels(series.label_bytes()).map(|RawLabel { name, value }| {
            let name = String::from_utf8_lossy(name);
            model::Label::new(names.of(&name), String::from_utf8_lossy(&value))
        }));
        let kind = series.family().kind();
        let value = match series.shown() {
            Shown::Histogram => model::Value::Histogram(self.histogram(series)),
            Shown::Summary => model::Value::Summary(model::Summary {
                count: series.count(),
                sum: series.sum(),
                quantiles: series
                    .quantiles()
                    .map(|(quantile, value)| model::Quantile { quantile, value })
                    .collect(),
            }),
            number => model::Value::Number(model::Number {
                value: number.as_f64(),
                exemplar: series.exemplar(0).filter(|_| kind == Kind::Counter).map(exemplar),
            }),
        };
        let counts = matches!(kind, Kind::Counter | Kind::Histogram | Kind::Summary);
        let created = series.created_nanos().filter(|_| counts).and_then(time);
        model::Series { labels, value, created }
    }

    fn histogram(&self, series: &SeriesSnapshot<'_>) -> model::Histogram {
        let mut counts = Vec::new();
        let count = series.cumulative(&mut counts);
        let buckets = self.bounds.iter().zip(counts).enumerate();
        let native = series.native();
        let exemplars = series.raw_exemplars().iter().filter(|_| native.is_some());
        model::Histogram {
            count,
            sum: series.sum(),
            classic: buckets
                .map(|(n, (bound, cumulative_count))| model::Bucket {
                    upper_bound: *bound,
                    cumulative_count,
                    exemplar: series.exemplar(n).map(exemplar),
                })
                .collect(),
            exemplars: exemplars.map(exemplar).collect(),
            native: native.map(native_of),
        }
    }
}

fn native_of(from: NativeBuckets) -> model::Native {
    model::Native {
        schema: from.schema().into(),
        zero_threshold: from.zero_threshold(),
        zero_count: from.zero_count(),
        positive: from.positive,
        negative: from.negative,
    }
}

fn labels(text: &[u8]) -> Vec<model::Label> {
    let labels = raw_labels(text).map(|RawLabel { name, value }| {
        model::Label::new(String::from_utf8_lossy(name), String::from_utf8_lossy(&value))
    });
    labels.collect()
}

fn exemplar(from: &talea_region::Exemplar) -> model::Exemplar {
    model::Exemplar { labels: labels(&from.text), value: from.value, time: time(from.unix_nanos) }
}

fn time(unix_nanos: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_nanos(unix_nanos))
}
