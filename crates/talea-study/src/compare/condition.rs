//! Conditions under which a study counts as failed: `--fail-if 'p99 > 1.1x'`.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, bail};
use serde::Serialize;

use super::comparison::{Comparison, MeasureComparison};
use super::words::{bounded, ratio as times, value};
use crate::study::{Case, CaseResult, Measure, Measures};
use talea_statistics::mean;
use talea_view::printable;
use talea_view::screen::note;

/// A measure and a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    /// The one case that it is about; all, where there is none.
    case: Option<String>,
    measure: Measure,
    above: bool,
    limit: Limit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// A multiple of the first variant's number.
    Times(f64),
    /// In the measure's own unit.
    Value(f64),
}

/// The result of a condition in one case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// Whether it holds: the number lies beyond the limit, with all of its interval if it has one.
    pub holds: bool,
    /// Whether the case has no such number, so that nothing is known.
    pub lacks_number: bool,
    /// Whether the number is a lower bound from which it does not follow whether it lies beyond the limit.
    pub undecided: bool,
    pub words: String,
}

/// Judges each condition, prints the results to standard error, and returns whether one holds.
/// Fails if a condition is about nothing that there is: it would otherwise seem not to hold.
pub fn report_conditions(
    conditions: &[Condition],
    judge: impl Fn(&Condition) -> Vec<Judgement>,
) -> Result<bool> {
    let judged: Vec<_> = conditions.iter().map(judge).collect();
    let judgements = judged.iter().flatten();
    for judgement in judgements.clone() {
        let failed = if judgement.holds { "FAILED: " } else { "" };
        note(format_args!("{failed}{}", printable(&judgement.words)));
    }
    if let Some(unjudged) =
        judged.iter().position(|of| of.is_empty() || of.iter().any(|it| it.lacks_number))
    {
        bail!(
            "--fail-if {}: the study has no such case, or did not measure this",
            conditions[unjudged]
        );
    }
    if let Some(undecided) = judgements.clone().find(|judgement| judgement.undecided) {
        bail!("--fail-if cannot be judged: {}", printable(&undecided.words));
    }
    Ok(judgements.into_iter().any(|judgement| judgement.holds))
}

impl Condition {
    /// Whether it compares variants.
    pub fn compares(&self) -> bool {
        matches!(self.limit, Limit::Times(_))
    }

    /// Fails if it is about none of a study's cases.
    pub fn ensure_is_about(&self, cases: &[Case]) -> Result<()> {
        if cases.iter().any(|case| self.is_about(&case.id)) {
            return Ok(());
        }
        let ids: Vec<&str> = cases.iter().map(|case| &*case.id).collect();
        bail!("--fail-if {self} names a case that this study lacks; it has {}", ids.join(", "))
    }

    /// Judges all variants but the first.
    pub fn judge_comparison(&self, comparison: &Comparison) -> Vec<Judgement> {
        let Limit::Times(limit) = self.limit else { return Vec::new() };
        let mut judgements = Vec::new();
        for other in &comparison.others {
            for case in other.cases.iter().filter(|case| self.is_about(&case.id)) {
                let line = case.lines.iter().find(|line| line.measure == self.measure);
                let judged = line.map(|line| self.judge_line(line, limit));
                let of = format!("{}, case {}", other.name, case.id);
                judgements.push(judged.unwrap_or_else(|| self.without_number()).of(&of));
            }
        }
        judgements
    }

    fn judge_line(&self, line: &MeasureComparison, limit: f64) -> Judgement {
        let Some(ratio) = line.ratio else {
            // A round has none of it. From nothing to something is more than any number of times.
            let ratio = line.other / line.base;
            let holds = self.is_beyond(ratio, ratio, limit);
            let (base, other) = (value(self.measure, line.base), value(self.measure, line.other));
            return self.judgement(holds, &format!("{other} after {base}"));
        };
        let (low, high) = ratio.interval.unwrap_or((ratio.ratio, ratio.ratio));
        match (line.base_at_least, line.other_at_least) {
            (false, false) => {
                self.judgement(self.is_beyond(low, high, limit), &format!("{ratio} times"))
            }
            (base, other) => {
                let low = if base { 0.0 } else { low };
                let high = if other { f64::INFINITY } else { high };
                self.judgement_of_bound(low, high, limit, &format!("{} times", times(line)))
            }
        }
    }

    /// Judges a number of which the bounds are known that this interval has.
    fn judgement_of_bound(&self, low: f64, high: f64, limit: f64, number: &str) -> Judgement {
        let holds = self.is_beyond(low, high, limit);
        let cannot_hold = if self.above { high <= limit } else { low >= limit };
        if holds || cannot_hold {
            return self.judgement(holds, number);
        }
        let words = format!(
            "{self} is not decided: {number}, since requests timed out or were cut off; use a longer --timeout"
        );
        Judgement { holds: false, lacks_number: false, undecided: true, words }
    }

