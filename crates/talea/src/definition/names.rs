//! The rules for names of metrics and labels, and the names that each family takes.

use std::collections::HashMap;

use super::kind::Kind;

pub(crate) const OVERFLOW_LABEL: &str = "otel_metric_overflow";

/// The label text of the overflow series.
pub(crate) const OVERFLOW: &str = "otel_metric_overflow=\"true\"";

/// The label that names the process of a per-process gauge.
pub(crate) const PID: &str = "pid";

/// The rules that [`Opts`](crate::Opts) chooses for names.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) utf8: bool,
    pub(crate) lenient: bool,
}

/// Why a metric's name cannot be used, in words; `None` if it can. It ends in what its type adds to
/// it, if it adds something.
pub(crate) fn fault_in_metric(
    name: &str,
    ending: &str,
    kind: Kind,
    rules: Rules,
) -> Option<String> {
    // In OpenMetrics a counter's ending is no part of its family's name.
    let own = name.strip_suffix(ending).unwrap_or(name);
    if own.chars().all(|c| c == '_' || c.is_whitespace()) {
        return Some(
            "the name is empty, but for what its type adds; name what is measured".to_owned(),
        );
    }
    if rules.utf8 {
        if let Some(fault) = fault_in_text(name) {
            return Some(fault.to_owned());
        }
    } else if !is_plain(name) {
        return Some(
            "a metric's name consists of letters, digits, '_' and ':' and does not begin with a digit; or ask for `utf8_names`".to_owned(),
        );
    }
    if kind == Kind::StateSet && name.contains(':') {
        return Some("a state set's name is a label's too, and those have no ':'".to_owned());
    }
    if let (Kind::StateSet, "le" | "quantile") = (kind, name) {
        return Some(
            "a state set's name is a label's too, and histograms and summaries write this one themselves".to_owned(),
        );
    }
    fault_in_beginning(name, rules).map(str::to_owned)
}

/// Why a metric's or a label's name cannot begin as it does.
fn fault_in_beginning(name: &str, rules: Rules) -> Option<&'static str> {
    // Prometheus reserves two underscores, OpenMetrics one.
    let reserved = if rules.lenient { "__" } else { "_" };
    name.starts_with(reserved)
        .then_some("names that begin with '_' are reserved; begin it with a letter")
}

/// Why a metric's name should not end as it does, in words; `None` if it may.
pub(crate) fn fault_in_ending(name: &str, kind: Kind) -> Option<String> {
    let own = match kind {
        Kind::Counter => "_total",
        Kind::Info => "_info",
        Kind::Gauge | Kind::Histogram | Kind::StateSet | Kind::Summary => "",
    };
    // Samples of counters, histograms, summaries and info metrics end so.
    let end = ["_total", "_bucket", "_count", "_sum", "_created", "_info"]
        .into_iter()
        .find(|&end| end != own && name.ends_with(end))?;
    Some(match end {
        "_total" => "the ending '_total' is reserved for counters; rename it, or make it one",
        "_info" => "the ending '_info' is reserved for infos; rename it, or make it one",
        _ => return Some(format!("the ending '{end}' is reserved for samples that histograms, summaries and counters make; rename it")),
    }
    .to_owned())
}

/// The names that a family takes in any format, for itself or for its samples: a text that all of
/// them begin with, and what each has after it. OpenMetrics' name comes first.
pub(crate) fn taken(kind: Kind, name: &str) -> (&str, &'static [&'static str]) {
    let without = |ending| name.strip_suffix(ending).unwrap_or(name);
    match kind {
        Kind::Counter => (without("_total"), &["", "_total", "_created"]),
        Kind::Info => (without("_info"), &["", "_info"]),
        Kind::Histogram => (name, &["", "_bucket", "_count", "_sum", "_created"]),
        Kind::Summary => (name, &["", "_count", "_sum", "_created"]),
        Kind::Gauge | Kind::StateSet => (name, &[""]),
    }
}

/// Why two families cannot be on one page, in words: in some format a name of one, or of its
/// samples, is one of the other. `None` if they can.
pub(crate) fn clash(one: (Kind, &str), other: (Kind, &str)) -> Option<&'static str> {
    let ((begin, endings), (other_begin, _)) = (taken(one.0, one.1), taken(other.0, other.1));
    let clashes = endings.iter().any(|ending| takes(other.0, other.1, &format!("{begin}{ending}")));
    clashes.then_some(match begin == other_begin {
        true => "in OpenMetrics the two would have one name",
        false => "samples of the two would have one name",
    })
}

/// The names that families have taken, each with the number of the family that did.
#[derive(Debug, Default)]
pub(crate) struct TakenNames(HashMap<String, usize>);

impl TakenNames {
    /// Takes the names of a family that has this number, unless another has one of them, which is
    /// returned.
    pub(crate) fn take(&mut self, kind: Kind, name: &str, number: usize) -> Option<usize> {
        let other = self.other(kind, name);
        if other.is_none() {
            self.share(kind, name, number);
        }
        other
    }

