//! One sample: its name, its labels, its value, and whether it may stand there.

use super::canonical::{canonical, shown};
use super::checker::Checker;
use super::family::Place;
use super::finding::without_reserved;
use super::fingerprint::Label;
use super::points::{self, Part};
use crate::{ExemplarRef, LabelsRef, MetricType, SampleRef, Syntax};

/// How many code points an exemplar's labels may have.
const EXEMPLAR: usize = 128;

/// Looks at a sample of a family; `ending` is what its name has beyond the family's, none
/// where it may not be called so.
pub(super) fn sample<'a>(
    checker: &mut Checker<'a>,
    at: usize,
    ending: Option<&'static str>,
    sample: &SampleRef<'a>,
) {
    let places = checker.lexer.places;
    let place = checker.place(places.name);
    checker.claim(at, place);
    checker.families[at].sampled.get_or_insert(place.line);
    let Some(ending) = ending else { return misnamed(checker, at, sample, place) };
    let mut labels = Sorted::of(sample.labels);
    let labels_at = places.labels;
    names(checker, at, sample.labels, &labels, labels_at);
    let kind = checker.families[at].kind;
    let part = part(checker, at, ending, sample, &labels);
    labels.kept(checker.last_type);
    series(checker, sample, &labels, place);
    value(checker, at, kind, ending, sample.value);
    if let Some(exemplar) = &sample.exemplar {
        self::exemplar(checker, kind, ending, exemplar, part);
    }
    let family = &checker.families[at];
    let special = special(kind, ending, &family.name);
    let own = labels.present().filter(|(name, _)| Some(name.as_ref()) != special);
    let group = checker.fingerprints.of(&family.name, own);
    points::add(checker, at, group, part, sample, place);
}

fn misnamed(checker: &mut Checker<'_>, at: usize, sample: &SampleRef<'_>, place: Place) {
    let family = &checker.families[at];
    let name = &family.name;
    let kind = family.kind.as_str(checker.syntax).unwrap_or_default();
    let found = format!("{} is no sample of a {kind}", sample.name);
    let endings = family.kind.endings(checker.syntax);
    let own = endings.iter().find(|&&ending| ending == "_total" || ending == "_info");
    let instead = match own.and_then(|own| name.strip_suffix(own)) {
        Some(base) => format!("write # TYPE {base} {kind}, the rest belongs to the sample"),
        None => {
            let names: Vec<_> = endings.iter().map(|ending| format!("{name}{ending}")).collect();
            format!("write {}", names.join(" or "))
        }
    };
    checker.violation(place, "sample-name", found, instead);
}

/// Labels in the order of their names, which identify the series.
struct Sorted<'a>(Vec<Label<'a>>);

impl<'a> Sorted<'a> {
    fn of(labels: LabelsRef<'a>) -> Self {
        let mut sorted: Vec<_> = labels.iter().collect();
        sorted.sort_unstable();
        Self(sorted)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_ref())
    }

    /// Those that have a value: a label without one is a missing label to Prometheus.
    fn present(&self) -> impl Iterator<Item = &Label<'a>> + Clone {
        self.0.iter().filter(|(_, value)| !value.is_empty())
    }

    /// As Prometheus keeps them below the last `# TYPE`, of whichever metric that is: it writes the
    /// numbers of thresholds and quantiles in one way.
    fn kept(&mut self, last_type: MetricType) {
        let special = match last_type {
            MetricType::Histogram => "le",
            MetricType::Summary => "quantile",
            _ => return,
        };
        for (name, value) in &mut self.0 {
            if name == special {
                if let Some(number) = crate::number::float(value) {
                    *value = canonical(number).into();
                }
            }
        }
    }

    fn twice(&self) -> Option<&str> {
        let mut pairs = self.0.windows(2);
        pairs.find(|pair| pair[0].0 == pair[1].0).map(|pair| pair[0].0.as_ref())
    }
}

/// The label that distinguishes a metric's parts.
fn special<'a>(kind: MetricType, ending: &str, family: &'a str) -> Option<&'a str> {
    match (kind, ending) {
        (MetricType::Histogram | MetricType::GaugeHistogram, "_bucket") => Some("le"),
        (MetricType::Summary, "") => Some("quantile"),
        (MetricType::StateSet, _) => Some(family),
        _ => None,
    }
}

