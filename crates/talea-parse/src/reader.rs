//! The reader: a text line by line.

use std::borrow::Cow;

use super::error::{column, found};
use super::lexer::Lexer;
use super::{MetricType, ParseError, SampleRef, Syntax};

/// A line with content.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Line<'a> {
    /// `# TYPE name type`.
    Type {
        /// The metric's name.
        name: Cow<'a, str>,
        /// Its type.
        kind: MetricType,
    },
    /// `# HELP name text`.
    Help {
        /// The metric's name.
        name: Cow<'a, str>,
        /// The help text, unescaped.
        help: Cow<'a, str>,
    },
    /// `# UNIT name unit`. OpenMetrics only.
    Unit {
        /// The metric's name.
        name: Cow<'a, str>,
        /// Its unit.
        unit: &'a str,
    },
    /// A sample.
    Sample(SampleRef<'a>),
    /// `# EOF`. OpenMetrics only; nothing follows.
    End,
}

/// Goes through a text line by line, in one pass. Empty lines and comments of text 0.0.4
/// are read over.
///
/// After a line that is not of the format it goes on with the next one. In OpenMetrics
/// the last thing is [`Line::End`], or an error that says that it is missing.
pub struct Reader<'a> {
    lexer: Lexer<'a>,
    syntax: Syntax,
    /// Whether `# EOF` was there.
    closed: bool,
    /// Whether the missing `# EOF` was reported.
    reported_missing_end: bool,
}

impl<'a> Reader<'a> {
    /// A reader of a text in the given format.
    pub fn new(text: &'a str, syntax: Syntax) -> Self {
        Self { lexer: Lexer::new(text, syntax), syntax, closed: false, reported_missing_end: false }
    }

    /// The number of the line that was read last, from 1.
    pub fn line(&self) -> usize {
        self.lexer.places.line
    }

    #[cold]
    fn error(&self, expected: &'static str, at: usize) -> ParseError {
        let (text, places) = (self.lexer.text(), self.lexer.places);
        ParseError {
            line: places.line,
            column: column(text, places.start, at),
            expected,
            found: found(text, at),
        }
    }

    /// A line of OpenMetrics where it stands and as it is; text 0.0.4 takes much more.
    fn refused(&self) -> Option<ParseError> {
        let mut departures = self.lexer.departures.iter();
        departures.find_map(|departure| {
            // Scrapers know what is meant by those of text 0.0.4.
            let expected = departure.what.expected(self.syntax)?;
            (self.syntax == Syntax::OpenMetrics).then(|| self.error(expected, departure.at))
        })
    }

    #[cold]
    fn after_end(&mut self) -> ParseError {
        self.error("nothing after # EOF", self.lexer.places.start)
    }

    /// A line that is more than a plain sample.
    fn next_slowly(&mut self) -> Option<Result<Line<'a>, ParseError>> {
        let line = match self.lexer.line() {
            Some(Ok(line)) => line,
            Some(Err(fault)) => return Some(Err(self.error(fault.expected, fault.at))),
            None if self.syntax == Syntax::Text || self.closed || self.reported_missing_end => {
                return None;
            }
            None => return Some(Err(self.missing_end())),
        };
        let closed = self.closed;
        self.closed |= line == Line::End;
        if let Some(error) = self.refused() {
            return Some(Err(error));
        }
        if closed {
            return Some(Err(self.after_end()));
        }
        Some(Ok(line))
    }

    /// At the end of the text.
    #[cold]
    fn missing_end(&mut self) -> ParseError {
        self.reported_missing_end = true;
        let text = self.lexer.text();
        let places = &mut self.lexer.places;
        if text.is_empty() || text.ends_with('\n') {
            places.line += 1;
            places.start = text.len();
        }
        self.error("# EOF at the end", text.len())
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Line<'a>, ParseError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(plain) = self.lexer.plain() {
            if !self.closed {
                return Some(Ok(Line::Sample(plain.into())));
            }
            return Some(Err(self.after_end()));
        }
        self.next_slowly()
    }
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("syntax", &self.syntax)
            .field("line", &self.line())
            .finish_non_exhaustive()
    }
}
