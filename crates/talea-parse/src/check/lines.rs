//! Visits the lines of a text: finds the family of each, and checks that it may be there.

use super::checker::Checker;
use super::family::Place;
use super::finding::Finding;
use super::{advice, points, samples};
use crate::departure::Oddity;
use crate::error::found;
use crate::{Line, Syntax};

impl<'a> Checker<'a> {
    pub(super) fn run(mut self) -> Vec<Finding> {
        let (mut ended, mut followed) = (false, false);
        while let Some(line) = self.lexer.line() {
            if ended && !std::mem::replace(&mut followed, true) {
                let place = self.place(self.lexer.places.start);
                let found = "text after # EOF".into();
                self.violation(place, "eof", found, "end the text there".into());
            }
            match line {
                Err(fault) => self.expected("syntax", fault.expected, fault.at),
                Ok(line) => {
                    ended |= line == Some(Line::End);
                    self.departures();
                    if let Some(line) = line {
                        self.line(line);
                    }
                }
            }
        }
        if !self.lexer.cut {
            self.end(ended);
        }
        for at in 0..self.families.len() {
            points::finish(&mut self, at);
            advice::family(&mut self, at);
        }
        self.findings.sort_by_key(|finding| (finding.line, finding.column, finding.rule));
        self.findings
    }

    /// Whether the text ends as it must.
    fn end(&mut self, ended: bool) {
        // NULs behind the last line are a part of it.
        let text = self.text.trim_end_matches('\0');
        let last = self.place(text.trim_end_matches('\n').len().max(self.lexer.places.start));
        let last = Place { line: last.line.max(1), ..last };
        let open = !text.is_empty() && !text.ends_with('\n');
        match self.syntax {
            Syntax::Text if open => self.violation(
                last,
                "line-feed",
                "the last line has no line feed".into(),
                "end it with one".into(),
            ),
            Syntax::OpenMetrics if !ended => self.violation(
                last,
                "eof",
                "the text ends without # EOF".into(),
                "write # EOF as its last line".into(),
            ),
            Syntax::OpenMetrics if open => self.advice(
                last,
                "line-feed",
                "no line feed after # EOF".into(),
                "end the text with one".into(),
            ),
            _ => {}
        }
    }

    fn departures(&mut self) {
        for n in 0..self.lexer.departures.len() {
            let departure = self.lexer.departures[n];
            // That has a rule of its own.
            if departure.what == Oddity::ForeignUnit {
                continue;
            }
            if let Some(expected) = departure.what.expected(self.syntax) {
                self.expected(departure.what.rule(), expected, departure.at);
            } else if departure.what != Oddity::QuotedName {
                if let Some(better) = departure.what.better(self.syntax) {
                    let place = self.place(departure.at);
                    let found = format!("found {:?}", found(self.text, departure.at));
                    self.advice(place, "spelling", found, better.into());
                }
            }
        }
    }

    fn line(&mut self, line: Line<'a>) {
        let place = self.place(self.lexer.places.name);
        let family = match line {
            Line::Type { name, kind } => {
                let at = self.about(name, place);
                self.metadata_type(at, kind, place);
                at
            }
            Line::Help { name, help } => {
                let at = self.about(name, place);
                self.metadata_help(at, &help, place);
                at
            }
            Line::Unit { name, unit } => {
                let at = self.about(name, place);
                self.metadata_unit(at, unit, place);
                at
            }
            Line::Sample(sample) => {
                let (at, ending) = self.family_of(&sample, place);
                self.enter(at, place);
                samples::sample(self, at, ending, &sample);
                at
            }
            Line::End => return,
        };
        let mut departures = self.lexer.departures.iter();
        if let Some(quoted) = departures.find(|departure| departure.what == Oddity::QuotedName) {
            let (what, place) = (quoted.what, self.place(quoted.at));
            if self.families[family].is_first("quoted-name", "") {
                let found = format!("{} has a name in quotes", self.families[family].name);
                let better = what.better(self.syntax).unwrap_or_default();
                self.advice(place, "quoted-name", found, better.into());
            }
        }
    }
}
