//! The lexer: takes one line after another apart.
//!
//! A line that a scraper cannot read is a [`Fault`]; the lexer continues with the next line. Text
//! that can be read but should not be there is a [`Departure`]: the reader refuses it if the format
//! does, the checker reports it and continues.

mod about;
mod sample;

use std::borrow::Cow;

use crate::departure::{Departure, Oddity};
use crate::error::Fault;
use crate::labels::unescaped;
use crate::plain::{Plain, plain};
use crate::{Line, Syntax, scan};

pub(super) struct Lexer<'a> {
    text: &'a str,
    syntax: Syntax,
    /// The first byte of the next line.
    next: usize,
    /// The name of the last sample that was plain.
    last: &'a str,
    /// The places of the parts of the current line.
    pub(super) places: Places,
    /// The departures of the current line, one of each kind at most, so that a hostile line costs
    /// no more than its length.
    pub(super) departures: Vec<Departure>,
}

/// In bytes from the text's beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Places {
    /// The number of the line, from 1.
    pub(super) line: usize,
    pub(super) start: usize,
    /// The metric's name, with its quotes.
    pub(super) name: usize,
    /// The place of the metadata, if the line is not a sample.
    pub(super) metadata: usize,
    /// Behind the opening brace.
    pub(super) labels: usize,
    pub(super) value: usize,
    /// The exemplar's `#`.
    pub(super) exemplar: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str, syntax: Syntax) -> Self {
        Self { text, syntax, next: 0, last: "", places: Places::default(), departures: Vec::new() }
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// The next line where that is a plain sample. None leaves everything as it is, and
    /// [`Self::line`] finds out what is there. Of its places only the line is known.
    #[inline(always)]
    pub(super) fn plain(&mut self) -> Option<Plain<'a>> {
        let (plain, len) = plain(self.text, self.next, self.last)?;
        self.places.line += 1;
        self.places.start = self.next;
        self.next += len;
        self.last = plain.name;
        Some(plain)
    }

    /// The next line; none at the end. After a fault it is the one after that.
    pub(super) fn line(&mut self) -> Option<Result<Line<'a>, Fault>> {
        self.departures.clear();
        loop {
            let start = self.next;
            let first = *self.text.as_bytes().get(start)?;
            self.places.line += 1;
            self.places.start = start;
            let read = match first {
                b'#' | b'\n' | b' ' | b'\t' => match self.other(start) {
                    Ok(None) => {
                        self.departures.clear();
                        continue;
                    }
                    Ok(Some(line)) => Ok(line),
                    Err(fault) => Err(fault),
                },
                _ => self.sample(start).map(Line::Sample),
            };
            if let Err(fault) = &read {
                self.skip_line(fault.at);
            }
            return Some(read);
        }
    }

    fn skip_line(&mut self, from: usize) {
        let rest = self.text.as_bytes().get(from..).unwrap_or_default();
        self.next = (from + scan::before_line_end(rest) + 1).min(self.text.len());
    }

    /// A line that is no sample, or does not look like one at once; none if it says nothing.
    fn other(&mut self, start: usize) -> Result<Option<Line<'a>>, Fault> {
        let strict = self.syntax == Syntax::OpenMetrics;
        let at = start + scan::blanks(self.rest(start));
        if at > start {
            self.depart(Oddity::StrayBlanks, start);
        }
        match self.byte(at) {
            Some(b'#') => self.about(at),
            Some(b'\n') | None if strict => fault("no line without text", start),
            Some(b'\n') | None => {
                self.skip_line(at);
                Ok(None)
            }
            Some(_) => {
                self.depart(Oddity::Indented, start);
                self.sample(at).map(|sample| Some(Line::Sample(sample)))
            }
        }
    }

    /// A name, in quotes or not, and the place behind it; none if there is neither.
    fn name(
        &mut self,
        at: usize,
        len_of: fn(&[u8]) -> usize,
    ) -> Result<(Option<Cow<'a, str>>, usize), Fault> {
        if self.byte(at) != Some(b'"') {
            let end = at + len_of(self.rest(at));
            return Ok(((end > at).then(|| Cow::Borrowed(&self.text[at..end])), end));
        }
        let end = self.quoted_name(at)?;
        Ok((Some(unescaped(&self.text[at + 1..end - 1], true)), end))
    }

    /// The end of a name in quotes, behind its quote.
    fn quoted_name(&mut self, at: usize) -> Result<usize, Fault> {
        let end = self.quoted(at + 1)?;
        self.depart(Oddity::QuotedName, at);
        let name = &self.text[at + 1..end - 1];
        if name.is_empty() {
            return fault("a name that is not empty", at);
        }
        match name.find('\0') {
            Some(nul) => fault("no NUL in a name: Prometheus takes it for the end", at + 1 + nul),
            None => Ok(end),
        }
    }

    /// The end of quoted text that begins at `from`, behind its quote.
    fn quoted(&mut self, from: usize) -> Result<usize, Fault> {
        let mut at = from;
        loop {
            at += scan::before_quote(self.rest(at));
            match self.byte(at) {
                Some(b'"') => return Ok(at + 1),
                Some(b'\\') => match self.byte(at + 1) {
                    Some(b'n' | b'\\' | b'"') => at += 2,
                    Some(b'\n' | 0) | None => {
                        return fault(r#"\\, \" or \n after a backslash"#, at);
                    }
                    Some(_) if self.syntax == Syntax::Text => {
                        return fault(r#"\\, \" or \n after a backslash"#, at);
                    }
                    Some(_) => {
                        self.depart(Oddity::Escape, at);
                        at += 2;
                    }
                },
                _ => return fault("a closing quote", at),
            }
        }
    }

    /// The place of the next word of the line; at its end `None`, and the line is consumed.
    fn more(&mut self, end: usize) -> Option<usize> {
        let at = end + scan::blanks(self.rest(end));
        if matches!(self.byte(at), Some(b'\n') | None) {
            if at > end {
                self.depart(Oddity::TrailingBlanks, end);
            }
            self.next = (at + 1).min(self.text.len());
            return None;
        }
        Some(self.gap(end))
    }

    fn end_of_line(&mut self, at: usize, expected: &'static str) -> Result<(), Fault> {
        match self.more(at) {
            None => Ok(()),
            Some(more) => fault(expected, more),
        }
    }

    /// Behind the blanks at a place where there is one.
    #[inline]
    fn gap(&mut self, at: usize) -> usize {
        if let (Some(b' '), Some(b'!'..)) = (self.byte(at), self.byte(at + 1)) {
            return at + 1;
        }
        let blanks = scan::blanks(self.rest(at));
        if self.rest(at).get(..blanks) != Some(b" ") {
            self.depart(Oddity::Blanks, at);
        }
        at + blanks
    }

    fn gap_or_fault(&mut self, at: usize, expected: &'static str) -> Result<usize, Fault> {
        match self.byte(at) {
            Some(b' ' | b'\t') => Ok(self.gap(at)),
            _ => fault(expected, at),
        }
    }

    /// Behind the blanks at a place where there should be none.
    #[inline]
    fn stray(&mut self, at: usize) -> usize {
        if !matches!(self.byte(at), Some(b' ' | b'\t')) {
            return at;
        }
        self.depart(Oddity::StrayBlanks, at);
        at + scan::blanks(self.rest(at))
    }

    fn depart(&mut self, what: Oddity, at: usize) {
        if self.departures.iter().all(|departure| departure.what != what) {
            self.departures.push(Departure { what, at });
        }
    }

    #[inline]
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    #[inline]
    fn rest(&self, at: usize) -> &'a [u8] {
        self.text.as_bytes().get(at..).unwrap_or_default()
    }

    /// The word that begins at a place.
    #[inline]
    fn word(&self, at: usize) -> &'a str {
        self.text.get(at..at + scan::word(self.rest(at))).unwrap_or("")
    }
}

