//! Conditions under which a study counts as failed: `--fail-if 'p99 > 1.1x'`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use anyhow::{Result, bail};
use serde::Serialize;

use super::words::value;
use crate::study::{Case, CaseResult, ENDPOINT, Figure, Measure, Measures, Share, Study, Values};
use talea_statistics::figures::measured;
use talea_statistics::{mean, share_of_growth};
use talea_view::printable;
use talea_view::screen::note;

/// A figure and a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    /// The case, the step, the endpoint of the server (`endpoint GET /orders`), or one of these of a case
    /// (`A: order`) that it is about; all requests of all cases if it names none.
    subject: Option<String>,
    figure: Figure,
    above: bool,
    limit: Limit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// A multiple of the first variant's number.
    Times(f64),
    /// In the figure's own unit.
    Value(f64),
}

/// Conditions that must all hold: `p99 < 50ms and failed < 1%`.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal(pub Vec<Condition>);

impl Goal {
    /// The conditions that a load does not meet, with what was found.
    pub fn missed_by(&self, load: &Measures) -> Vec<String> {
        let judged =
            self.0.iter().map(|condition| condition.judge_load(std::slice::from_ref(load)));
        judged.filter(|it| it.result != Finding::Failed).map(|it| it.words).collect()
    }
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let conditions: Vec<Condition> =
            text.split(" and ").map(str::parse).collect::<Result<_, _>>()?;
        match conditions.iter().find(|condition| condition.compares()) {
            Some(times) => Err(format!("found {times}, expected a limit with a unit")),
            None => Ok(Self(conditions)),
        }
    }
}

/// What became of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// It does not hold: the number, with all of its interval if it has one, lies within the limit.
    Passed,
    /// The interval has the limit in it, or the number is a lower bound below the limit.
    NotDecided,
    /// It holds: the number, with all of its interval if it has one, lies beyond the limit.
    Failed,
    /// There is no such number.
    Unknown,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passed => "passed",
            Self::NotDecided => "not decided",
            Self::Failed => "FAILED",
            Self::Unknown => "no figure",
        })
    }
}

/// The result of a condition in one case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// Whether it passed or failed.
    pub result: Finding,
    /// The condition, and the number that was found.
    pub words: String,
}

/// Judges each condition, prints the results to standard error (if `quiet`, those that did not pass), and returns the worst of them: [`Finding::Passed`]
/// only if each passed.
/// Fails if a condition is about nothing that there is: it would otherwise seem not to hold.
pub fn report_conditions(
    conditions: &[Condition],
    quiet: bool,
    judge: impl Fn(&Condition) -> Vec<Judgement>,
) -> Result<Finding> {
    let judged: Vec<_> = conditions.iter().map(judge).collect();
    let judgements = judged.iter().flatten();
    for Judgement { result, words } in judgements.clone() {
        if quiet && *result == Finding::Passed {
            continue;
        }
        note(format_args!("{result}: {}", printable(words)));
    }
    let lacks =
        |of: &Vec<Judgement>| of.is_empty() || of.iter().any(|it| it.result == Finding::Unknown);
    if let Some(unjudged) = judged.iter().position(lacks) {
        bail!(
            "--fail-if {}: there is no such case, step or endpoint, or this was not measured",
            conditions[unjudged]
        );
    }
    Ok(judgements.map(|it| it.result).max().unwrap_or(Finding::Passed))
}

impl Condition {
    /// Whether it compares variants.
    pub fn compares(&self) -> bool {
        matches!(self.limit, Limit::Times(_))
    }

    /// Fails if it is about none of a load's cases and steps. The endpoints are not known before the load.
    pub fn ensure_is_about(&self, cases: &[Case], steps: &[&str]) -> Result<()> {
        let ids: Vec<&str> = cases.iter().map(|case| &*case.id).collect();
        let Some(subject) = &self.subject else { return Ok(()) };
        let is_step = |name: &str| steps.contains(&name);
        let of_case = ids.iter().any(|id| {
            let step = subject.strip_prefix(id).and_then(|rest| rest.strip_prefix(": "));
            subject == id || step.is_some_and(|name| is_step(name) || name.starts_with(ENDPOINT))
        });
        if of_case || is_step(subject) || subject.starts_with(ENDPOINT) {
            return Ok(());
        }
        let cases =
            if ids.is_empty() { String::new() } else { format!("the cases {}, ", ids.join(", ")) };
        bail!(
            "--fail-if {self} names no case or step; there are {cases}the steps {}",
            steps.join(", ")
        )
    }

