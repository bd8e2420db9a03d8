//! The state of a check: the families so far, and the findings.

use std::borrow::Cow;
use std::collections::HashMap;

use super::family::{Family, Place};
use super::finding::{Finding, Severity, without_reserved};
use super::fingerprint::{Fingerprint, Fingerprints};
use crate::error::{column, found, named};
use crate::families::bases;
use crate::lexer::Lexer;
use crate::{MetricType, SampleRef, Syntax};

/// The short name of what was broken.
type Rule = &'static str;

/// Goes through a text once and gathers findings.
pub(super) struct Checker<'a> {
    pub(super) text: &'a str,
    pub(super) syntax: Syntax,
    pub(super) lexer: Lexer<'a>,
    pub(super) families: Vec<Family<'a>>,
    named: HashMap<Cow<'a, str>, usize>,
    /// The family of the last line.
    current: Option<usize>,
    /// The type that was declared last.
    pub(super) last_type: MetricType,
    /// The family that has a sample of this name.
    claims: HashMap<String, usize>,
    /// Each series with the line and the time of its last sample.
    pub(super) series: HashMap<Fingerprint, (usize, Option<f64>)>,
    pub(super) fingerprints: Fingerprints,
    pub(super) findings: Vec<Finding>,
    /// The last finding's place and column, from which the next one's is counted: so many
    /// findings in a long line cost no more than the line.
    counted: (Place, usize),
}

impl<'a> Checker<'a> {
    pub(super) fn new(text: &'a str, syntax: Syntax) -> Self {
        Self {
            text,
            syntax,
            lexer: Lexer::new(text, syntax),
            families: Vec::new(),
            named: HashMap::new(),
            current: None,
            last_type: MetricType::Unknown,
            claims: HashMap::new(),
            series: HashMap::new(),
            fingerprints: Fingerprints::default(),
            findings: Vec::new(),
            counted: (Place::default(), 1),
        }
    }

    /// The family that a line of metadata is about.
    pub(super) fn about(&mut self, name: Cow<'a, str>, place: Place) -> usize {
        let at = self.named(name, place);
        self.enter(at, place);
        at
    }

    /// The family of a name, made if it is new.
    fn named(&mut self, name: Cow<'a, str>, place: Place) -> usize {
        let new = self.families.len();
        let at = *self.named.entry(name.clone()).or_insert(new);
        if at == new {
            if self.syntax == Syntax::OpenMetrics && name.starts_with('_') {
                self.violation(
                    place,
                    "reserved-name",
                    format!("the name {name} begins with '_', which is reserved"),
                    without_reserved(&name),
                );
            }
            self.families.push(Family::new(name, place));
        }
        at
    }

    /// The family of a sample, and what the sample's name has beyond the family's; `None` if it must
    /// not be called so.
    pub(super) fn family_of(
        &mut self,
        sample: &SampleRef<'a>,
        place: Place,
    ) -> (usize, Option<&'static str>) {
        if let Some(at) = self.current {
            if let Some(ending) = self.ending(at, &sample.name) {
                return (at, Some(ending));
            }
        }
        for base in bases(&sample.name) {
            let Some(&at) = self.named.get(base) else { continue };
            if let Some(ending) = self.ending(at, &sample.name) {
                return (at, Some(ending));
            }
        }
        let known = self.named.contains_key(&sample.name);
        let at = self.named(sample.name.clone(), place);
        (at, (!known).then_some(""))
    }

