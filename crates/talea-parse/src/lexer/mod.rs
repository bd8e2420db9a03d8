//! The lexer: takes one line after another apart.
//!
//! The grammar is the grammar of Prometheus 3 (`model/textparse` in v0.315: `promlex.l` and `promparse.go`
//! for text 0.0.4, `openmetricslex.l` and `openmetricsparse.go` for OpenMetrics), which takes more
//! than the formats allow. A line that is not of it is a [`Fault`]; the lexer continues with the
//! next line. Text that Prometheus takes and a format does not is a [`Departure`]: the checker
//! reports it and continues.
//!
//! Two properties of that grammar shape this one:
//!
//! - Quoted text can have line feeds, so what is called a line here can be several lines of the
//!   text. If such a line has a fault, then the quote was most likely not closed: the fault is the
//!   first line feed in quotes, and the lexer continues behind that.
//! - NULs are left out in values, help texts and comments, end the text at a line's beginning, and
//!   are faults elsewhere. Behind the closing quote of a value they are left out too, but then the
//!   quote is a part of the value.

mod about;
mod sample;

use std::borrow::Cow;

use crate::departure::{Departure, Oddity};
use crate::error::Fault;
use crate::labels::unescaped;
use crate::plain::{Plain, plain};
use crate::{Line, SampleRef, Syntax, scan};