    /// Judges all variants but the first, which were run side by side if they are `paired`.
    pub fn judge_comparison(&self, studies: &[(String, Study)], paired: bool) -> Vec<Judgement> {
        let Limit::Times(limit) = self.limit else { return Vec::new() };
        let Some(((_, base), others)) = studies.split_first() else { return Vec::new() };
        let mut judgements = Vec::new();
        for (name, other) in others {
            for case in &base.cases {
                let Some(to) = self.rounds_of(&case.id, &case.rounds) else { continue };
                let there = other.case_like(case).and_then(|it| self.rounds_of(&it.id, &it.rounds));
                let judged = there.and_then(|of| self.judge_ratio(&of, &to, limit, paired));
                let of = format!("{name}, case {}", case.id);
                judgements.push(judged.unwrap_or_else(|| self.without_number()).of(&of));
            }
        }
        judgements
    }

    fn judge_ratio(
        &self,
        of: &[Measures],
        to: &[Measures],
        limit: f64,
        paired: bool,
    ) -> Option<Judgement> {
        let (of, to) = (self.figure.of(of)?, self.figure.of(to)?);
        let Some(ratio) = self.figure.ratio(&of, &to, paired) else {
            // A round has none of it. From nothing to something is more than any number of times.
            let (other, base) = (mean(&of.numbers), mean(&to.numbers));
            let number = format!("{} after {}", self.shown(other), self.shown(base));
            let ratio = if base == other { 1.0 } else { other / base };
            return Some(self.judgement(ratio, ratio, limit, &number, ""));
        };
        let (low, high) = ratio.interval.unwrap_or((ratio.ratio, ratio.ratio));
        if !of.at_least && !to.at_least {
            return Some(self.judgement(low, high, limit, &format!("{ratio} times"), MORE_ROUNDS));
        }
        let low = if to.at_least { 0.0 } else { low };
        let high = if of.at_least { f64::INFINITY } else { high };
        let advice = match of.is_in_buckets || to.is_in_buckets {
            true => BUCKETS,
            false => LONGER_TIMEOUT,
        };
        let sign = match (to.at_least, of.at_least) {
            (true, true) => "about",
            (true, false) => "≤",
            (false, _) => "≥",
        };
        let number = format!("{sign} {} times", measured(ratio.ratio));
        Some(self.judgement(low, high, limit, &number, advice))
    }

    /// Judges each case that it is about.
    pub fn judge(&self, cases: &[CaseResult]) -> Vec<Judgement> {
        let Limit::Value(limit) = self.limit else { return Vec::new() };
        let mut judgements = Vec::new();
        for case in cases {
            let Some(rounds) = self.rounds_of(&case.id, &case.rounds) else { continue };
            let judged = self.judge_rounds(&rounds, limit);
            let of = format!("case {}", case.id);
            judgements.push(judged.unwrap_or_else(|| self.without_number()).of(&of));
        }
        if judgements.is_empty() {
            let Judgement { result, words } = self.without_number();
            let words = words + &self.known_endpoints(cases);
            judgements.push(Judgement { result, words });
        }
        judgements
    }

    /// Judges the rounds of a load.
    pub fn judge_load(&self, rounds: &[Measures]) -> Judgement {
        let Limit::Value(limit) = self.limit else { return self.without_number() };
        let rounds = self.rounds_of("", rounds);
        let judged = rounds.and_then(|rounds| self.judge_rounds(&rounds, limit));
        judged.unwrap_or_else(|| self.without_number())
    }

    fn judge_rounds(&self, rounds: &[Measures], limit: f64) -> Option<Judgement> {
        let values = self.figure.of(rounds)?;
        let mean = mean(&values.numbers);
        let interval = self.figure.mean(&values).map(|mean| (mean.low, mean.high));
        let (low, high) = interval.unwrap_or((mean, mean));
        if values.at_least {
            let number = format!("≥ {}", self.shown(mean));
            let advice = if values.is_in_buckets { BUCKETS } else { LONGER_TIMEOUT };
            return Some(self.judgement(low, f64::INFINITY, limit, &number, advice));
        }
        let number = match interval {
            Some((low, high)) => {
                format!("{} ({} to {})", self.shown(mean), self.shown(low), self.shown(high))
            }
            None => self.shown(mean),
        };
        let is_as_wide = values.is_in_buckets && rounds.len() < 2;
        let advice = if is_as_wide { BUCKETS } else { MORE_ROUNDS };
        let judgement = self.judgement(low, high, limit, &number, advice);
        Some(if self.above { self.doubted(judgement, &values) } else { judgement })
    }

