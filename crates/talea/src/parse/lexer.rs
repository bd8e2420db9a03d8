//! One line after another, taken apart.
//!
//! What a scraper would stumble over is a [`Fault`], after which the next line is taken.
//! What can be read and yet should not be there is a [`Departure`]: the reader refuses it
//! where the format does, the checker tells it and goes on.

use std::borrow::Cow;

use super::error::Fault;
use super::labels::{LabelsRef, unescaped};
use super::plain::{Plain, plain};
use super::{ExemplarRef, Line, MetricType, SampleRef, Syntax, number, scan};

/// Goes through a text.
pub(super) struct Lexer<'a> {
    text: &'a str,
    syntax: Syntax,
    /// The first byte of the next line.
    next: usize,
    /// The name of the last sample that was plain.
    last: &'a str,
    /// Where the parts of the current line stand.
    pub(super) places: Places,
    /// Those of the current line, one of each kind at most, so that a hostile line costs
    /// no more than its length.
    pub(super) departures: Vec<Departure>,
}

/// What can be read and yet should not be there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub(super) what: Oddity,
    pub(super) at: usize,
}

/// The kinds of departures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Oddity {
    /// Not exactly one blank, where OpenMetrics has one.
    Blanks,
    /// Blanks where OpenMetrics has none.
    StrayBlanks,
    /// Blanks or tabs before a line's end. The documentation of text 0.0.4 allows them,
    /// and Prometheus' own Go library stumbles over them.
    TrailingBlanks,
    /// A comma after the last label.
    LastComma,
    /// A metric's name in quotes that stands behind labels.
    LateName,
    /// A backslash before what needs none.
    Escape,
    /// A name in quotes, which older scrapers cannot read.
    QuotedName,
}

impl Oddity {
    /// What should be there, where a format's grammar has nothing else.
    pub(super) fn expected(self, syntax: Syntax) -> Option<&'static str> {
        let strict = syntax == Syntax::OpenMetrics;
        Some(match self {
            Self::Blanks if strict => "exactly one blank",
            Self::StrayBlanks if strict => "no blank",
            Self::TrailingBlanks if strict => "no blank at the line's end",
            Self::LastComma if strict => "no comma after the last label",
            Self::LateName => "the metric's name before the labels",
            Self::Escape if !strict => r"\\ or \n after a backslash",
            _ => return None,
        })
    }

    /// What is better done, where the grammar does have it.
    pub(super) fn better(self, syntax: Syntax) -> Option<&'static str> {
        match (self, syntax) {
            (Self::TrailingBlanks, Syntax::Text) => Some(
                "end the line after its last word: Prometheus' own Go library refuses blanks there",
            ),
            (Self::Escape, Syntax::OpenMetrics) => Some(r"write \\ for a backslash"),
            (Self::QuotedName, _) => Some(
                "scrapers before Prometheus 3 refuse quoted names: use letters, digits and '_'",
            ),
            _ => None,
        }
    }
}