    /// The family that has one of the names of a family.
    pub(crate) fn other(&self, kind: Kind, name: &str) -> Option<usize> {
        all_of(kind, name).find_map(|name| self.0.get(&name).copied())
    }

    /// Takes the names of a family, those that others have too.
    pub(crate) fn share(&mut self, kind: Kind, name: &str, number: usize) {
        self.0.extend(all_of(kind, name).map(|name| (name, number)));
    }
}

/// The names that a family [takes](taken).
pub(crate) fn all_of(kind: Kind, name: &str) -> impl Iterator<Item = String> {
    let (begin, endings) = taken(kind, name);
    endings.iter().map(move |ending| [begin, ending].concat())
}

pub(crate) fn takes(kind: Kind, family: &str, name: &str) -> bool {
    let (begin, endings) = taken(kind, family);
    name.strip_prefix(begin).is_some_and(|ending| endings.contains(&ending))
}

/// The name of the summary that a histogram shows beside itself. The unit stays at the end.
pub(crate) fn recent(name: &str) -> String {
    let unit = ["_seconds", "_bytes"].into_iter().find(|unit| name.ends_with(unit)).unwrap_or("");
    format!("{}_recent{unit}", &name[..name.len() - unit.len()])
}

/// Why a label's name cannot be used, in words; `None` if it can.
pub(crate) fn fault_in_label(name: &str, rules: Rules) -> Option<&'static str> {
    if name.trim().is_empty() {
        return Some("it is empty; name what the label distinguishes");
    }
    if rules.utf8 {
        if let Some(fault) = fault_in_text(name) {
            return Some(fault);
        }
    } else if !is_plain_label(name) {
        return Some(
            "a label's name consists of letters, digits and '_' and does not begin with a digit; or ask for `utf8_names`",
        );
    }
    fault_in_beginning(name, rules)
}

/// Whether histograms or summaries write a label of this name themselves.
pub(crate) fn is_written_by_us(label: &str) -> bool {
    label == "le" || label == "quantile"
}

/// Why a name of any characters cannot be used.
fn fault_in_text(name: &str) -> Option<&'static str> {
    name.contains(|c: char| matches!(c, '"' | '\\') || c.is_control())
        .then_some("a name is some text without quotes, backslashes and control characters")
}

/// Whether every format has such a name.
pub(crate) fn is_plain(name: &str) -> bool {
    // Nothing plain has more than a byte.
    !name.is_empty()
        && name.bytes().enumerate().all(|(n, byte): (usize, u8)| is_plain_at(n, char::from(byte)))
}

pub(crate) fn is_plain_at(n: usize, c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || c == ':' || c.is_ascii_digit() && n > 0
}

/// Whether a label of this name can distinguish regions, or be a [constant
/// one](crate::Registry::set_constant_labels): every format can show it without escaping, and it has
/// no meaning of its own.
pub fn is_usable_as_part_label(name: &str) -> bool {
    const TAKEN: [&str; 5] = ["le", "quantile", "family", "pid", "otel_metric_overflow"];
    is_plain_label(name) && !name.starts_with('_') && !TAKEN.contains(&name)
}

/// Whether a label of this name needs no quotes in a text.
pub(crate) fn is_plain_label(name: &str) -> bool {
    is_plain(name) && !name.contains(':')
}

/// The name with its ending, which it may have already.
pub(crate) fn completed(name: &str, ending: &str) -> String {
    if name.ends_with(ending) { name.to_owned() } else { [name, ending].concat() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_that_clash_are_related_in_a_region() {
        use talea_region::{FamilySpec, Region};

        let kinds = Kind::ALL;
        let names =
            ["a", "a_total", "a_info", "a_count", "a_sum_total", "a_bucket_info", "_total", "b"];
        let mut clashes = 0;
        for other in kinds {
            let region = Region::anonymous(talea_region::Config::with_len(1 << 20)).unwrap();
            for name in names {
                let spec =
                    FamilySpec { name: name.as_bytes(), kind: other as u8, ..Default::default() };
                region.family(spec).unwrap();
            }
            for (kind, name) in kinds.into_iter().flat_map(|kind| names.map(|name| (kind, name))) {
                let mut related = Vec::new();
                region.each_related(name.as_bytes(), |name, kind, is_own| {
                    assert!(kind == other as u8 && is_own);
                    related.push(String::from_utf8(name.to_vec()).unwrap());
                });
                for theirs in names
                    .into_iter()
                    .filter(|&theirs| clash((kind, name), (other, theirs)).is_some())
                {
                    assert!(related.iter().any(|name| name == theirs), "{name} beside {theirs}");
                    clashes += 1;
                }
            }
        }
        assert!(clashes > 200, "{clashes}");
    }
}