    /// A time that passed is not decided if it may lie among requests that failed without a response.
    fn doubted(&self, judgement: Judgement, values: &Values) -> Judgement {
        let share = self.figure.share_of_requests();
        let is_of_survivors =
            values.untimed > 0.0 && share.is_some_and(|it| values.untimed > 1.0 - it - 1e-9);
        if judgement.result != Finding::Passed || !is_of_survivors {
            return judgement;
        }
        let untimed = measured(values.untimed * 100.0);
        let words = judgement.words;
        let words = format!(
            "{words}, but {untimed} % of the requests failed without a response and count in no time"
        );
        Judgement { result: Finding::NotDecided, words }
    }

    /// The rounds of a case, or of the step of it that this is about; none if it is about another.
    fn rounds_of(&self, case: &str, rounds: &[Measures]) -> Option<Vec<Measures>> {
        let Some(subject) = self.subject.as_deref().filter(|subject| *subject != case) else {
            return Some(rounds.to_vec());
        };
        let of_case = subject.strip_prefix(case).and_then(|rest| rest.strip_prefix(": "));
        of_case.and_then(|part| of_part(rounds, part)).or_else(|| of_part(rounds, subject))
    }

    /// Whether its figure comes from the service's metrics.
    pub fn is_about_server(&self) -> bool {
        self.is_about_endpoint() || self.figure.is_of_server()
    }

    /// Whether it is about the memory of the server.
    pub fn is_about_memory(&self) -> bool {
        let memory = [Figure::Measure(Measure::Memory), Figure::Share(Share::MemoryGrowth)];
        !self.is_about_endpoint() && memory.contains(&self.figure)
    }

    /// Whether it is about an endpoint of the server.
    fn is_about_endpoint(&self) -> bool {
        let Some(subject) = &self.subject else { return false };
        let part = subject.split_once(": ").map_or(subject.as_str(), |(_, part)| part);
        subject.starts_with(ENDPOINT) || part.starts_with(ENDPOINT)
    }

    /// The endpoints that there are, if it is about one.
    fn known_endpoints(&self, cases: &[CaseResult]) -> String {
        let rounds = cases.iter().flat_map(|case| &case.rounds);
        let known: BTreeSet<&str> = rounds.flat_map(Measures::endpoints).collect();
        match self.is_about_endpoint() {
            true if known.is_empty() => "; the service's metrics have no endpoints".to_owned(),
            true => {
                let known: Vec<&str> = known.into_iter().collect();
                format!("; the service counted requests of {}", known.join(", "))
            }
            false => String::new(),
        }
    }

    fn shown(&self, number: f64) -> String {
        let measure = match self.figure {
            Figure::Measure(measure) => measure,
            Figure::Quantile(_) => Figure::MS,
            Figure::Share(Share::MemoryGrowth) => return share_of_growth(number),
            Figure::Share(_) if number == 0.0 => return "0 %".to_owned(),
            Figure::Share(_) => return format!("{} %", measured(number * 100.0)),
        };
        match measure.unit() {
            // It is shown with a prefix.
            "" | "bytes" => value(measure, number),
            unit => format!("{} {unit}", value(measure, number)),
        }
    }

    /// What follows from a number that lies in an interval.
    fn judgement(&self, low: f64, high: f64, limit: f64, number: &str, advice: &str) -> Judgement {
        let (holds, cannot_hold) = match self.above {
            true => (low > limit, high <= limit),
            false => (high < limit, low >= limit),
        };
        let (result, advice) = match (holds, cannot_hold) {
            (true, _) => (Finding::Failed, ""),
            (false, true) => (Finding::Passed, ""),
            (false, false) => (Finding::NotDecided, advice),
        };
        Judgement { result, words: format!("{self}: found {number}{advice}") }
    }

    fn without_number(&self) -> Judgement {
        Judgement { result: Finding::Unknown, words: format!("{self}: there is no such figure") }
    }
}

