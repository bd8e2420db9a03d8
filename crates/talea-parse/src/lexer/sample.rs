//! Lines with samples.

use std::borrow::Cow;

use super::{Lexer, fault};
use crate::departure::{NO_RETURN, Oddity};
use crate::error::Fault;
use crate::labels::{LabelsRef, unescaped};
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
            (labels, end) = self.labels(end + 1, Some(&mut quoted).filter(|_| len == 0), false)?;
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
            if self.syntax == Syntax::OpenMetrics || number::float(self.word(end)).is_none() {
                return fault("a blank or '{' after the name", end);
            }
            self.depart(Oddity::NoBlank, end);
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

    /// A timestamp and an exemplar, if there are any.
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
        let (labels, end) = self.labels(at + 1, None, true)?;
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

    /// The labels behind an opening brace, and the place behind the closing one. `own` takes the
    /// metric's name and its place, if the name may stand among the labels.
    fn labels(
        &mut self,
        from: usize,
        mut own: Option<&mut Option<(Cow<'a, str>, usize)>>,
        in_exemplar: bool,
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
                    Some(b'"') => at = self.quoted_name(at, in_exemplar)?,
                    _ => return fault("a label's name or '}'", at),
                }
            }
            let name_end = at;
            at = self.stray(at);
            let is_label = self.byte(at) == Some(b'=');
            if is_label {
                at = self.value_of_label(at + 1, in_exemplar)?;
            } else {
                // Alone in quotes is the metric's name.
                let Some(own) = own.take().filter(|_| len == 0) else {
                    return fault("'=' after a label's name", at);
                };
                if any {
                    self.depart(Oddity::LateName, name_at);
                }
                let name = unescaped(&self.text[name_at + 1..name_end - 1], true);
                *own = Some((name, name_at));
            }
            any = true;
            match self.byte(at) {
                Some(b',') => at += 1,
                Some(b'}') => break,
                Some(next) if is_label && self.starts_label(next) => {
                    self.depart(Oddity::NoComma, at);
                }
                _ => return fault("',' or '}' after a label", at),
            }
        }
        Ok((LabelsRef::new(&self.text[from..at]), at + 1))
    }

    /// The value behind an equals sign; the place behind it and the blanks that follow.
    fn value_of_label(&mut self, at: usize, in_exemplar: bool) -> Result<usize, Fault> {
        let mut from = self.stray(at);
        while from > at && self.byte(from) == Some(0) {
            from = self.left_out(from);
            from = self.stray(from);
        }
        if self.byte(from) != Some(b'"') {
            return fault("a value in quotes", from);
        }
        let end = self.quoted_value(from, in_exemplar)?;
        Ok(self.stray(end))
    }

    /// Whether a label can begin so without a comma before it.
    fn starts_label(&self, byte: u8) -> bool {
        self.syntax == Syntax::Text && (byte == b'"' || scan::label_name(&[byte]) > 0)
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