const NO_RETURN: &str = "a line feed alone at the line's end, without a carriage return";

#[cold]
fn fault<T>(expected: &'static str, at: usize) -> Result<T, Fault> {
    Err(Fault { expected, at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SampleRef;

    #[test]
    fn the_short_way_sees_what_the_long_one_sees() {
        let lines = [
            "x 1\n",
            "x{} 1\n",
            "x{a=\"1\"} 1.5\n",
            "x{a=\"1\",b=\"ü {}\"} +Inf\n",
            "xy{a=\"\"} -1e5\n",
            "x{a=\"1\",} 1\n",
            "x{a=\"\\n\"} 1\n",
            "x{ a=\"1\"} 1\n",
            "{\"x\"} 1\n",
            "x  1\n",
            "x 1 2\n",
            "x 1 \n",
            "x{a:b=\"1\"} 1\n",
            "x{a=\"1\"}\n",
            "x\n",
            "x y\n",
            "x 1",
            "9 1\n",
            " x 1\n",
            "#x 1\n",
            "x{a=\"1\"b=\"2\"} 1\n",
            "x{a=\"\n\"} 1\n",
            "xé 1\n",
            "x{a=\"1\"} 1\r\n",
        ];
        let mut plain = 0;
        // The name before matters too: the same, its beginning, another one.
        for before in ["x 0\n", "xyz 0\n", "", "#\n"] {
            for line in lines {
                let text = format!("{before}{line}");
                let mut short = Lexer::new(&text, Syntax::Text);
                let mut long = Lexer::new(&text, Syntax::Text);
                if before.ends_with("0\n") {
                    assert!(short.plain().is_some() && long.line().is_some());
                }
                let Some(found) = short.plain() else { continue };
                plain += 1;
                let found = Line::Sample(SampleRef::from(found));
                assert_eq!(long.line(), Some(Ok(found)), "{text}");
                assert_eq!(short.places.line, long.places.line);
                assert!(short.line() == long.line(), "{text}");
            }
        }
        assert_eq!(plain, 12);
    }
}
