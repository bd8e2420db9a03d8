//! What a text does that its format forbids, and what is better avoided.
//!
//! Sources: the OpenMetrics specification 1.0.0; "Exposition formats" and "Metric and
//! label naming" in the Prometheus documentation; the advice is that of
//! `promtool check metrics`.

mod advice;
mod canonical;
mod checker;
mod family;
mod points;
mod samples;

use std::fmt;

use super::Syntax;

/// Something that was found in a text, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The number of the line, from 1.
    pub line: usize,
    /// Where in it, in characters, from 1.
    pub column: usize,
    /// How bad it is.
    pub severity: Severity,
    /// A short name of what was broken, such as `bucket-order`, for programs.
    pub rule: &'static str,
    /// The fault.
    pub found: String,
    /// What to write instead.
    pub instead: String,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The format forbids it.
    Violation,
    /// It is allowed, and something else is recommended.
    Advice,
}

impl Severity {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Violation => "violation",
            Self::Advice => "advice",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, severity, found, instead, .. } = self;
        write!(f, "{line}:{column}: {}: {found}; {instead}", severity.as_str())
    }
}

/// All findings in a text, in its order.
///
/// A breach of a "must" of the specification is a violation. A breach of a "should", and of the
/// names, units and texts that `promtool check metrics` recommends, is advice. So is a name in
/// quotes, which came after both formats.
///
/// ```
/// use talea_parse::{Severity, Syntax, check};
///
/// let text = "# TYPE wait_ms gauge\nwait_ms 1\nwait_ms 2\n";
/// let findings = check(text, Syntax::Text);
/// let rules: Vec<_> = findings.iter().map(|finding| finding.rule).collect();
/// assert_eq!(rules, ["help", "unit-abbreviated", "series-twice"]);
/// assert_eq!(findings[2].severity, Severity::Violation);
/// assert_eq!(
///     findings[2].to_string(),
///     "3:1: violation: the series wait_ms stands in line 2 already; write each series once"
/// );
/// ```
pub fn check(text: &str, syntax: Syntax) -> Vec<Finding> {
    checker::Checker::new(text, syntax).run()
}
