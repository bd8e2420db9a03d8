//! Where a text is not of its format, for people.

use std::fmt;

/// A line that is not of the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Its number, from 1.
    pub line: usize,
    /// Where in it, in characters, from 1.
    pub column: usize,
    /// What was expected there.
    pub expected: &'static str,
    /// What was found from there on, shortened; empty at the line's end.
    pub found: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, expected, found } = self;
        write!(f, "line {line}, column {column}: expected {expected}, found {}", Found(found))
    }
}

impl std::error::Error for ParseError {}

/// What was found: nothing has a name.
pub(super) struct Found<'a>(pub(super) &'a str);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => f.write_str("the line's end"),
            found => write!(f, "{found:?}"),
        }
    }
}

/// What a line is not, and where, in bytes from the text's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) expected: &'static str,
    pub(super) at: usize,
}

/// A column in characters, from 1, where the line begins at `start`.
pub(super) fn column(text: &str, start: usize, at: usize) -> usize {
    text.get(start..at).map_or(0, |before| before.chars().count()) + 1
}

/// What stands at a place, up to the line's end, shortened.
pub(super) fn found(text: &str, at: usize) -> String {
    let rest = text.get(at..).unwrap_or("");
    rest.chars().take_while(|&c| c != '\n').take(40).collect()
}
