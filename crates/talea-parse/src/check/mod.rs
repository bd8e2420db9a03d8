//! Checks a text against its format, and gives advice.
//!
//! Sources: the OpenMetrics specification 1.0.0; "Exposition formats" and "Metric and
//! label naming" in the Prometheus documentation; the advice follows
//! `promtool check metrics`.

mod advice;
mod canonical;
mod checker;
mod family;
mod finding;
mod fingerprint;
mod lines;
mod points;
mod samples;

use crate::Syntax;

pub use self::finding::{Finding, Severity};

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