    fn ending(&self, at: usize, sample: &str) -> Option<&'static str> {
        let family = &self.families[at];
        let ending = sample.strip_prefix(family.name.as_ref())?;
        family.kind.endings(self.syntax).iter().find(|&&own| own == ending).copied()
    }

    /// Comes to a line of a family.
    pub(super) fn enter(&mut self, at: usize, place: Place) {
        let family = &self.families[at];
        let begun = family.place.line < place.line;
        if begun && self.current != Some(at) {
            let name = &family.name;
            let found = format!("lines of {name} after lines of another metric");
            self.violation(place, "metric-apart", found, "write all of its lines together".into());
        }
        self.current = Some(at);
    }

    pub(super) fn metadata_type(&mut self, at: usize, kind: MetricType, place: Place) {
        self.last_type = kind;
        let family = &mut self.families[at];
        let (typed, sampled) = (family.typed, family.sampled);
        let late = family.united.max(family.helped).is_some();
        if typed.is_none() && sampled.is_none() {
            family.kind = kind;
        }
        family.typed = typed.or(Some(place.line));
        if !self.in_time(at, "TYPE", typed, place) {
            return;
        }
        if late {
            self.out_of_order(place, "TYPE");
        }
        self.claim(at, place);
    }

    pub(super) fn metadata_help(&mut self, at: usize, help: &str, place: Place) {
        let family = &mut self.families[at];
        let helped = family.helped.replace(place.line);
        family.has_help |= !help.is_empty();
        self.in_time(at, "HELP", helped, place);
    }

    pub(super) fn metadata_unit(&mut self, at: usize, unit: &'a str, place: Place) {
        let place_of_unit = self.place(self.lexer.places.metadata);
        let family = &mut self.families[at];
        let united = family.united.replace(place.line);
        let late = family.helped.is_some();
        family.unit = Some((unit, place_of_unit)).filter(|_| !unit.is_empty());
        if self.in_time(at, "UNIT", united, place) && late {
            self.out_of_order(place, "UNIT");
        }
    }

    /// Whether a line of metadata is the first of its word and before all samples.
    fn in_time(&mut self, at: usize, word: &str, before: Option<usize>, place: Place) -> bool {
        let family = &self.families[at];
        let name = &family.name;
        if let Some(line) = before {
            let found = format!("a second {word} of {name}, after that in line {line}");
            self.violation(place, "metadata-twice", found, "keep one of them".into());
            return false;
        }
        if let Some(line) = family.sampled {
            let found = format!("{word} of {name} after its samples");
            let instead = format!("write it before line {line}");
            self.violation(place, "metadata-late", found, instead);
            return false;
        }
        true
    }

    fn out_of_order(&mut self, place: Place, word: &str) {
        if self.syntax == Syntax::OpenMetrics {
            let found = format!("{word} behind what should follow it");
            self.advice(
                place,
                "metadata-order",
                found,
                "write TYPE, UNIT, HELP in this order".into(),
            );
        }
    }

    /// Takes the names that a family's samples can have: no two families may share one.
    pub(super) fn claim(&mut self, at: usize, place: Place) {
        let family = &mut self.families[at];
        if std::mem::replace(&mut family.claimed, true) {
            return;
        }
        let endings = family.kind.endings(self.syntax);
        let name = family.name.clone();
        for ending in endings {
            let sample = format!("{name}{ending}");
            let first = *self.claims.entry(sample).or_insert(at);
            if first != at {
                let other = &self.families[first].name;
                self.violation(
                    place,
                    "name-clash",
                    format!("{name} and {other} can both have samples called {name}{ending}"),
                    "rename one of them".into(),
                );
                return;
            }
        }
    }

    pub(super) fn place(&self, at: usize) -> Place {
        let (line, start) = self.lexer.line_of(at);
        Place { line, start, at }
    }

    pub(super) fn expected(&mut self, rule: Rule, expected: &str, at: usize) {
        let place = self.place(at);
        let found = format!("found {}", named(&found(self.text, at)));
        self.violation(place, rule, found, format!("expected {expected}"));
    }

    pub(super) fn violation(&mut self, place: Place, rule: Rule, found: String, instead: String) {
        self.find(Severity::Violation, place, rule, found, instead);
    }

    pub(super) fn advice(&mut self, place: Place, rule: Rule, found: String, instead: String) {
        self.find(Severity::Advice, place, rule, found, instead);
    }

    fn find(
        &mut self,
        severity: Severity,
        place: Place,
        rule: Rule,
        found: String,
        instead: String,
    ) {
        let (last, before) = self.counted;
        let column = if last.start == place.start && last.at <= place.at {
            before + column(self.text, last.at, place.at) - 1
        } else {
            column(self.text, place.start, place.at)
        };
        self.counted = (place, column);
        self.findings.push(Finding { line: place.line, column, severity, rule, found, instead });
    }
}
