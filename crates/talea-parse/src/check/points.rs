//! Checks of the samples of one series together: histograms and summaries.

use super::canonical::shown;
use super::checker::Checker;
use super::family::{Group, HistogramParts, Place};
use super::fingerprint::Fingerprint;
use crate::{MetricType, SampleRef, Syntax};

/// The role of a sample in its series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Part {
    Bucket(f64),
    Quantile(f64),
    Sum,
    Count,
    Other,
}

impl Part {
    pub(super) fn of(ending: &str) -> Self {
        match ending {
            "_sum" | "_gsum" => Self::Sum,
            "_count" | "_gcount" => Self::Count,
            _ => Self::Other,
        }
    }
}

pub(super) fn add(
    checker: &mut Checker<'_>,
    at: usize,
    key: Fingerprint,
    part: Part,
    sample: &SampleRef<'_>,
    place: Place,
) {
    let syntax = checker.syntax;
    let family = &mut checker.families[at];
    let is_histogram = matches!(family.kind, MetricType::Histogram | MetricType::GaugeHistogram);
    if syntax == Syntax::Text && !is_histogram && family.kind != MetricType::Summary {
        return;
    }
    let again = family.group.replace(key) != Some(key);
    let known = family.groups.contains_key(&key);
    let begin = || {
        let parts = HistogramParts { first: place, ..HistogramParts::default() };
        let histogram = is_histogram.then(|| Box::new(parts));
        Group { timestamp: sample.timestamp, quantile: None, histogram }
    };
    let group = family.groups.entry(key).or_insert_with(begin);
    let apart = known && again && syntax == Syntax::OpenMetrics;
    let mixed =
        syntax == Syntax::OpenMetrics && group.timestamp.is_some() != sample.timestamp.is_some();
    let done = (syntax == Syntax::OpenMetrics && group.timestamp != sample.timestamp)
        .then(|| std::mem::replace(group, begin()));
    let before = group.quantile;
    let name = family.name.clone();
    match (part, &mut group.histogram) {
        (Part::Quantile(quantile), _) => group.quantile = Some(quantile),
        (Part::Bucket(le), Some(parts)) => parts.buckets.push((le, sample.value, place)),
        (Part::Sum, Some(parts)) => parts.sum = Some((sample.value, place)),
        (Part::Count, Some(parts)) => parts.count = Some((sample.value, place)),
        _ => {}
    }
    if mixed {
        let found = format!("samples of one series of {name} with and without a timestamp");
        let instead = "write all of them with a timestamp, or none".into();
        checker.violation(place, "timestamps-mixed", found, instead);
    }
    if apart {
        let found = format!("a sample of a series of {name} after samples of another series");
        let instead = "write the samples of each series together".into();
        checker.violation(place, "series-apart", found, instead);
    }
    if let Some(parts) = done.and_then(|group| group.histogram) {
        histogram(checker, at, &parts);
    }
    if let (Syntax::Text, Part::Quantile(now), Some(before)) = (syntax, part, before) {
        if now <= before {
            let found = format!("the quantile {} after {}", shown(now), shown(before));
            let instead = "write quantiles in ascending order".into();
            checker.violation(place, "quantile-order", found, instead);
        }
    }
}

/// Looks at the series of a family, at the end of the text.
pub(super) fn finish(checker: &mut Checker<'_>, at: usize) {
    let groups = std::mem::take(&mut checker.families[at].groups);
    let histograms = groups.values().filter_map(|group| group.histogram.as_deref());
    histograms.for_each(|parts| histogram(checker, at, parts));
    unit(checker, at);
}

fn unit(checker: &mut Checker<'_>, at: usize) {
    let family = &checker.families[at];
    let Some((unit, place)) = family.unit else { return };
    let (name, kind) = (family.name.clone(), family.kind);
    if let MetricType::Info | MetricType::StateSet = kind {
        let kind = kind.as_str(checker.syntax).unwrap_or_default();
        let found = format!("the {kind} {name} has the unit {unit}");
        checker.violation(place, "unit", found, "leave the UNIT line out".into());
    } else if !name.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_')) {
        let found = format!("the name {name} does not end in its unit {unit}");
        checker.violation(place, "unit", found, format!("call it {name}_{unit}"));
    }
}

