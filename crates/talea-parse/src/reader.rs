//! The reader: a text line by line.

use super::error::{column, found};
use super::lexer::Lexer;
use super::line::Line;
use super::sample::Sample;
use super::{ParseError, Syntax};

/// Goes through a text line by line, in one pass. Empty lines and comments of text 0.0.4
/// are read over.
///
/// It takes the texts that the parser of Prometheus 3 takes, and reads them as that does. These
/// are more than the formats allow: [`check`](super::check()) reports the difference. So a line can
/// have label values with line feeds, and then stands in several lines of the text.
///
/// After a line that Prometheus refuses it continues with the next one; Prometheus drops the
/// whole text. In OpenMetrics the last thing is [`Line::End`], or an error that says that it is
/// missing.
///
/// These differ:
///
/// - Metadata names and labels of exemplars in quotes are unescaped. Prometheus leaves them
///   escaped, and so does not find the metadata of a metric whose name has a quote.
/// - A text is UTF-8. Prometheus takes other bytes in comments.
/// - `le` and `quantile` are as in the text; Prometheus writes their numbers in one way.
/// - Prometheus drops some texts that its parser takes: those in which a label stands twice, and
///   those with a name without a character.
pub struct Reader<'a> {
    lexer: Lexer<'a>,
    syntax: Syntax,
    /// Whether `# EOF` was there.
    closed: bool,
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
        let text = self.lexer.text();
        let (line, start) = self.lexer.line_of(at);
        ParseError { line, column: column(text, start, at), expected, found: found(text, at) }
    }

    /// The first departure of the line that Prometheus refuses.
    fn refused(&self) -> Option<ParseError> {
        let mut departures = self.lexer.departures.iter();
        let refused = departures.find(|departure| departure.what.is_refused(self.syntax))?;
        Some(self.error(refused.what.expected(self.syntax)?, refused.at))
    }

    #[cold]
    fn after_end(&mut self) -> ParseError {
        self.error("nothing after # EOF", self.lexer.places.start)
    }

    /// A line that is more than a plain sample.
    fn next_slowly(&mut self) -> Option<Result<Line<'a>, ParseError>> {
        let line = loop {
            match self.lexer.line() {
                Some(Ok(Some(line))) => break line,
                Some(Ok(None)) => {}
                Some(Err(fault)) => return Some(Err(self.error(fault.expected, fault.at))),
                None if self.syntax == Syntax::Text || self.closed || self.reported_missing_end => {
                    return None;
                }
                None => return Some(Err(self.missing_end())),
            }
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

    #[cold]
    fn missing_end(&mut self) -> ParseError {
        self.reported_missing_end = true;
        let text = self.lexer.text();
        if text.is_empty() || text.ends_with('\n') {
            self.lexer.go_to_end();
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

/// The samples of an exposition in text 0.0.4, in their order.
///
/// # Errors
///
/// The first line that is not of the format.
pub fn text(input: &str) -> Result<Vec<Sample>, ParseError> {
    let lines = Reader::new(input, Syntax::Text);
    lines
        .filter_map(|line| match line {
            Ok(Line::Sample(sample)) => Some(Ok(sample.into())),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        })
        .collect()
}