    pub fn judge(&self, cases: &[CaseResult]) -> Vec<Judgement> {
        let Limit::Value(limit) = self.limit else { return Vec::new() };
        let mut judgements = Vec::new();
        for case in cases.iter().filter(|case| self.is_about(&case.id)) {
            let judged = self.judge_rounds(&case.rounds, limit);
            let of = format!("case {}", case.id);
            judgements.push(judged.unwrap_or_else(|| self.without_number()).of(&of));
        }
        if judgements.is_empty() {
            judgements.push(self.without_number());
        }
        judgements
    }

    /// Judges the rounds of a load; none if they have no such number.
    pub fn judge_load(&self, rounds: &[Measures]) -> Option<Judgement> {
        let Limit::Value(limit) = self.limit else { return None };
        self.judge_rounds(rounds, limit).filter(|_| self.case.is_none())
    }

    fn judge_rounds(&self, rounds: &[Measures], limit: f64) -> Option<Judgement> {
        let values = self.measure.of(rounds)?;
        let mean = mean(&values.numbers);
        let interval = self.measure.mean(&values.numbers).map(|mean| (mean.low, mean.high));
        let (low, high) = interval.unwrap_or((mean, mean));
        if values.at_least {
            let number = bounded(self.measure, mean, true);
            return Some(self.judgement_of_bound(low, f64::INFINITY, limit, &number));
        }
        let holds = self.is_beyond(low, high, limit);
        let show = |number| value(self.measure, number);
        let number = match interval {
            Some((low, high)) => format!("{} ({} to {})", show(mean), show(low), show(high)),
            None => show(mean),
        };
        Some(self.judgement(holds, &number))
    }

    fn is_about(&self, case: &str) -> bool {
        self.case.as_ref().is_none_or(|only| only == case)
    }

    /// Whether all of an interval lies beyond the limit.
    fn is_beyond(&self, low: f64, high: f64, limit: f64) -> bool {
        if self.above { low > limit } else { high < limit }
    }

    fn judgement(&self, holds: bool, number: &str) -> Judgement {
        let found = if holds { "holds" } else { "is not shown" };
        let words = format!("{self} {found}: {number}");
        Judgement { holds, lacks_number: false, undecided: false, words }
    }

    fn without_number(&self) -> Judgement {
        let words = format!("no figure to judge {self} by");
        Judgement { holds: false, lacks_number: true, undecided: false, words }
    }
}

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
            first variant's), 'p99 > 50ms', or for one case, 'C: failed > 0'";
        let (case, rest) = match text.rsplit_once(": ") {
            Some((case, rest)) => (Some(case.trim().to_owned()), rest),
            None => (None, text),
        };
        let at = rest.find(['<', '>']).ok_or_else(|| format!("found {text:?}, {EXPECTED}"))?;
        let measure: Measure =
            rest[..at].trim().parse().map_err(|error| format!("{error}; {EXPECTED}"))?;
        let limit = limit(rest[at + 1..].trim(), measure);
        Ok(Self {
            text: text.trim().to_owned(),
            case,
            measure,
            above: rest[at..].starts_with('>'),
            limit: limit.ok_or_else(|| format!("found {text:?}, {EXPECTED}"))?,
        })
    }
}

