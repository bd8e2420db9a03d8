//! Messages of failing assertions on a snapshot: the series asked for, the one found, the nearest
//! ones, and advice.

use std::fmt;

use super::nearest;
use super::query::{selector, shown};
use crate::definition::kind::Kind;
use crate::definition::names::OVERFLOW;
use crate::error::counted;
use crate::labels::LabelText;
use crate::snapshot::{FamilySnapshot, SeriesSnapshot, Snapshot, Value};

/// Lines of a list.
const SHOWN: usize = 5;

/// The message of an assertion that fails.
pub(crate) struct Failure {
    asked: String,
    found: String,
    near: String,
    to_do: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "asked: {}\nfound: {}{}", self.asked, self.found, self.near)?;
        match self.to_do.is_empty() {
            true => Ok(()),
            false => write!(f, "\nto do: {}", self.to_do.join("; ")),
        }
    }
}

/// The message of [`Snapshot::expect_value`].
pub(crate) fn no_value(snapshot: &Snapshot, name: &str, labels: &[(&str, &str)]) -> Failure {
    let asked = format!("the value of {}", selector_of(name, labels));
    missing(snapshot, asked, name, labels, Wanted::Value)
}

/// The message of [`Snapshot::expect_histogram`].
pub(crate) fn no_histogram(snapshot: &Snapshot, name: &str, labels: &[(&str, &str)]) -> Failure {
    let asked = format!("the histogram {}", selector_of(name, labels));
    missing(snapshot, asked, name, labels, Wanted::Histogram)
}

#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    Value,
    Histogram,
}

/// The message of [`Snapshot::assert_value`].
pub(crate) fn wrong_value(
    snapshot: &Snapshot,
    name: &str,
    labels: &[(&str, &str)],
    expected: f64,
) -> Failure {
    let asked = format!("{} {}", selector_of(name, labels), shown(expected));
    let there = snapshot.only(name, labels).and_then(|series| Some((series, series.as_f64()?)));
    let Some((series, value)) = there else {
        return missing(snapshot, asked, name, labels, Wanted::Value);
    };
    let mut others = nearest::series(series.family(), labels);
    others.retain(|other| other.label_text() != series.label_text());
    let mut to_do = room_advice(series.family());
    let close = expected.is_finite() && (value - expected).abs() <= expected.abs() * 1e-9;
    if close && matches!(series.value(), Value::Float(_)) {
        to_do.push("values are compared exactly; compare expect_value with a tolerance".to_owned());
    }
    let near = list("nearest other series", &others, |series| format!("{series:?}"));
    Failure { asked, found: format!("{series:?}"), near, to_do }
}

fn missing(
    snapshot: &Snapshot,
    asked: String,
    name: &str,
    labels: &[(&str, &str)],
    wanted: Wanted,
) -> Failure {
    let Some(family) = snapshot.family(name) else {
        return unknown(snapshot, asked, name);
    };
    let series = nearest::series(family, labels);
    let kind = family.kind().as_str();
    let (found, to_do) = match (wanted, family.kind(), series.first()) {
        (Wanted::Value, Kind::Summary, _) => {
            if let Some(value) = snapshot.value(name, labels) {
                let found = format!("{} {}", selector_of(name, labels), shown(value));
                return Failure { asked, found, near: String::new(), to_do: Vec::new() };
            }
            let to_do = "ask for one of its quantiles, as (\"quantile\", \"0.5\") among the labels, or \
                         for its count and sum by expect_histogram";
            (format!("{name} is a {kind}"), vec![to_do.to_owned()])
        }
        (Wanted::Value, Kind::Histogram, _) => {
            (format!("{name} is a {kind}"), vec!["ask for it by expect_histogram".to_owned()])
        }
        (Wanted::Histogram, Kind::Counter | Kind::Gauge, _) => {
            (format!("{name} is a {kind}"), vec!["ask for it by expect_value".to_owned()])
        }
        (.., None) => (
            format!("the {kind} {name} has no series"),
            vec!["use a label combination before the snapshot; that makes its series".to_owned()],
        ),
        (.., Some(nearest)) => {
            let mut to_do = differences(nearest, labels, wanted);
            to_do.extend(room_advice(family));
            (format!("no such series of the {kind} {name}"), to_do)
        }
    };
    let near = list("nearest series", &series, |series| format!("{series:?}"));
    Failure { asked, found, near, to_do }
}

/// If no family has the name.
fn unknown(snapshot: &Snapshot, asked: String, name: &str) -> Failure {
    let families = nearest::families(snapshot, name);
    let near = list("nearest names", &families, |family| {
        format!("{} {}", family.name(), family.kind().as_str())
    });
    let (found, to_do) = match families.is_empty() {
        true => (
            "nothing: the registry is empty".to_owned(),
            "install or register the metrics in this registry before the snapshot".to_owned(),
        ),
        false => (
            format!("no metric is named {name}"),
            families.iter().find_map(|family| name_advice(*family, name)).unwrap_or_else(|| {
                "compare the name; is its set installed in this registry?".to_owned()
            }),
        ),
    };
    Failure { asked, found, near, to_do: vec![to_do] }
}

