//! Errors: the place where a text violates its format.

use std::fmt;

/// A line that violates its format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The number of the line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The text expected there.
    pub expected: &'static str,
    /// The text found from there on, shortened; empty at the line's end.
    pub found: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, expected, found } = self;
        write!(f, "line {line}, column {column}: expected {expected}, found {}", named(found))
    }
}

impl std::error::Error for ParseError {}

/// The text found, as messages show it; an empty one has a name.
pub(super) fn named(found: &str) -> String {
    if found.is_empty() { "the line's end".to_owned() } else { format!("{found:?}") }
}

/// The expected text, and its place in bytes from the text's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) expected: &'static str,
    pub(super) at: usize,
}

/// A column in characters, from 1, in the line that begins at `start`.
pub(super) fn column(text: &str, start: usize, at: usize) -> usize {
    text.get(start..at).map_or(0, |before| before.chars().count()) + 1
}

/// The text at a place, up to the line's end, shortened.
pub(super) fn found(text: &str, at: usize) -> String {
    let rest = text.get(at..).unwrap_or("");
    rest.chars().take_while(|&c| c != '\n').take(40).collect()
}