/// `1.1x`, or a number with a unit of the measure's kind.
fn limit(text: &str, measure: Measure) -> Option<Limit> {
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
    let scale = match (measure.unit(), unit) {
        ("bytes", "" | "bytes") | ("", "") => 1.0,
        ("", "/s") if measure == Measure::Rate => 1.0,
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
    use super::super::comparison::tests::{of, study};
    use super::*;
    use crate::study::Study;

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
        ] {
            let found = condition(text);
            let (Limit::Times(close) | Limit::Value(close)) = found.limit;
            let (Limit::Times(expected) | Limit::Value(expected)) = limit;
            assert!((close / expected - 1.0).abs() < 1e-9 || close == expected, "{text}");
            assert_eq!(found.compares(), matches!(limit, Limit::Times(_)), "{text}");
            assert_eq!(found.above, !text.contains('<'));
        }
        assert_eq!(condition("C: p99 > 1x").case.as_deref(), Some("C"));
        assert_eq!(condition("200/s:10s: p99 > 1x").case.as_deref(), Some("200/s:10s"));
        for text in
            ["", "p99", "p98 > 1x", "p99 > x", "p99 > 5", "p99 = 5ms", "rate > 5ms", "p99 > 1y"]
        {
            assert!(text.parse::<Condition>().unwrap_err().contains("expected"), "{text}");
        }
    }

    #[test]
    fn a_proven_slowdown_fails_and_noise_does_not() {
        for (text, measure, base, other, holds, words) in [
            (
                "p99 > 1.1x",
                Measure::P99,
                &[1.0, 1.1, 0.9][..],
                &[1.5, 1.66, 1.34][..],
                true,
                "p99 > 1.1x holds: 1.49",
            ),
            ("p99 > 1.1x", Measure::P99, &[1.0, 1.1, 0.9], &[0.8, 2.5, 1.0], false, "is not shown"),
            // Without an interval the ratio itself decides.
            ("p99 > 1.1x", Measure::P99, &[1.0], &[1.2], true, "holds"),
            // From none to some is more than any number of times.
            ("failed > 2x", Measure::Failed, &[0.0, 0.0], &[0.0, 1.0], true, "holds"),
            ("failed > 2x", Measure::Failed, &[0.0, 1.0], &[8.0, 9.0], true, "8.50 after 0.500"),
            ("failed > 2x", Measure::Failed, &[0.0, 0.0], &[0.0, 0.0], false, "0 after 0"),
            ("failed < 0.5x", Measure::Failed, &[1.0, 2.0], &[0.0, 0.0], true, "0 after 1.50"),
        ] {
            let judged = &condition(text).judge_comparison(&of(measure, base, other, true))[0];
            assert!(judged.holds == holds && judged.words.contains(words), "{other:?}: {judged:?}");
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
        let comparison = Comparison::of(&studies, false).unwrap();
        let (times, value) = (condition("p99 > 1.1x"), condition("p99 > 2ms"));
        let judge = |it: &Condition| it.judge_comparison(&comparison);
        let error = report_conditions(&[times], judge).unwrap_err().to_string();
        assert!(error.contains("--fail-if p99 > 1.1x: the study has no such case"), "{error}");
        let judge = |it: &Condition| it.judge(&studies[1].1.cases);
        assert!(report_conditions(&[value], judge).is_err());
        assert!(!report_conditions(&[condition("A: p99 > 2ms")], judge).unwrap());

        // Nor does another variant have it, or any case, though one has.
        let [(_, both), _] = studies;
        let mut empty = both.clone();
        empty.cases[1].rounds.clear();
        for other in [good(), Study::default(), empty] {
            let studies = [&both, &both, &other].map(|study| ("x".to_owned(), study.clone()));
            let comparison = Comparison::of(&studies, false).unwrap();
            let judge = |it: &Condition| it.judge_comparison(&comparison);
            assert!(report_conditions(&[condition("p99 > 9x")], judge).is_err());
            assert!(
                report_conditions(&[condition("B: p99 > 2ms")], |it| studies
                    .iter()
                    .flat_map(|(_, of)| it.judge(&of.cases))
                    .collect())
                .is_err()
            );
        }
    }

    #[test]
    fn a_lower_bound_decides_a_condition_only_beyond_its_limit() {
        use super::super::comparison::tests::of_rounds;
        let bound = of_rounds(Measure::P99, &[1000.0, 1000.0], true, 0.0);
        let known = study(Measure::P99, &[500.0, 500.0]);
        for (text, base, other, holds, undecided) in [
            ("p99 > 50ms", &known, &bound, true, false),
            ("p99 > 5s", &known, &bound, false, true),
            ("p99 < 50ms", &known, &bound, false, false),
            ("p99 < 5s", &known, &bound, false, true),
            ("p99 > 1.5x", &known, &bound, true, false),
            ("p99 > 3x", &known, &bound, false, true),
            ("p99 < 1.5x", &known, &bound, false, false),
            ("p99 < 3x", &known, &bound, false, true),
            ("p99 > 1.5x", &bound, &known, false, false),
            ("p99 > 0.1x", &bound, &known, false, true),
            ("p99 < 0.9x", &bound, &known, true, false),
            ("p99 < 0.1x", &bound, &known, false, true),
            ("p99 > 0.1x", &bound, &bound, false, true),
        ] {
            let condition = condition(text);
            let studies = [("a".to_owned(), base.clone()), ("b".to_owned(), other.clone())];
            let comparison = Comparison::of(&studies, true).unwrap();
            let judged = match condition.compares() {
                true => condition.judge_comparison(&comparison),
                false => condition.judge(&other.cases),
            };
            assert_eq!((judged[0].holds, judged[0].undecided), (holds, undecided), "{judged:?}");
            assert_eq!(report_conditions(&[condition], |_| judged.clone()).is_err(), undecided);
        }
    }

    #[test]
    fn a_limit_of_its_own_needs_no_other_variant() {
        let (steady, spread) = ([50.4, 50.4, 50.4], [49.0, 50.0, 51.0]);
        for (text, measure, rounds, holds) in [
            // Within the error of a quantile, and beyond it.
            ("p50 > 50ms", Measure::P50, steady, false),
            ("p50 > 49ms", Measure::P50, steady, true),
            ("p99 > 40ms", Measure::P99, spread, true),
            // It lies in the interval.
            ("p99 > 50ms", Measure::P99, spread, false),
            ("p99 < 60ms", Measure::P99, spread, true),
        ] {
            let judged = condition(text).judge(&study(measure, &rounds).cases);
            assert_eq!(judged[0].holds, holds, "{text}: {judged:?}");
        }
        let cases = study(Measure::P99, &spread).cases;
        assert!(condition("B: p99 > 40ms").judge(&cases)[0].lacks_number);
        assert!(condition("p50 > 40ms").judge(&cases)[0].lacks_number);
    }
}
