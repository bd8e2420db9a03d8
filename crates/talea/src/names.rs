//! What a metric or a label may be called.

use crate::expose::is_plain;
use crate::metric::Kind;

/// Why a metric's name cannot be used, in words; `None` where it can.
pub(crate) fn fault_in_metric(name: &str, kind: Kind, utf8: bool) -> Option<String> {
    if utf8 {
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
    if name.starts_with("__") {
        return Some("names that begin with '__' are reserved".to_owned());
    }
    None
}

/// Why a metric's name should not end as it does, in words; `None` where it may.
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

/// What another family may not be called, since in OpenMetrics the two would have the
/// same name: there a counter's goes without `_total`, an info's without `_info`.
pub(crate) fn clashes(name: &str) -> impl Iterator<Item = String> + '_ {
    let base = name.strip_suffix("_total").or(name.strip_suffix("_info")).unwrap_or(name);
    ["", "_total", "_info"]
        .into_iter()
        .map(move |end| [base, end].concat())
        .filter(move |other| other != name)
}

/// What the quantiles are called that a histogram shows beside itself: its unit stays at
/// the end.
pub(crate) fn recent(name: &str) -> String {
    let unit = ["_seconds", "_bytes"].into_iter().find(|unit| name.ends_with(unit)).unwrap_or("");
    format!("{}_recent{unit}", &name[..name.len() - unit.len()])
}

/// Why a label's name cannot be used, in words; `None` where it can.
pub(crate) fn fault_in_label(name: &str, utf8: bool) -> Option<&'static str> {
    if utf8 {
        if let Some(fault) = fault_in_text(name) {
            return Some(fault);
        }
    } else if !is_plain_label(name) {
        return Some(
            "a label's name consists of letters, digits and '_' and does not begin with a digit; or ask for `utf8_names`",
        );
    }
    if name.starts_with("__") {
        return Some("label names that begin with '__' are reserved");
    }
    None
}

/// Whether histograms or summaries write a label of this name themselves.
pub(crate) fn is_written_by_us(label: &str) -> bool {
    label == "le" || label == "quantile"
}

/// Why a name of any characters cannot be used.
fn fault_in_text(name: &str) -> Option<&'static str> {
    (name.is_empty() || name.contains(['"', '\\', '\n']))
        .then_some("a name is some text without quotes, backslashes and line ends")
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
    fn names_that_a_scraper_would_refuse_or_misread_are_refused() {
        for good in ["a", "job:rate5m", "_x", "X9"] {
            assert_eq!(fault_in_metric(good, Kind::Gauge, false), None, "{good}");
        }
        assert_eq!(fault_in_metric("shop_orders_total", Kind::Counter, false), None);
        assert_eq!(fault_in_metric("build_info", Kind::Info, false), None);
        for bad in ["", "9x", "a-b", "a b", "ä", "__x"] {
            assert!(fault_in_metric(bad, Kind::Gauge, false).is_some(), "{bad}");
        }
        for bad in ["x_bucket", "x_count", "x_sum", "x_info", "x_created", "x_total"] {
            assert!(fault_in_ending(bad, Kind::Gauge).is_some(), "{bad}");
        }
        for (own, kind) in [("x_total", Kind::Counter), ("x_info", Kind::Info)] {
            assert_eq!(fault_in_ending(own, kind), None);
        }
        assert!(is_written_by_us("le") && is_written_by_us("quantile"));
        for bad in ["", "9x", "a:b", "__x", "ä"] {
            assert!(fault_in_label(bad, false).is_some(), "{bad}");
        }
        assert_eq!(fault_in_label("method", false), None);
    }
}