/// The rounds of a step or an endpoint; none if no round has it. A round without it has no figures.
fn of_part(rounds: &[Measures], part: &str) -> Option<Vec<Measures>> {
    let found: Vec<Option<&Measures>> = rounds.iter().map(|round| round.of_part(part)).collect();
    let is_known = found.iter().any(Option::is_some);
    is_known.then(|| found.into_iter().map(|it| it.cloned().unwrap_or_default()).collect())
}

const MORE_ROUNDS: &str = ", an interval with the limit in it; more rounds narrow it";
const BUCKETS: &str = ", as closely as the service's buckets are wide; it needs closer ones there";
const LONGER_TIMEOUT: &str = ", since requests timed out or were cut off; use a longer --timeout";

impl Judgement {
    /// With what it is about before its words.
    pub fn of(self, what: &str) -> Self {
        Self { words: format!("{what}: {}", self.words), ..self }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected a figure, > or <, and a limit: 'p99 > 1.1x' (times the \
            first variant's), 'p99 > 50ms', 'failed > 1%', or for one case, step or \
            endpoint of the server, 'C: failed > 0', 'endpoint GET /orders: p99 > 50ms'";
        let (subject, rest) = match text.rsplit_once(": ") {
            Some((subject, rest)) => (Some(subject.trim().to_owned()), rest),
            None => (None, text),
        };
        let at = rest.find(['<', '>']).ok_or_else(|| format!("found {text:?}, {EXPECTED}"))?;
        let limit_text = rest[at + 1..].trim();
        let figure = Figure::parse(rest[..at].trim(), limit_text);
        let figure = figure.map_err(|error| format!("{error}; {EXPECTED}"))?;
        let number = match figure {
            Figure::Share(Share::MemoryGrowth) => limit_text.trim_start_matches('+'),
            _ => limit_text,
        };
        let limit = limit(number, figure);
        Ok(Self {
            text: text.trim().to_owned(),
            subject,
            figure,
            above: rest[at..].starts_with('>'),
            limit: limit.ok_or_else(|| format!("found {text:?}, {EXPECTED}"))?,
        })
    }
}

/// `1.1x`, or a number with a unit of the figure's kind.
fn limit(text: &str, figure: Figure) -> Option<Limit> {
    let ends = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..ends].parse().ok()?;
    let unit = text[ends..].trim();
    if matches!(unit, "x" | "×") {
        return Some(Limit::Times(number));
    }
    let seconds = match unit {
        "µs" | "us" => Some(1e-6),
        "ms" => Some(1e-3),
        "s" => Some(1.0),
        _ => None,
    };
    let scale = match (figure.unit(), unit) {
        ("%", "%") => 0.01,
        ("bytes", "" | "bytes") | ("", "") => 1.0,
        ("", "/s") if figure == Figure::RATE => 1.0,
        ("bytes", "KiB") => 1024.0,
        ("bytes", "MiB") => 1024.0 * 1024.0,
        ("bytes", "GiB") => 1024.0 * 1024.0 * 1024.0,
        ("s", _) => seconds?,
        ("ms", _) => seconds? * 1e3,
        ("µs", _) => seconds? * 1e6,
        _ => return None,
    };
    Some(Limit::Value(number * scale))
}

#[cfg(test)]
mod tests {
    use super::super::comparison::tests::{of_rounds, study};
    use super::Finding::{Failed, NotDecided, Passed, Unknown};
    use super::*;

    fn condition(text: &str) -> Condition {
        text.parse().unwrap()
    }

