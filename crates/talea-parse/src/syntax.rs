//! The format of a text.

/// A text format, as a reader knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Syntax {
    /// The Prometheus text format, version 0.0.4. The default.
    #[default]
    Text,
    /// OpenMetrics text, version 1.0.
    OpenMetrics,
}

impl Syntax {
    /// The format that a text looks like: only OpenMetrics has a line `# EOF`, units, and the
    /// types `gaugehistogram`, `info`, `stateset` and `unknown`. So a text of OpenMetrics that
    /// was cut off is mostly still known for one.
    pub fn of_text(text: &str) -> Self {
        match text.lines().any(is_openmetrics) {
            true => Self::OpenMetrics,
            false => Self::Text,
        }
    }
}

fn is_openmetrics(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    if words.next() != Some("#") {
        return false;
    }
    match words.next() {
        Some("EOF") => words.next().is_none(),
        Some("UNIT") => words.count() == 2,
        Some("TYPE") => {
            const OWN: [&str; 4] = ["gaugehistogram", "info", "stateset", "unknown"];
            words.next_back().is_some_and(|kind| OWN.contains(&kind))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_only_openmetrics_has_identify_the_format() {
        assert_eq!(Syntax::of_text("a 1\n# EOF\n"), Syntax::OpenMetrics);
        assert_eq!(Syntax::of_text("a 1\n# EOF"), Syntax::OpenMetrics);
        assert_eq!(Syntax::of_text("a{b=\"# EOF\"} 1\n"), Syntax::Text);
        assert_eq!(Syntax::of_text(""), Syntax::Text);
        assert_eq!(Syntax::of_text("# TYPE a info\n"), Syntax::OpenMetrics);
        assert_eq!(Syntax::of_text("# TYPE \"a b\" unknown\n"), Syntax::OpenMetrics);
        assert_eq!(Syntax::of_text("# UNIT a_seconds seconds\na_seconds 1\n"), Syntax::OpenMetrics);
        assert_eq!(Syntax::of_text("# UNIT of a test\n# TYPE a gauge\na 1\n"), Syntax::Text);
    }
}
