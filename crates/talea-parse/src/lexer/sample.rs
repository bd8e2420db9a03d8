//! Lines with samples.

use std::borrow::Cow;

use super::{Lexer, NO_RETURN, fault};
use crate::departure::Oddity;
use crate::error::Fault;
use crate::labels::LabelsRef;
use crate::{ExemplarRef, SampleRef, Syntax, number, scan};

impl<'a> Lexer<'a> {
    pub(super) fn sample(&mut self, at: usize) -> Result<SampleRef<'a>, Fault> {
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
        if let Some(nul) = labels.raw().find('\0') {
            return fault("no NUL in an exemplar: Prometheus takes it for the end", at + 1 + nul);
        }
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
                    Some(b'"') => at = self.quoted_name(at)?,
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
}

#[cold]
fn no_number<T>(word: &str, at: usize, expected: &'static str) -> Result<T, Fault> {
    match word.strip_suffix('\r') {
        Some(before) => fault(NO_RETURN, at + before.len()),
        None => fault(expected, at),
    }
}
