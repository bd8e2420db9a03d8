//! Findings of the checker.

use std::fmt;

/// Something that was found in a text, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The number of the line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// How bad it is.
    pub severity: Severity,
    /// A short name of what was broken, such as `bucket-order`, for programs.
    pub rule: &'static str,
    /// The fault.
    pub found: String,
    /// The correction: the text to write instead.
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

/// A correction of a name that begins with '_'.
pub(super) fn without_reserved(name: &str) -> String {
    match name.trim_start_matches('_') {
        rest if rest.starts_with(|c: char| c.is_ascii_alphabetic()) => format!("write {rest}"),
        _ => "begin it with a letter".to_owned(),
    }
}