/// The message of [`Snapshot::assert_no_series`].
pub(crate) fn unwanted(
    found: &[SeriesSnapshot<'_>],
    name: &str,
    labels: &[(&str, &str)],
) -> Failure {
    let further = found.iter().any(|series| series.labels().len() > labels.len());
    let to_do = "series that carry further labels are found too; name more labels for fewer";
    Failure {
        asked: format!("no series {}", selector_of(name, labels)),
        found: format!("{} series", found.len()),
        near: list("series", found, |series| format!("{series:?}")),
        to_do: further.then(|| to_do.to_owned()).into_iter().collect(),
    }
}

/// The selector `name{labels}` of a request.
fn selector_of(name: &str, labels: &[(&str, &str)]) -> String {
    let labels: Vec<_> = labels.iter().map(|(name, value)| LabelText::one(name, value)).collect();
    selector(name, &labels.join(","))
}

/// The first few lines, and how many more there are.
fn list<T>(title: &str, all: &[T], line: impl Fn(&T) -> String) -> String {
    if all.is_empty() {
        return String::new();
    }
    let lines = all.iter().take(SHOWN).map(|item| format!("\n  {}", line(item)));
    let more = match all.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("\n  and {more} more"),
    };
    format!("\n{title}:{}{more}", lines.collect::<String>())
}

/// Advice if this family was meant by the name; `None` if that is not certain.
fn name_advice(family: FamilySnapshot<'_>, asked: &str) -> Option<String> {
    let (name, kind) = (family.name(), family.kind().as_str());
    let more = name.strip_prefix(asked).and_then(|rest| rest.strip_prefix('_'));
    let sample = asked.strip_prefix(name).and_then(|rest| rest.strip_prefix('_'));
    let in_set = name.strip_suffix(asked).is_some_and(|prefix| prefix.ends_with('_'));
    match (family.kind(), more, sample) {
        (Kind::Counter, Some("total"), _) => {
            Some(format!("the name of a counter ends in _total: ask for {name}"))
        }
        (Kind::Histogram | Kind::Summary, Some(unit @ ("seconds" | "bytes")), _) => {
            Some(format!("the name of a {kind} of {unit} ends in _{unit}: ask for {name}"))
        }
        (Kind::Histogram | Kind::Summary, _, Some("bucket" | "count" | "sum")) => {
            Some(format!("{asked} is a part of a {kind}: ask for {name} by expect_histogram"))
        }
        (Kind::Gauge, _, Some("total")) => {
            Some(format!("only the name of a counter ends in _total: ask for {name}"))
        }
        _ if in_set => Some(format!("a set's prefix is part of the name: ask for {name}")),
        _ => None,
    }
}

/// The difference between the nearest series and the one asked for.
fn differences(
    nearest: &SeriesSnapshot<'_>,
    labels: &[(&str, &str)],
    wanted: Wanted,
) -> Vec<String> {
    let found = nearest.labels();
    let absent = labels.iter().filter(|(name, _)| !found.iter().any(|(n, _)| n == name));
    let other = found.iter().filter(|(n, v)| labels.iter().any(|(name, w)| n == name && v != w));
    let further = found.iter().filter(|(n, _)| !labels.iter().any(|(name, _)| n == name));
    let text = |(name, value): &(&str, String)| LabelText::one(name, value);

    let absent: Vec<_> = absent.map(|(name, _)| *name).collect();
    let other: Vec<_> = other.map(text).collect();
    let further: Vec<_> = further.map(text).collect();
    let mut to_do = Vec::new();
    if !absent.is_empty() {
        let names: Vec<_> = found.iter().map(|(name, _)| *name).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        to_do.push(format!(
            "the nearest series has no label {}: its labels are {names}",
            absent.join(", ")
        ));
    }
    if !other.is_empty() {
        to_do.push(format!("compare the values: the nearest series has {}", other.join(",")));
    }
    if wanted == Wanted::Value && absent.is_empty() && !further.is_empty() {
        to_do.push(format!(
            "labels must be all there: this series has also {} (Snapshot::total sums over such series)",
            further.join(",")
        ));
    }
    to_do
}

/// A note if the family refused series: the one asked for may be among them.
fn room_advice(family: FamilySnapshot<'_>) -> Vec<String> {
    match family.dropped() {
        0 => Vec::new(),
        n => vec![format!(
            "{} of a new series found no room and went to {{{OVERFLOW}}}: raise the limit",
            counted(n as usize, "look-up")
        )],
    }
}
