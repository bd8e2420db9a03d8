//! Lines about a metric: `# TYPE`, `# HELP`, `# UNIT`, and the end.

use std::borrow::Cow;

use super::{Lexer, NO_RETURN, fault};
use crate::departure::Oddity;
use crate::error::Fault;
use crate::labels::unescaped;
use crate::{Line, MetricType, Syntax, scan};

impl<'a> Lexer<'a> {
    /// A line of metadata, the end, or a comment.
    pub(super) fn about(&mut self, hash: usize) -> Result<Option<Line<'a>>, Fault> {
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
        if !strict && word == "HELP" && matches!(self.byte(at), Some(b'\n') | None) {
            // Every scraper reads this as a comment.
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
        let at = match self.byte(after) {
            Some(b' ' | b'\t') if !strict => after + 1,
            _ => self.gap_or_fault(after, "a blank after the metric's name")?,
        };
        self.places.metadata = at;
        let value = self.word(at);
        if let Some(before) = value.strip_suffix('\r') {
            return fault(NO_RETURN, at + before.len());
        }
        let end = at + value.len();
        // Prometheus reads all that follows the first blank as the type, blanks included, and
        // drops the scrape.
        let blank = !strict && matches!(self.byte(end), Some(b' ' | b'\t'));
        if blank && value.is_empty() {
            return fault("exactly one blank before the type", after);
        }
        self.end_of_line(end, "nothing after that")?;
        if blank {
            return fault("no blank after the type", end);
        }
        if word == "UNIT" {
            let known = scan::unit(value.as_bytes());
            if known < value.len() {
                return fault("a unit of letters, digits, '_' and ':'", at + known);
            }
            return Ok(Some(Line::Unit { name, unit: value }));
        }
        match MetricType::of_name(value, self.syntax) {
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
        self.places.metadata = from;
        self.skip_line(from + len);
        Ok(Line::Help { name, help: unescaped(text, strict) })
    }
}