    #[test]
    fn limits_are_times_or_have_the_measures_unit() {
        for (text, limit) in [
            ("p99 > 1.1x", Limit::Times(1.1)),
            ("p99.9>50ms", Limit::Value(50.0)),
            ("p50 > 0.05s", Limit::Value(50.0)),
            ("rate < 1000", Limit::Value(1000.0)),
            ("memory > 64MiB", Limit::Value(67_108_864.0)),
            ("cpu > 100us", Limit::Value(100.0)),
            ("failed > 0", Limit::Value(0.0)),
            ("failed > 1%", Limit::Value(0.01)),
            ("memory > +10%", Limit::Value(0.1)),
            ("A: memory > +0.5 %", Limit::Value(0.005)),
            ("p95 > 5ms", Limit::Value(5.0)),
            ("p12.5 > 5ms", Limit::Value(5.0)),
        ] {
            let found = condition(text);
            let (Limit::Times(close) | Limit::Value(close)) = found.limit;
            let (Limit::Times(expected) | Limit::Value(expected)) = limit;
            assert!((close / expected - 1.0).abs() < 1e-9 || close == expected, "{text}");
            assert_eq!(found.compares(), matches!(limit, Limit::Times(_)), "{text}");
            assert_eq!(found.above, !text.contains('<'));
        }
        let subject = |text| condition(text).subject;
        assert_eq!(subject("C: p99 > 1x").as_deref(), Some("C"));
        assert_eq!(subject("200/s:10s: p99 > 1x").as_deref(), Some("200/s:10s"));
        assert_eq!(subject("C: GET /a: p99 > 1x").as_deref(), Some("C: GET /a"));
        for text in [
            "",
            "p99",
            "p0 > 1x",
            "p100.1 > 1x",
            "px > 1x",
            "p99 > x",
            "p99 > 5",
            "p99 = 5ms",
            "rate > 5ms",
            "rate > 5%",
            "memory > 10%",
            "failed > +1%",
            "p99 > +5ms",
            "p99 > 1y",
        ] {
            assert!(text.parse::<Condition>().unwrap_err().contains("expected"), "{text}");
        }
    }

    #[test]
    fn a_proven_slowdown_fails_and_noise_is_not_decided() {
        for (text, measure, base, other, result, words) in [
            (
                "p99 > 1.1x",
                Measure::P99,
                &[1.0, 1.1, 0.9][..],
                &[1.5, 1.66, 1.34][..],
                Failed,
                "p99 > 1.1x: found 1.49",
            ),
            ("p99 > 1.1x", Measure::P99, &[1.0, 1.1, 0.9], &[0.8, 2.5, 1.0], NotDecided, "rounds"),
            ("p99 > 1.5x", Measure::P99, &[1.0, 1.0, 1.0], &[1.1, 1.1, 1.1], Passed, "found 1.10"),
            // Without an interval the ratio itself decides.
            ("p99 > 1.1x", Measure::P99, &[1.0], &[1.2], Failed, "found 1.20"),
            // From none to some is more than any number of times.
            ("failed > 2x", Measure::Failed, &[0.0, 0.0], &[0.0, 1.0], Failed, "0.500 after 0"),
            ("failed > 2x", Measure::Failed, &[0.0, 1.0], &[8.0, 9.0], Failed, "8.50 after 0.500"),
            ("failed > 2x", Measure::Failed, &[0.0, 0.0], &[0.0, 0.0], Passed, "0 after 0"),
            ("failed < 0.5x", Measure::Failed, &[1.0, 2.0], &[0.0, 0.0], Failed, "0 after 1.50"),
        ] {
            let studies =
                [("a".to_owned(), study(measure, base)), ("b".to_owned(), study(measure, other))];
            let judged = &condition(text).judge_comparison(&studies, true)[0];
            let is_as_expected = judged.result == result && judged.words.contains(words);
            assert!(is_as_expected, "{other:?}: {judged:?}");
        }
    }

    #[test]
    fn a_case_without_the_number_is_an_error_beside_one_that_has_it() {
        let named = |id: &str, mut study: Study| {
            study.cases[0].id = id.to_owned();
            study.cases.remove(0)
        };
        let good = || study(Measure::P99, &[1.0, 1.0]);
        let broken = named("B", study(Measure::Failed, &[5.0, 5.0]));
        let (mut before, mut after) = (good(), good());
        before.cases.push(named("B", good()));
        after.cases.push(broken);
        let studies = [("a".to_owned(), before), ("b".to_owned(), after)];
        let (times, value) = (condition("p99 > 1.1x"), condition("p99 > 2ms"));
        let judge = |it: &Condition| it.judge_comparison(&studies, false);
        let error = report_conditions(&[times], false, judge).unwrap_err().to_string();
        assert!(error.contains("--fail-if p99 > 1.1x: there is no such case"), "{error}");
        let judge = |it: &Condition| it.judge(&studies[1].1.cases);
        assert!(report_conditions(&[value], false, judge).is_err());
        assert_eq!(report_conditions(&[condition("A: p99 > 2ms")], false, judge).unwrap(), Passed);

        // Nor does another variant have it, or any case, though one has.
        let [(_, both), _] = studies;
        let mut empty = both.clone();
        empty.cases[1].rounds.clear();
        for other in [good(), Study::default(), empty] {
            let studies = [&both, &both, &other].map(|study| ("x".to_owned(), study.clone()));
            let judge = |it: &Condition| it.judge_comparison(&studies, false);
            assert!(report_conditions(&[condition("p99 > 9x")], false, judge).is_err());
            let judge =
                |it: &Condition| studies.iter().flat_map(|(_, of)| it.judge(&of.cases)).collect();
            assert!(report_conditions(&[condition("B: p99 > 2ms")], false, judge).is_err());
        }
    }