/// In bytes from the text's beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Places {
    /// The number of the line, from 1.
    pub(super) line: usize,
    pub(super) start: usize,
    /// The metric's name, with its quotes.
    pub(super) name: usize,
    /// What the line says of a metric, where it is no sample.
    pub(super) told: usize,
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

    /// The whole text.
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

    /// A line that is no sample, or does not look like one at once; none where it says
    /// nothing.
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
            Some(_) => self.sample(at).map(|sample| Some(Line::Sample(sample))),
        }
    }

    /// What is told about a metric, the end, or a comment.
    fn about(&mut self, hash: usize) -> Result<Option<Line<'a>>, Fault> {
        let strict = self.syntax == Syntax::OpenMetrics;
        let at = self.gap(hash + 1);
        let word = self.word(at);
        match word {
            "EOF" if strict => {
                if hash + 2 != at {
                    return fault("exactly one blank before EOF", hash + 1);
                }
                self.end_of_line(at + 3, "nothing after EOF")?;
                return Ok(Some(Line::End));
            }
            "TYPE" | "HELP" => {}
            "UNIT" if strict => {}
            _ if strict => return fault("TYPE, UNIT, HELP or EOF: there are no comments", at),
            _ => {
                self.skip_line(at);
                return Ok(None);
            }
        }
        let mut at = at + word.len();
        if !strict && matches!(self.byte(at + scan::blanks(self.rest(at))), Some(b'\n') | None) {
            // A comment that says no more than that.
            self.skip_line(at);
            return Ok(None);
        }
        at = self.gap_or_fault(at, "a blank and a metric's name")?;
        self.places.name = at;
        let (name, after) = self.name(at, scan::metric_name)?;
        let name = name.ok_or(Fault { expected: "a metric's name", at })?;
        if word == "HELP" {
            return self.help(name, after).map(Some);
        }
        if !strict
            && matches!(self.byte(after + scan::blanks(self.rest(after))), Some(b'\n') | None)
        {
            // Neither does it tell a type.
            self.skip_line(after);
            return Ok(None);
        }
        let at = self.gap_or_fault(after, "a blank after the metric's name")?;
        self.places.told = at;
        let told = self.word(at);
        if let Some(before) = told.strip_suffix('\r') {
            return fault(NO_RETURN, at + before.len());
        }
        self.end_of_line(at + told.len(), "nothing after that")?;
        if word == "UNIT" {
            let known = scan::unit(told.as_bytes());
            if known < told.len() {
                return fault("a unit of letters, digits, '_' and ':'", at + known);
            }
            return Ok(Some(Line::Unit { name, unit: told }));
        }
        match MetricType::of_name(told, self.syntax) {
            Some(kind) => Ok(Some(Line::Type { name, kind })),
            None if strict => fault(
                "counter, gauge, histogram, gaugehistogram, summary, info, stateset or unknown",
                at,
            ),
            None => fault("counter, gauge, histogram, summary or untyped", at),
        }
    }

    fn help(&mut self, name: Cow<'a, str>, after: usize) -> Result<Line<'a>, Fault> {
        let strict = self.syntax == Syntax::OpenMetrics;
        let from = match self.byte(after) {
            // OpenMetrics has a blank even before no text.
            Some(b'\n') | None => {
                self.depart(Oddity::Blanks, after);
                after
            }
            Some(b' ' | b'\t') if !strict => after + scan::blanks(self.rest(after)),
            Some(b' ') => after + 1,
            Some(_) => return fault("a blank after the metric's name", after),
        };
        let len = scan::before_line_end(self.rest(from));
        let text = &self.text[from..from + len];
        if text.ends_with('\r') {
            return fault(NO_RETURN, from + len - 1);
        }
        let mut bytes = text.bytes().enumerate();
        while let Some((n, byte)) = bytes.next() {
            let stands = match byte {
                b'"' if strict => return fault(r#"\" for a quote"#, from + n),
                b'\\' => match bytes.next() {
                    Some((_, b'n' | b'\\')) => true,
                    Some((_, b'"')) => strict,
                    Some(_) => false,
                    None => return fault(r"\\ for a backslash", from + n),
                },
                _ => true,
            };
            if !stands {
                self.depart(Oddity::Escape, from + n);
            }
        }
        self.places.told = from;
        self.skip_line(from + len);
        Ok(Line::Help { name, help: unescaped(text, strict) })
    }

    fn sample(&mut self, at: usize) -> Result<SampleRef<'a>, Fault> {
        let len = scan::metric_name(self.rest(at));
        let mut name = Cow::Borrowed(&self.text[at..at + len]);
        self.places.name = at;
        let mut end = at + len;
        let mut labels = LabelsRef::default();
        let mut next = self.byte(end);
        if len > 0 && matches!(next, Some(b' ' | b'\t')) && self.syntax == Syntax::Text {
            // Here blanks can stand before the brace.
            let after = end + scan::blanks(self.rest(end));
            if self.byte(after) == Some(b'{') {
                (end, next) = (after, Some(b'{'));
            }
        }
        if next == Some(b'{') {
            let mut quoted = None;
            (labels, end) = self.labels(end + 1, len == 0, &mut quoted)?;
            self.places.labels = labels.raw().as_ptr() as usize - self.text.as_ptr() as usize;
            match quoted {
                Some((own, place)) => {
                    name = own;
                    self.places.name = place;
                }
                None if len == 0 => return fault("a metric's name", at),
                None => {}
            }
            if !matches!(self.byte(end), Some(b' ' | b'\t')) {
                self.depart(Oddity::Blanks, end);
            }
        } else if len == 0 {
            return fault("a metric's name", at);
        } else if !matches!(next, Some(b' ' | b'\t')) {
            return fault("a blank or '{' after the name", end);
        }
        let at = self.gap(end);
        self.places.value = at;
        let (value, end) = self.number(at, "a number")?;
        let mut sample = SampleRef { name, labels, value, timestamp: None, exemplar: None };
        if self.byte(end) == Some(b'\n') {
            self.next = end + 1;
            return Ok(sample);
        }
        self.rest_of_sample(&mut sample, end)?;
        Ok(sample)
    }

    /// A timestamp and an exemplar, where there are any.
    fn rest_of_sample(&mut self, sample: &mut SampleRef<'a>, end: usize) -> Result<(), Fault> {
        let strict = self.syntax == Syntax::OpenMetrics;
        let Some(mut at) = self.more(end) else { return Ok(()) };
        if self.byte(at) != Some(b'#') || !strict {
            let (timestamp, end) = self.timestamp(at)?;
            sample.timestamp = Some(timestamp);
            let Some(next) = self.more(end) else { return Ok(()) };
            at = next;
        }
        if self.byte(at) != Some(b'#') || !strict {
            return fault("nothing after the timestamp", at);
        }
        self.places.exemplar = at;
        let at = self.gap_or_fault(at + 1, "a blank after '#'")?;
        if self.byte(at) != Some(b'{') {
            return fault("'{' and the exemplar's labels", at);
        }
        let (labels, end) = self.labels(at + 1, false, &mut None)?;
        let at = self.gap_or_fault(end, "a blank after '}'")?;
        let (value, end) = self.number(at, "the exemplar's value")?;
        let timestamp = match self.more(end) {
            None => None,
            Some(at) => {
                let (timestamp, end) = self.timestamp(at)?;
                if let Some(at) = self.more(end) {
                    return fault("nothing after the exemplar", at);
                }
                Some(timestamp)
            }
        };
        sample.exemplar = Some(ExemplarRef { labels, value, timestamp });
        Ok(())
    }

    /// The labels behind an opening brace, and the place behind the closing one.
    fn labels(
        &mut self,
        from: usize,
        nameless: bool,
        own: &mut Option<(Cow<'a, str>, usize)>,
    ) -> Result<(LabelsRef<'a>, usize), Fault> {
        let mut at = from;
        let mut any = false;
        loop {
            at = self.stray(at);
            let len = scan::label_name(self.rest(at));
            let name_at = at;
            if len > 0 {
                at += len;
            } else {
                match self.byte(at) {
                    Some(b'}') => {
                        if any {
                            self.depart(Oddity::LastComma, at);
                        }
                        break;
                    }
                    Some(b'"') => {
                        at = self.quoted(at + 1)?;
                        self.depart(Oddity::QuotedName, name_at);
                    }
                    _ => return fault("a label's name or '}'", at),
                }
            }
            at = self.stray(at);
            if self.byte(at) != Some(b'=') {
                // Alone in quotes is the metric's name.
                if len > 0 || !nameless || own.is_some() {
                    return fault("'=' after a label's name", at);
                }
                if any {
                    self.depart(Oddity::LateName, name_at);
                }
                let (name, _) = self.name(name_at, scan::metric_name)?;
                *own = name.map(|name| (name, name_at));
            } else {
                at = self.stray(at + 1);
                if self.byte(at) != Some(b'"') {
                    return fault("a value in quotes", at);
                }
                at = self.quoted(at + 1)?;
                at = self.stray(at);
            }
            any = true;
            match self.byte(at) {
                Some(b',') => at += 1,
                Some(b'}') => break,
                _ => return fault("',' or '}' after a label", at),
            }
        }
        Ok((LabelsRef::new(&self.text[from..at]), at + 1))
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
                    Some(b'\n') | None => return fault(r#"\\, \" or \n after a backslash"#, at),
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

    /// A name, in quotes or not, and the place behind it; none where there is neither.
    fn name(
        &mut self,
        at: usize,
        len_of: fn(&[u8]) -> usize,
    ) -> Result<(Option<Cow<'a, str>>, usize), Fault> {
        if self.byte(at) != Some(b'"') {
            let end = at + len_of(self.rest(at));
            return Ok(((end > at).then(|| Cow::Borrowed(&self.text[at..end])), end));
        }
        let end = self.quoted(at + 1)?;
        self.depart(Oddity::QuotedName, at);
        let name = unescaped(&self.text[at + 1..end - 1], true);
        if name.is_empty() {
            return fault("a metric's name that is not empty", at);
        }
        Ok((Some(name), end))
    }

    fn number(&self, at: usize, expected: &'static str) -> Result<(f64, usize), Fault> {
        let word = self.word(at);
        match number::float(word) {
            Some(value) => Ok((value, at + word.len())),
            None => no_number(word, at, expected),
        }
    }

    /// Seconds since 1970: milliseconds in text 0.0.4, seconds in OpenMetrics.
    fn timestamp(&self, at: usize) -> Result<(f64, usize), Fault> {
        let word = self.word(at);
        let (seconds, expected) = match self.syntax {
            Syntax::Text => {
                let milliseconds = number::milliseconds(word).map(|whole| whole as f64 / 1e3);
                (milliseconds, "a timestamp in whole milliseconds")
            }
            Syntax::OpenMetrics => {
                let seconds = number::float(word).filter(|seconds| seconds.is_finite());
                (seconds, "a timestamp in seconds")
            }
        };
        seconds
            .map_or_else(|| no_number(word, at, expected), |seconds| Ok((seconds, at + word.len())))
    }

    /// Where more of the line stands behind a word; none at its end, which is then taken.
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

#[cold]
fn no_number<T>(word: &str, at: usize, expected: &'static str) -> Result<T, Fault> {
    match word.strip_suffix('\r') {
        Some(before) => fault(NO_RETURN, at + before.len()),
        None => fault(expected, at),
    }
}