fn names<'a>(
    checker: &mut Checker<'a>,
    at: usize,
    labels: LabelsRef<'a>,
    sorted: &Sorted<'a>,
    labels_at: usize,
) {
    if let Some(twice) = sorted.twice() {
        let again = labels.placed().filter(|label| label.name == twice).nth(1);
        let place = checker.place(labels_at + again.map_or(0, |label| label.at));
        let found = format!("the label {twice} stands here twice");
        checker.violation(place, "label-twice", found, "give each label one value".into());
    }
    let reserved = match checker.syntax {
        Syntax::Text => "__",
        Syntax::OpenMetrics => "_",
    };
    for label in labels.placed() {
        let name = label.name.as_ref();
        let place = checker.place(labels_at + label.at);
        if name.starts_with(reserved) && checker.families[at].is_first("reserved-label", name) {
            let found = format!("the label {name} begins with '{reserved}', which is reserved");
            let instead = without_reserved(name);
            checker.violation(place, "reserved-label", found, instead);
        }
        super::advice::label(checker, at, name, place);
    }
}

/// Whether the series was there already.
fn series(checker: &mut Checker<'_>, sample: &SampleRef<'_>, labels: &Sorted<'_>, place: Place) {
    let series = checker.fingerprints.of(&sample.name, labels.present());
    let now = (place.line, sample.timestamp);
    let Some((line, before)) = checker.series.insert(series, now) else { return };
    let found = || {
        let braces = match sample.labels.raw() {
            "" => String::new(),
            raw => format!("{{{raw}}}"),
        };
        let name: String = format!("{}{braces}", sample.name).chars().take(80).collect();
        format!("the series {name} stands in line {line} already")
    };
    match (checker.syntax, before, sample.timestamp) {
        (Syntax::OpenMetrics, Some(before), Some(now)) if now > before => {}
        (Syntax::OpenMetrics, Some(_), Some(_)) => checker.violation(
            place,
            "timestamp-order",
            found(),
            "give it a later timestamp than the one before".into(),
        ),
        _ => {
            let instead = match labels.0.iter().find(|(_, value)| value.is_empty()) {
                Some((name, _)) => {
                    format!("write each series once: {name} without a value is no label")
                }
                None => "write each series once".to_owned(),
            };
            checker.violation(place, "series-twice", found(), instead);
        }
    }
}

/// The role of the sample in its metric, for example a bucket with its threshold.
fn part(
    checker: &mut Checker<'_>,
    at: usize,
    ending: &'static str,
    sample: &SampleRef<'_>,
    labels: &Sorted<'_>,
) -> Part {
    let kind = checker.families[at].kind;
    let name = checker.families[at].name.clone();
    let Some(label) = special(kind, ending, &name) else { return Part::of(ending) };
    let labels_at = checker.lexer.places.labels;
    let Some(text) = labels.get(label) else {
        let place = checker.place(checker.lexer.places.name);
        let found = format!("{} has no label {label}", sample.name);
        let instead = match kind {
            MetricType::StateSet => format!("write the state as {label}=\"…\""),
            MetricType::Summary => "write the quantile as quantile=\"0.5\"".to_owned(),
            _ => "write the threshold as le=\"1.0\"".to_owned(),
        };
        checker.violation(place, "label-missing", found, instead);
        return Part::Other;
    };
    if kind == MetricType::StateSet {
        return Part::Other;
    }
    let value_at = sample.labels.placed().find(|placed| placed.name == label);
    let place = checker.place(labels_at + value_at.map_or(0, |placed| placed.value_at));
    let number = crate::number::float(text).filter(|number| !number.is_nan());
    let Some(number) = number else {
        let found = format!("{label}={text:?} is no number");
        checker.violation(place, "threshold", found, format!("write a number, as {label}=\"0.5\""));
        return Part::Other;
    };
    if checker.syntax == Syntax::OpenMetrics && text != canonical(number) {
        let found = format!("{label}={text:?} is not how this number is written everywhere");
        let instead = format!("write {label}=\"{}\"", canonical(number));
        if number.is_infinite() {
            checker.violation(place, "canonical-number", found, instead);
        } else {
            checker.advice(place, "canonical-number", found, instead);
        }
    }
    if kind == MetricType::Summary {
        if !(0.0..=1.0).contains(&number) {
            let found = format!("the quantile {} lies outside of 0 to 1", shown(number));
            checker.violation(place, "quantile", found, "write it as a fraction of 1".into());
        }
        return Part::Quantile(number);
    }
    Part::Bucket(number)
}