    #[test]
    fn a_lower_bound_decides_a_condition_only_beyond_its_limit() {
        let bound = of_rounds(Measure::P99, &[1000.0, 1000.0], true, 0.0);
        let known = study(Measure::P99, &[500.0, 500.0]);
        for (text, base, other, result) in [
            ("p99 > 50ms", &known, &bound, Failed),
            ("p99 > 5s", &known, &bound, NotDecided),
            ("p99 < 50ms", &known, &bound, Passed),
            ("p99 < 5s", &known, &bound, NotDecided),
            ("p99 > 1.5x", &known, &bound, Failed),
            ("p99 > 3x", &known, &bound, NotDecided),
            ("p99 < 1.5x", &known, &bound, Passed),
            ("p99 < 3x", &known, &bound, NotDecided),
            ("p99 > 1.5x", &bound, &known, Passed),
            ("p99 > 0.1x", &bound, &known, NotDecided),
            ("p99 < 0.9x", &bound, &known, Failed),
            ("p99 < 0.1x", &bound, &known, NotDecided),
            ("p99 > 0.1x", &bound, &bound, NotDecided),
        ] {
            let condition = condition(text);
            let studies = [("a".to_owned(), base.clone()), ("b".to_owned(), other.clone())];
            let judged = match condition.compares() {
                true => condition.judge_comparison(&studies, true),
                false => condition.judge(&other.cases),
            };
            assert_eq!(judged[0].result, result, "{text}: {judged:?}");
            assert_eq!(report_conditions(&[condition], false, |_| judged.clone()).unwrap(), result);
        }
    }

    #[test]
    fn a_limit_of_its_own_needs_no_other_variant() {
        let (steady, spread) = ([50.4, 50.4, 50.4], [49.0, 50.0, 51.0]);
        for (text, measure, rounds, result) in [
            // Within the error of a quantile, and beyond it.
            ("p50 > 50ms", Measure::P50, &steady[..], NotDecided),
            ("p50 > 49ms", Measure::P50, &steady, Failed),
            ("p50 > 52ms", Measure::P50, &steady, Passed),
            ("p99 > 40ms", Measure::P99, &spread, Failed),
            // It lies in the interval.
            ("p99 > 50ms", Measure::P99, &spread, NotDecided),
            ("p99 < 60ms", Measure::P99, &spread, Failed),
            // Failures were counted, and are no sample of anything.
            ("failed > 0", Measure::Failed, &[0.0, 0.0, 1.0], Failed),
            ("failed > 0", Measure::Failed, &[0.0, 0.0, 0.0], Passed),
        ] {
            let judged = condition(text).judge(&study(measure, rounds).cases);
            assert_eq!(judged[0].result, result, "{text}: {judged:?}");
        }
        for (text, rounds, result, words) in [
            ("memory > +10%", &[0.12][..], Failed, "found +12.0 %"),
            ("memory > +10%", &[-0.02], Passed, "found −2.00 %"),
            ("memory > +10%", &[0.3, 0.301, 0.299], Failed, "found +30.0 % (+29.8 % to +30.2 %)"),
            ("memory > +10%", &[0.02, 0.3], NotDecided, "more rounds"),
        ] {
            let rounds = rounds.iter().map(|growth| Measures::of_growth_in_test(*growth)).collect();
            let case = CaseResult { rounds, ..CaseResult::default() };
            let judged = &condition(text).judge(&[case])[0];
            assert_eq!(judged.result, result, "{text}: {judged:?}");
            assert!(judged.words.contains(words), "{judged:?}");
        }
        let cases = study(Measure::P99, &spread).cases;
        assert_eq!(condition("B: p99 > 40ms").judge(&cases)[0].result, Unknown);
        assert_eq!(condition("p50 > 40ms").judge(&cases)[0].result, Unknown);
    }

