//! What a metric or a label may be called.

/// Why a metric's name cannot be used, in words; `None` where it can.
pub(crate) fn fault_in_metric(name: &str) -> Option<String> {
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(valid)
    {
        return Some(
            "a metric's name consists of letters, digits, '_' and ':' and does not begin with a digit".to_owned(),
        );
    }
    if name.starts_with("__") {
        return Some("names that begin with '__' are reserved".to_owned());
    }
    // Samples of histograms, summaries and info metrics end so.
    ["_bucket", "_count", "_sum", "_created", "_info"].iter().find(|end| name.ends_with(*end)).map(
        |end| format!("the ending '{end}' is reserved for samples that other metric types make"),
    )
}

/// Why a label's name cannot be used, in words; `None` where it can.
pub(crate) fn fault_in_label(name: &str) -> Option<&'static str> {
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(valid)
    {
        return Some(
            "a label's name consists of letters, digits and '_' and does not begin with a digit",
        );
    }
    if name.starts_with("__") {
        return Some("label names that begin with '__' are reserved");
    }
    if name == "le" || name == "quantile" {
        return Some("histograms and summaries write this label themselves");
    }
    None
}

/// The name with its ending, which it may have already.
pub(crate) fn completed(name: &str, ending: &str) -> String {
    if name.ends_with(ending) { name.to_owned() } else { format!("{name}{ending}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_scraper_would_refuse_or_misread_are_refused() {
        for good in ["a", "shop_orders_total", "job:rate5m", "_x", "X9"] {
            assert_eq!(fault_in_metric(good), None, "{good}");
        }
        for bad in [
            "",
            "9x",
            "a-b",
            "a b",
            "ä",
            "__x",
            "x_bucket",
            "x_count",
            "x_sum",
            "x_info",
            "x_created",
        ] {
            assert!(fault_in_metric(bad).is_some(), "{bad}");
        }
        for bad in ["", "9x", "a:b", "__x", "le", "quantile", "ä"] {
            assert!(fault_in_label(bad).is_some(), "{bad}");
        }
        assert_eq!(fault_in_label("method"), None);
    }
}