/// Whether the value is one that such a sample can have.
fn value(checker: &mut Checker<'_>, at: usize, kind: MetricType, ending: &'static str, value: f64) {
    let negative = value < 0.0;
    if checker.syntax == Syntax::Text {
        // The documentation says nothing about values; Prometheus' own Go library refuses this.
        if kind == MetricType::Histogram && ending != "_sum" && negative {
            let place = checker.place(checker.lexer.places.value);
            let found = format!("a count of {}", shown(value));
            checker.violation(place, "value", found, "write 0 or more".into());
        }
        if kind == MetricType::Counter && (negative || value.is_nan()) {
            let place = checker.place(checker.lexer.places.value);
            let found = format!("a counter of {}", shown(value));
            checker.advice(place, "value", found, "count from 0 up, or make it a gauge".into());
        }
        return;
    }
    let whole = value.fract() == 0.0;
    let (fault, instead) = match (kind, ending) {
        (_, "_created") if !value.is_finite() => ("no time", "write seconds since 1970"),
        (_, "_created") => return,
        (MetricType::Counter, _) if negative || value.is_nan() => {
            ("no count", "write 0 or more, or make it a gauge")
        }
        (MetricType::StateSet, _) if value != 0.0 && value != 1.0 => {
            ("no state", "write 1 for on, 0 for off")
        }
        (MetricType::Info, _) if value != 1.0 => ("not 1", "write 1, as for every info"),
        (MetricType::Summary, "") if negative => ("negative", "write 0 or more, or NaN for none"),
        (_, "_bucket" | "_count" | "_gcount") if negative || !whole => {
            ("no count", "write a whole number, 0 or more")
        }
        (MetricType::Histogram | MetricType::Summary, "_sum") if negative || value.is_nan() => {
            ("no sum that can only grow", "write 0 or more, or no sum where values are negative")
        }
        (_, "_gsum") if value.is_nan() => ("no sum", "write a number"),
        _ => return,
    };
    let place = checker.place(checker.lexer.places.value);
    let name = checker.families[at].name.clone();
    let found = format!("the value {} of {name}{ending} is {fault}", shown(value));
    checker.violation(place, "value", found, instead.into());
}

fn exemplar(
    checker: &mut Checker<'_>,
    kind: MetricType,
    ending: &'static str,
    exemplar: &ExemplarRef<'_>,
    part: Part,
) {
    let place = checker.place(checker.lexer.places.exemplar);
    let counts = matches!(
        (kind, ending),
        (MetricType::Counter, "_total")
            | (MetricType::Histogram | MetricType::GaugeHistogram, "_bucket")
    );
    if !counts {
        let found = "an exemplar of a sample that is neither a counter's nor a bucket's".into();
        checker.violation(place, "exemplar-place", found, "leave it out".into());
    }
    let chars = |text: &str| text.chars().count();
    let len: usize = exemplar.labels.iter().map(|(name, value)| chars(&name) + chars(&value)).sum();
    if len > EXEMPLAR {
        let found = format!("the exemplar's labels have {len} characters");
        let instead = format!("keep names and values to {EXEMPLAR}");
        checker.violation(place, "exemplar-length", found, instead);
    }
    if let Some((name, _)) = exemplar.labels.iter().find(|(name, _)| name.starts_with('_')) {
        let found = format!("the exemplar's label {name} begins with '_', which is reserved");
        let instead = without_reserved(&name);
        checker.violation(place, "reserved-label", found, instead);
    }
    if let Some(twice) = Sorted::of(exemplar.labels).twice() {
        let found = format!("the exemplar has the label {twice} twice");
        checker.violation(place, "label-twice", found, "give each label one value".into());
    }
    if let Part::Bucket(le) = part {
        if exemplar.value > le {
            let found = format!(
                "an exemplar of {} in the bucket up to {}",
                shown(exemplar.value),
                shown(le)
            );
            let instead = "write it at the bucket that its value falls into".into();
            checker.violation(place, "exemplar-value", found, instead);
        }
    }
}