pub(super) struct Lexer<'a> {
    text: &'a str,
    syntax: Syntax,
    /// The first byte of the next line.
    next: usize,
    /// The number of the next line.
    next_line: usize,
    /// The line feeds in quotes in the current line.
    breaks: Vec<usize>,
    /// Whether a NUL ended the text.
    pub(super) cut: bool,
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
        Self {
            text,
            syntax,
            next: 0,
            next_line: 1,
            breaks: Vec::new(),
            cut: false,
            last: "",
            places: Places::default(),
            departures: Vec::new(),
        }
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// The next line if that is a plain sample. `None` leaves everything as it is, and
    /// [`Self::line`] finds out what is there. Of its places only the line is known.
    #[inline(always)]
    pub(super) fn plain(&mut self) -> Option<Plain<'a>> {
        let (plain, len) = plain(self.text, self.next, self.last)?;
        self.places.line = self.next_line;
        self.next_line += 1;
        self.places.start = self.next;
        self.next += len;
        self.last = plain.name;
        Some(plain)
    }

    /// The next line; `None` at the end. After a fault it is the one after that. Comments are read
    /// over, except those that depart from the format, which are `Ok(None)`.
    pub(super) fn line(&mut self) -> Option<Result<Option<Line<'a>>, Fault>> {
        self.departures.clear();
        loop {
            let start = self.next;
            let first = *self.text.as_bytes().get(start)?;
            self.breaks.clear();
            self.places.line = self.next_line;
            self.places.start = start;
            let mut read = match first {
                b'#' | b'\n' | b' ' | b'\t' | 0 => self.other(start),
                _ => self.sample(start).map(|sample| Some(Line::Sample(sample))),
            };
            if let (Err(fault), Some(&open)) = (&mut read, self.breaks.first()) {
                *fault = Fault { expected: "a closing quote", at: open };
                self.breaks.clear();
            }
            self.next_line += 1 + self.breaks.len();
            if let Err(fault) = &read {
                self.skip_line(fault.at);
            }
            if matches!(read, Ok(None))
                && self
                    .departures
                    .iter()
                    .all(|departure: &Departure| departure.what.expected(self.syntax).is_none())
            {
                self.departures.clear();
                continue;
            }
            return Some(read);
        }
    }

    /// Goes to the line behind the last line feed.
    pub(super) fn go_to_end(&mut self) {
        self.breaks.clear();
        self.places.line = self.next_line;
        self.places.start = self.text.len();
    }

    /// The line of the text that has a place of the current line, and its first byte.
    pub(super) fn line_of(&self, at: usize) -> (usize, usize) {
        let before = self.breaks.partition_point(|&line_feed| line_feed < at);
        let start = match before {
            0 => self.places.start,
            _ => self.breaks[before - 1] + 1,
        };
        (self.places.line + before, start)
    }

    fn skip_line(&mut self, from: usize) {
        let rest = self.text.as_bytes().get(from..).unwrap_or_default();
        self.next = (from + scan::before_line_end(rest) + 1).min(self.text.len());
    }

    /// A line that is no sample, or does not look like one at once; `None` if it has no content.
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
            Some(0) if !strict => {
                self.cut(at);
                Ok(None)
            }
            Some(_) => {
                self.depart(Oddity::Indented, start);
                self.indented(start, at).map(|sample| Some(Line::Sample(sample)))
            }
        }
    }

    /// A sample behind blanks. Prometheus takes these for a part of a name without quotes.
    fn indented(&mut self, start: usize, at: usize) -> Result<SampleRef<'a>, Fault> {
        let mut sample = self.sample(at)?;
        if self.byte(at) != Some(b'{') {
            let end = at + sample.name.len();
            sample.name = Cow::Borrowed(&self.text[start..end]);
        }
        Ok(sample)
    }

    /// Ends the text at a NUL.
    fn cut(&mut self, at: usize) {
        self.depart(Oddity::Nul, at);
        self.next = self.text.len();
        self.cut = true;
    }

    /// A name, in quotes or not, and the place behind it; `None` if there is no name.
    fn name(
        &mut self,
        at: usize,
        len_of: fn(&[u8]) -> usize,
    ) -> Result<(Option<Cow<'a, str>>, usize), Fault> {
        if self.byte(at) != Some(b'"') {
            let end = at + len_of(self.rest(at));
            return Ok(((end > at).then(|| Cow::Borrowed(&self.text[at..end])), end));
        }
        let end = self.quoted_name(at, false)?;
        Ok((Some(unescaped(&self.text[at + 1..end - 1], true)), end))
    }

    /// The end of a name in quotes, behind its quote.
    fn quoted_name(&mut self, at: usize, in_exemplar: bool) -> Result<usize, Fault> {
        let lines = if in_exemplar { LineFeeds::Faults } else { LineFeeds::Departures };
        let end = self.quoted(at + 1, lines, Nuls::Faults)?;
        self.depart(Oddity::QuotedName, at);
        if end == at + 2 {
            self.depart(Oddity::EmptyName, at);
        }
        Ok(end)
    }

    /// The end of a value in quotes, behind its quote and the NULs that Prometheus leaves out there.
    fn quoted_value(&mut self, at: usize, in_exemplar: bool) -> Result<usize, Fault> {
        let lines = match self.syntax {
            Syntax::Text => LineFeeds::Departures,
            Syntax::OpenMetrics => LineFeeds::Faults,
        };
        if in_exemplar {
            return self.quoted(at + 1, lines, Nuls::Faults);
        }
        let end = self.quoted(at + 1, lines, Nuls::LeftOut)?;
        let nuls = scan::nuls(self.rest(end));
        if nuls > 0 {
            self.depart(Oddity::Nul, end);
        }
        Ok(end + nuls)
    }

    /// The end of quoted text that begins at `from`, behind its quote.
    fn quoted(&mut self, from: usize, lines: LineFeeds, nuls: Nuls) -> Result<usize, Fault> {
        let mut at = from;
        loop {
            let len = scan::before_quote(self.rest(at));
            if nuls == Nuls::Faults {
                if let Some(nul) = self.rest(at)[..len].iter().position(|&byte| byte == 0) {
                    return fault("no NUL here: Prometheus takes it for the end", at + nul);
                }
            }
            at += len;
            match self.byte(at) {
                Some(b'"') => return Ok(at + 1),
                Some(b'\\') => {
                    let skipped = match nuls {
                        Nuls::LeftOut => scan::nuls(self.rest(at + 1)),
                        Nuls::Faults => 0,
                    };
                    if skipped > 0 {
                        self.depart(Oddity::Nul, at + 1);
                    }
                    match self.byte(at + 1 + skipped) {
                        Some(b'n' | b'\\' | b'"') if skipped == 0 => {}
                        Some(b'\n' | 0) | None => {
                            return fault(r#"\\, \" or \n after a backslash"#, at);
                        }
                        Some(_) => self.depart(Oddity::Escape, at),
                    }
                    at += 2 + skipped;
                }
                Some(b'\n') if lines == LineFeeds::Departures => {
                    self.depart(Oddity::LineFeed, at);
                    self.breaks.push(at);
                    at += 1;
                }
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

    /// Behind the blanks at a place that has one blank.
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

    /// Behind the blanks at a place that should have no blanks.
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

/// How quoted text takes line feeds.
#[derive(Clone, Copy, PartialEq)]
enum LineFeeds {
    Departures,
    Faults,
}

/// How quoted text takes NULs.
#[derive(Clone, Copy, PartialEq)]
enum Nuls {
    LeftOut,
    Faults,
}

#[cold]
fn fault<T>(expected: &'static str, at: usize) -> Result<T, Fault> {
    Err(Fault { expected, at })
}

#[cfg(test)]
mod tests {
    use super::*;

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
                assert_eq!(long.line(), Some(Ok(Some(found))), "{text}");
                assert_eq!(short.places.line, long.places.line);
                assert!(short.line() == long.line(), "{text}");
            }
        }
        assert_eq!(plain, 12);
    }
}
