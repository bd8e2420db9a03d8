//! Lines about a metric: `# TYPE`, `# HELP`, `# UNIT`, and the end.

use std::borrow::Cow;

use super::{Lexer, fault};
use crate::departure::{NO_RETURN, Oddity};
use crate::error::Fault;
use crate::labels::unescaped;
use crate::{Line, MetricType, Syntax, scan};

const NO_SEPARATOR: &str = "a blank after the metric's name";

impl<'a> Lexer<'a> {
    /// A line of metadata, the end, or a comment.
    pub(super) fn about(&mut self, hash: usize) -> Result<Option<Line<'a>>, Fault> {
        match self.syntax {
            Syntax::Text => self.about_in_text(hash),
            Syntax::OpenMetrics => self.about_in_openmetrics(hash).map(Some),
        }
    }

    /// A keyword at a place, and the place behind it. Prometheus leaves out NULs behind its letters.
    fn keyword(&mut self, at: usize, word: &str) -> Option<usize> {
        let mut end = at;
        for letter in word.bytes() {
            if self.byte(end) != Some(letter) {
                return None;
            }
            end = self.left_out(end + 1);
        }
        Some(end)
    }

    /// Behind the NULs at a place.
    pub(super) fn left_out(&mut self, at: usize) -> usize {
        let nuls = scan::nuls(self.rest(at));
        if nuls > 0 {
            self.depart(Oddity::Nul, at);
        }
        at + nuls
    }

    fn about_in_text(&mut self, hash: usize) -> Result<Option<Line<'a>>, Fault> {
        let at = hash + 1 + scan::blanks(self.rest(hash + 1));
        if at == hash + 1 {
            return Ok(self.bare_comment(at));
        }
        if self.byte(at) == Some(0) {
            self.cut(at);
            return Ok(None);
        }
        let departures = self.departures.len();
        let keywords = ["HELP", "TYPE"];
        let found = keywords.into_iter().find_map(|word| Some((word, self.keyword(at, word)?)));
        let Some((word, mut at)) = found.filter(|&(_, end)| self.is_blank(end)) else {
            // NULs in a comment change nothing.
            self.departures.truncate(departures);
            if let Some(("TYPE", end)) = found {
                if matches!(self.byte(end), Some(b'\n') | None) {
                    self.depart(Oddity::Nameless, end);
                }
            }
            self.skip_line(at);
            return Ok(None);
        };
        while self.is_blank(at) {
            at = self.left_out(at + 1);
        }
        self.places.name = at;
        let (name, after) = self.name(at, scan::metric_name)?;
        let name = name.ok_or(Fault { expected: "a metric's name", at })?;
        let len = scan::before_line_end(self.rest(after));
        // Whatever character follows the name separates it. Nothing but blanks is no text at all.
        let all = &self.text[after..after + len];
        let is_empty = all.bytes().all(|byte| matches!(byte, b' ' | b'\t' | 0));
        let separator = all.bytes().next();
        let from = after + usize::from(separator.is_some());
        let text = match separator {
            Some(0) => return fault(NO_SEPARATOR, after),
            _ if is_empty => Some(""),
            _ => all.get(1..),
        };
        let Some(text) = text else { return fault(NO_SEPARATOR, after) };
        self.places.metadata = from;
        let blank = matches!(separator, Some(b' ' | b'\t'));
        if word == "HELP" {
            if !blank && separator.is_some() {
                self.depart(Oddity::BrokenName, after);
            }
            self.help_text(text, from);
            self.skip_line(after + len);
            return Ok(Some(Line::Help { name, help: unescaped(text, false) }));
        }
        let Some(kind) = MetricType::of_name(text, self.syntax) else {
            return self.no_type(&all[from - after..], blank, after, from);
        };
        if !blank {
            self.depart(Oddity::BrokenName, after);
        }
        self.skip_line(after + len);
        Ok(Some(Line::Type { name, kind }))
    }

    fn is_blank(&self, at: usize) -> bool {
        matches!(self.byte(at), Some(b' ' | b'\t'))
    }

    /// A comment without a blank behind its `#`. A NUL in it ends the text.
    fn bare_comment(&mut self, at: usize) -> Option<Line<'a>> {
        let rest = self.rest(at);
        let len = scan::before_line_end(rest);
        match rest[..len].iter().position(|&byte| byte == 0) {
            Some(nul) => self.cut(at + nul),
            None => {
                let word = self.word(at);
                if matches!(word, "TYPE" | "HELP") && self.is_blank(at + word.len()) {
                    self.depart(Oddity::BareHash, at);
                }
                self.skip_line(at + len);
            }
        }
        None
    }

    /// The fault in the text that should be a type. Prometheus reads all that follows the first
    /// blank as the type, blanks included, and drops the scrape.
    #[cold]
    fn no_type<T>(&self, text: &str, blank: bool, after: usize, at: usize) -> Result<T, Fault> {
        if !blank {
            return fault(NO_SEPARATOR, after);
        }
        let word = &text[..scan::word(text.as_bytes())];
        if let Some(before) = word.strip_suffix('\r') {
            return fault(NO_RETURN, at + before.len());
        }
        let end = at + word.len();
        let next = end + scan::blanks(self.rest(end));
        let is_last = matches!(self.byte(next), Some(b'\n') | None);
        match () {
            () if word.is_empty() && next > end => {
                fault("exactly one blank before the type", after)
            }
            () if !is_last => fault("nothing after that", next),
            () if next > end => fault("no blank after the type", end),
            () => fault("counter, gauge, histogram, summary or untyped", at),
        }
    }

    fn about_in_openmetrics(&mut self, hash: usize) -> Result<Line<'a>, Fault> {
        let at = self.gap(hash + 1);
        let keywords = ["HELP", "TYPE", "UNIT", "EOF"];
        let found = keywords.into_iter().find_map(|word| Some((word, self.keyword(at, word)?)));
        let Some((word, at)) = found else {
            return fault("TYPE, UNIT, HELP or EOF: there are no comments", at);
        };
        if word == "EOF" {
            if hash + 2 != at - "EOF".len() && self.byte(hash + 1) != Some(b' ') {
                return fault("exactly one blank before EOF", hash + 1);
            }
            self.end_of_line(at, "nothing after EOF")?;
            self.nuls_of_the_next_line();
            return Ok(Line::End);
        }
        let at = self.gap_or_fault(at, "a blank and a metric's name")?;
        let at = self.left_out(at);
        self.places.name = at;
        let (name, after) = self.name(at, scan::metric_name)?;
        let name = name.ok_or(Fault { expected: "a metric's name", at })?;
        match word {
            "HELP" => self.help(name, after),
            "UNIT" => self.unit(name, at, after),
            _ => self.metric_type(name, after),
        }
    }

    fn metric_type(&mut self, name: Cow<'a, str>, after: usize) -> Result<Line<'a>, Fault> {
        let at = self.gap_or_fault(after, NO_SEPARATOR)?;
        self.places.metadata = at;
        let value = self.word(at);
        if let Some(before) = value.strip_suffix('\r') {
            return fault(NO_RETURN, at + before.len());
        }
        self.end_of_metadata(at + value.len())?;
        match MetricType::of_name(value, self.syntax) {
            Some(kind) => Ok(Line::Type { name, kind }),
            None => fault(
                "counter, gauge, histogram, gaugehistogram, summary, info, stateset or unknown",
                at,
            ),
        }
    }

    /// The unit of a metric whose name begins at `name_at`. It can be any text that the name ends
    /// in.
    fn unit(
        &mut self,
        name: Cow<'a, str>,
        name_at: usize,
        after: usize,
    ) -> Result<Line<'a>, Fault> {
        let raw = &self.text[name_at..after];
        let raw = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')).unwrap_or(raw);
        let at = match self.byte(after) {
            Some(b' ') => after + 1,
            _ => self.gap_or_fault(after, NO_SEPARATOR)?,
        };
        self.places.metadata = at;
        let len = scan::before_line_end(self.rest(at));
        let unit = &self.text[at..at + len];
        let is_own =
            unit.is_empty() || raw.strip_suffix(unit).is_some_and(|name| name.ends_with('_'));
        if !is_own {
            if let Some(before) = unit.strip_suffix('\r') {
                return fault(NO_RETURN, at + before.len());
            }
            let word = scan::word(unit.as_bytes());
            if word < len {
                self.end_of_line(at + word, "nothing after that")?;
            }
            self.depart(Oddity::ForeignUnit, at);
        }
        let known = scan::unit(unit.as_bytes());
        if known < len {
            self.depart(Oddity::OddUnit, at + known);
        }
        self.end_of_metadata(at + len)?;
        Ok(Line::Unit { name, unit })
    }

    /// The end of a line with a type or a unit. Prometheus takes NULs at the beginning of the next
    /// line for a part of this one.
    fn end_of_metadata(&mut self, end: usize) -> Result<(), Fault> {
        self.end_of_line(end, "nothing after that")?;
        match scan::nuls(self.rest(self.next)) {
            0 => Ok(()),
            _ => fault("no NUL: Prometheus takes it for a part of the line before", end),
        }
    }

    /// Goes behind the NULs at the beginning of the next line, which Prometheus takes for a part of
    /// this one; their number.
    fn nuls_of_the_next_line(&mut self) -> usize {
        let nuls = scan::nuls(self.rest(self.next));
        if nuls > 0 {
            self.depart(Oddity::Nul, self.next - 1);
            self.next += nuls;
        }
        nuls
    }

    fn help(&mut self, name: Cow<'a, str>, after: usize) -> Result<Line<'a>, Fault> {
        let from = match self.byte(after) {
            // There is a blank even before no text.
            Some(b'\n') | None => {
                self.depart(Oddity::Blanks, after);
                after
            }
            Some(b' ') => after + 1,
            Some(_) => return fault(NO_SEPARATOR, after),
        };
        let end = from + scan::before_line_end(self.rest(from));
        self.help_text(&self.text[from..end], from);
        self.places.metadata = from;
        self.skip_line(end);
        // But for the last of them these belong to the text, and so does the line feed.
        let nuls = self.nuls_of_the_next_line();
        Ok(Line::Help { name, help: unescaped(&self.text[from..end + nuls], true) })
    }

    /// Notes the departures in a help text.
    fn help_text(&mut self, text: &str, from: usize) {
        let strict = self.syntax == Syntax::OpenMetrics;
        let mut bytes = text.bytes().enumerate();
        while let Some((n, byte)) = bytes.next() {
            match byte {
                b'"' if strict => self.depart(Oddity::HelpQuote, from + n),
                b'\\' => match bytes.next() {
                    Some((_, b'n' | b'\\')) => {}
                    Some((_, b'"')) if strict => {}
                    _ => self.depart(Oddity::HelpEscape, from + n),
                },
                _ => {}
            }
        }
        if text.ends_with('\r') {
            self.depart(Oddity::Return, from + text.len() - 1);
        }
    }
}