    #[test]
    fn a_time_of_survivors_passes_no_condition() {
        for (untimed, result) in
            [(0.0, Passed), (0.009, Passed), (0.01, NotDecided), (1.0, NotDecided)]
        {
            let study = of_rounds(Measure::P99, &[5.0], false, untimed);
            let judged = condition("p99 > 50ms").judge(&study.cases);
            assert_eq!(judged[0].result, result, "{untimed}: {judged:?}");
            assert_eq!(condition("p99 > 1ms").judge(&study.cases)[0].result, Failed);
        }
    }

    #[test]
    fn an_endpoint_of_the_server_is_judged_as_closely_as_its_buckets_are_wide() {
        // Of 100 requests 90 took up to 10 ms, 9 up to 100 ms, and one longer than 1 s.
        let buckets = [(0.0, Some(0.01), 90.0), (0.05, Some(0.1), 9.0), (1.0, None, 1.0)];
        let endpoint = Measures::of_endpoint_in_test("GET /a", 100, 2, &buckets);
        let case =
            |id: &str, rounds| CaseResult { id: id.to_owned(), rounds, ..CaseResult::default() };
        let one = [case("A", vec![endpoint.clone()])];
        let two = [case("A", vec![endpoint.clone(), endpoint.clone()])];
        for (text, result, words) in [
            ("endpoint GET /a: p90 > 10ms", Passed, "5.00 ms (0.000 ms to 10.0 ms)"),
            ("endpoint GET /a: p90 > 5ms", NotDecided, "buckets are wide"),
            ("endpoint GET /a: p95 > 49ms", Failed, "(50.0 ms to 100 ms)"),
            ("A: endpoint GET /a: p95 < 100ms", NotDecided, ""),
            ("endpoint GET /a: p99.5 > 900ms", Failed, "≥ 1,000 ms"),
            ("endpoint GET /a: p99.5 > 2s", NotDecided, "buckets are wide"),
            ("endpoint GET /a: failed > 1%", Failed, "found 2.00 %"),
            ("endpoint GET /a: failed > 2", Passed, "found 2"),
            ("endpoint GET /a: rate < 40", Passed, "found 50"),
            ("endpoint GET /a: cpu > 1us", Unknown, ""),
            ("endpoint GET /b: p90 > 1ms", Unknown, "the service counted requests of GET /a"),
            ("B: endpoint GET /a: p90 > 1ms", Unknown, ""),
        ] {
            let condition = condition(text);
            assert!(condition.is_about_server(), "{text}");
            for cases in [&one, &two] {
                let judged = &condition.judge(cases)[0];
                assert_eq!(judged.result, result, "{text}: {judged:?}");
            }
            let judged = &condition.judge(&one)[0];
            assert!(judged.words.contains(words), "{judged:?}");
        }
        // A round in which it had no requests has no figure, and does not pass.
        let lacks = [case("A", vec![endpoint.clone(), Measures::default()])];
        assert_eq!(condition("endpoint GET /a: p90 > 1s").judge(&lacks)[0].result, Unknown);
        let study = |cases: &[CaseResult]| {
            ("x".to_owned(), Study { cases: cases.to_vec(), ..Study::default() })
        };
        let studies = [study(&one), study(&one)];
        for (text, result) in [
            ("endpoint GET /a: p95 > 1.9x", NotDecided),
            ("endpoint GET /a: p95 > 2.1x", Passed),
            ("endpoint GET /a: rate < 0.9x", Passed),
        ] {
            let judged = condition(text).judge_comparison(&studies, true);
            assert_eq!(judged[0].result, result, "{text}: {judged:?}");
        }
    }

    #[test]
    fn a_condition_is_about_a_case_a_step_or_a_step_of_a_case() {
        let cases = ["A", "B"].map(|id| id.parse().unwrap());
        let steps = ["order", "GET /a"];
        for subject in ["A", "order", "GET /a", "B: GET /a", "endpoint GET /b", "A: endpoint x"] {
            let condition = condition(&format!("{subject}: p99 > 1ms"));
            assert!(condition.ensure_is_about(&cases, &steps).is_ok(), "{subject}");
        }
        for subject in ["C", "orders", "C: order", "A: B"] {
            let condition = condition(&format!("{subject}: p99 > 1ms"));
            let error = condition.ensure_is_about(&cases, &steps).unwrap_err().to_string();
            assert!(error.contains("the cases A, B, the steps order, GET /a"), "{error}");
        }
    }
}
