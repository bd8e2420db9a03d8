//! Names, units and texts as `promtool check metrics` recommends them.
//!
//! Source: "Metric and label naming" in the Prometheus documentation, and the package
//! promlint of Prometheus' own Go library.

use super::checker::Checker;
use super::family::Place;
use crate::{MetricType, Syntax};

/// Units and what to measure in instead; those that are right already are their own.
const UNITS: [(&str, &str); 24] = [
    ("amperes", "amperes"),
    ("bytes", "bytes"),
    ("celsius", "celsius"),
    ("grams", "grams"),
    ("joules", "joules"),
    ("kelvin", "kelvin"),
    ("meters", "meters"),
    ("metres", "metres"),
    ("seconds", "seconds"),
    ("volts", "volts"),
    ("minutes", "seconds"),
    ("hours", "seconds"),
    ("days", "seconds"),
    ("weeks", "seconds"),
    ("kelvins", "kelvin"),
    ("fahrenheit", "celsius"),
    ("rankine", "celsius"),
    ("inches", "meters"),
    ("yards", "meters"),
    ("miles", "meters"),
    ("bits", "bytes"),
    ("calories", "joules"),
    ("pounds", "grams"),
    ("ounces", "grams"),
];

const PREFIXES: [&str; 18] = [
    "pico", "nano", "micro", "milli", "centi", "deci", "deca", "hecto", "kilo", "kibi", "mega",
    "mibi", "giga", "gibi", "tera", "tebi", "peta", "pebi",
];

const ABBREVIATIONS: [&str; 14] =
    ["s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d"];

const TYPES: [&str; 4] = ["counter", "gauge", "summary", "histogram"];

/// Looks at a family that has samples, at the end of the text.
pub(super) fn family(checker: &mut Checker<'_>, at: usize) {
    let strict = checker.syntax == Syntax::OpenMetrics;
    let family = &checker.families[at];
    if family.sampled.is_none() {
        return;
    }
    let (name, kind, place) = (family.name.clone(), family.kind, family.place);
    let (typed, has_help) = (family.typed.is_some(), family.has_help);
    let mut advise = |rule, found: String, instead: String| {
        checker.advice(place, rule, found, instead);
    };
    if !has_help {
        advise(
            "help",
            format!("{name} has no help"),
            format!("write # HELP {name} and what it is"),
        );
    }
    if strict && !typed {
        advise("type", format!("{name} has no type"), format!("write # TYPE {name} and its type"));
    }
    if let Some((unit, base)) = unit(&name) {
        let better = name.replacen(unit, base, 1);
        advise("base-unit", format!("{name} is in {unit}"), format!("write {better} in {base}"));
    }
    endings(kind, &name, strict, &mut advise);
    let lower = name.to_ascii_lowercase();
    for word in TYPES.into_iter().filter(|word| has_word(&lower, word)) {
        let found = format!("{name} has its type {word} in its name");
        advise("type-in-name", found, format!("leave {word} out"));
    }
    if name.contains(':') {
        let found = format!("{name} has a colon, which is for recording rules");
        advise("colon", found, format!("write {}", name.replace(':', "_")));
    }
    if is_camel_case(&name) {
        let found = format!("the name {name} is in camelCase");
        advise("camel-case", found, format!("write {}", snake_case(&name)));
    }
    for short in ABBREVIATIONS.into_iter().filter(|short| has_word(&lower, short)) {
        let found = format!("{name} has the abbreviated unit {short}");
        advise("unit-abbreviated", found, "write the unit out, as in seconds or bytes".into());
    }
}

/// Endings that only some types should have. In OpenMetrics the endings of counters are no
/// question of taste.
fn endings(
    kind: MetricType,
    name: &str,
    strict: bool,
    advise: &mut impl FnMut(&'static str, String, String),
) {
    if kind == MetricType::Unknown {
        return;
    }
    if kind == MetricType::Counter {
        if !strict && !name.ends_with("_total") {
            let found = format!("the counter {name} does not end in _total");
            advise("counter-total", found, format!("call it {name}_total"));
        }
    } else if let Some(base) = name.strip_suffix("_total") {
        let found = format!("{name} ends in _total and is no counter");
        advise("total-ending", found, format!("call it {base}"));
    }
    let is_histogram = matches!(kind, MetricType::Histogram | MetricType::GaugeHistogram);
    let has_count = is_histogram || kind == MetricType::Summary;
    let reserved = [("_bucket", is_histogram), ("_count", has_count), ("_sum", has_count)];
    for (ending, _) in reserved.into_iter().filter(|(end, has)| !has && name.ends_with(end)) {
        let found = format!("{name} ends in {ending}, as samples of histograms do");
        advise("reserved-ending", found, format!("call it otherwise than …{ending}"));
    }
}

/// Looks at a label's name, once a family.
pub(super) fn label(checker: &mut Checker<'_>, at: usize, name: &str, place: Place) {
    let family = &mut checker.families[at];
    let kind = family.kind;
    let is_histogram = matches!(kind, MetricType::Histogram | MetricType::GaugeHistogram);
    let (rule, found, instead) = match name {
        "le" if !is_histogram && kind != MetricType::Unknown => (
            "reserved-label-name",
            format!("{} is no histogram and has the label le", family.name),
            "call the label otherwise".to_owned(),
        ),
        "quantile" if !matches!(kind, MetricType::Summary | MetricType::Unknown) => (
            "reserved-label-name",
            format!("{} is no summary and has the label quantile", family.name),
            "call the label otherwise".to_owned(),
        ),
        _ if is_camel_case(name) => (
            "label-camel-case",
            format!("the label {name} is in camelCase"),
            format!("write {}", snake_case(name)),
        ),
        _ => return,
    };
    if family.is_first(rule, name) {
        checker.advice(place, rule, found, instead);
    }
}

/// The first unit in a name, if it is not one that is recommended; and the one that is.
fn unit(name: &str) -> Option<(&str, &'static str)> {
    let base = |word: &str| UNITS.into_iter().find(|(unit, _)| *unit == word).map(|(_, base)| base);
    let mut units = name.split('_').filter_map(|word| {
        base(word)
            .or_else(|| {
                let prefix = PREFIXES.into_iter().find(|prefix| word.starts_with(prefix))?;
                base(&word[prefix.len()..])
            })
            .map(|base| (word, base))
    });
    units.next().filter(|(unit, base)| unit != base)
}

/// Whether a name has a word behind its first one.
fn has_word(name: &str, word: &str) -> bool {
    name.split('_').skip(1).any(|own| own == word)
}

fn is_camel_case(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
}

fn snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut lower = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && lower {
            out.push('_');
        }
        lower = c.is_ascii_lowercase();
        out.push(c.to_ascii_lowercase());
    }
    out
}