/// Looks at the series of a histogram whose parts are all there.
fn histogram(checker: &mut Checker<'_>, at: usize, parts: &HistogramParts) {
    let kind = checker.families[at].kind;
    let name = checker.families[at].name.clone();
    let strict = checker.syntax == Syntax::OpenMetrics;
    let [sum_of, count_of] = match kind {
        MetricType::GaugeHistogram => ["_gsum", "_gcount"],
        _ => ["_sum", "_count"],
    };
    buckets(checker, parts);
    let last = parts.buckets.last();
    let place = last.map_or(parts.first, |&(.., place)| place);
    let infinite = parts.buckets.iter().find(|&&(le, ..)| le == f64::INFINITY);
    if infinite.is_none() {
        let found = format!("a series of {name} has no bucket up to +Inf");
        let instead = format!("write {name}_bucket{{le=\"+Inf\"}} with the count of all");
        checker.violation(place, "bucket-inf", found, instead);
    }
    if let (Some(&(_, all, _)), Some((count, place))) = (infinite, parts.count) {
        if all != count && !(all.is_nan() && count.is_nan()) {
            let found = {
                let (count, all) = (shown(count), shown(all));
                format!("{name}{count_of} is {count}, its bucket up to +Inf has {all}")
            };
            checker.violation(place, "count", found, "write the same number in both".into());
        }
    }
    let negative = parts.buckets.iter().any(|&(le, ..)| le < 0.0);
    match (parts.sum, parts.count) {
        (Some((_, place)), None) if strict => {
            let found = format!("{name}{sum_of} without {name}{count_of}");
            checker.violation(place, "sum-and-count", found, "write both or neither".into());
        }
        (None, Some((_, place))) if strict => {
            let found = format!("{name}{count_of} without {name}{sum_of}");
            checker.violation(place, "sum-and-count", found, "write both or neither".into());
        }
        (_, None) if !strict => {
            let found = format!("a series of {name} has no {name}_count");
            checker.violation(place, "sum-and-count", found, format!("write {name}_count too"));
        }
        (None, _) if !strict => {
            let found = format!("a series of {name} has no {name}_sum");
            checker.advice(place, "sum-and-count", found, format!("write {name}_sum too"));
        }
        _ => {}
    }
    let Some((sum, place)) = parts.sum.filter(|_| strict) else { return };
    if kind == MetricType::Histogram && negative {
        let found = format!("{name}_sum of a histogram with buckets below 0");
        checker.violation(place, "sum-negative", found, "leave sum and count out".into());
    } else if kind == MetricType::GaugeHistogram && sum < 0.0 && !negative {
        let found = format!("{name}_gsum is {}, and no bucket is below 0", shown(sum));
        checker.violation(place, "sum-negative", found, "write 0 or more".into());
    }
}

/// Whether buckets ascend, and each counts what those before it do.
fn buckets(checker: &mut Checker<'_>, parts: &HistogramParts) {
    for pair in parts.buckets.windows(2) {
        let [(le, count, _), (next, more, place)] = [pair[0], pair[1]];
        let [low, high] = [shown(le), shown(next)];
        if next <= le {
            let found = format!("the bucket up to {high} after that up to {low}");
            let instead = "write buckets in ascending order of le, each once".into();
            checker.violation(place, "bucket-order", found, instead);
        } else if more < count {
            let [count, more] = [shown(count), shown(more)];
            let found = format!("the bucket up to {high} has {more}, that up to {low} has {count}");
            let instead = format!("count what is below too: {count} or more");
            checker.violation(place, "bucket-cumulative", found, instead);
        }
    }
}
