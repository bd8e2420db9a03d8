//! Variants beside each other: ratios of their measures, with intervals.

use serde::{Deserialize, Serialize};
use talea_statistics::figures::counted;
use talea_statistics::{Ratio, mean};

use crate::study::{CaseResult, Measure, Study, Values};

/// Variants, each compared with the first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// The variant that the others are compared with.
    pub base: String,
    /// How many rounds each had, at least.
    pub rounds: u64,
    /// Whether the rounds were run side by side, so that each has a ratio of its own.
    pub paired: bool,
    pub others: Vec<VariantComparison>,
    /// The reasons why the ratios may mislead, in words.
    pub caveats: Vec<String>,
}

/// A variant beside the first one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VariantComparison {
    pub name: String,
    pub cases: Vec<CaseComparison>,
}

/// One case of two variants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseComparison {
    pub id: String,
    /// The measures that both have; none if the other has no such case.
    pub lines: Vec<MeasureComparison>,
}

/// One number of a case, of two variants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MeasureComparison {
    pub measure: Measure,
    /// The first variant's: the mean over its rounds.
    pub base: f64,
    pub other: f64,
    /// Whether the first variant's is a lower bound: it lies among requests that timed out or were cut off.
    #[serde(default, skip_serializing_if = "is_known")]
    pub base_at_least: bool,
    /// Whether the other's is.
    #[serde(default, skip_serializing_if = "is_known")]
    pub other_at_least: bool,
    /// How many times the first variant's the other's is; none where one of them is 0.
    pub ratio: Option<Ratio>,
    pub verdict: Verdict,
}

/// The meaning of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is better: its interval lies on the better side of 1.
    Better,
    Worse,
    /// 1 is in its interval.
    NoDifferenceShown,
    /// The faster one may be so because requests of it timed out, were cut off, or failed without an answer.
    NotDecided,
    /// There are no rounds that an interval could come from, or nothing to divide by.
    NotKnown,
}

fn is_known(at_least: &bool) -> bool {
    !at_least
}

impl Comparison {
    /// Compares studies with the first; each has its name. Those that were run side by side are paired.
    pub fn of(studies: &[(String, Study)], paired: bool) -> Option<Self> {
        let ((base, first), others) = studies.split_first()?;
        let others = others.iter().map(|(name, study)| VariantComparison {
            name: name.clone(),
            cases: first.cases.iter().map(|one| compared(one, study, paired)).collect(),
        });
        let cases = studies.iter().flat_map(|(_, study)| &study.cases);
        Some(Self {
            base: base.clone(),
            rounds: cases.map(|case| case.rounds.len() as u64).min().unwrap_or(0),
            paired,
            others: others.collect(),
            caveats: caveats(studies),
        })
    }
}

impl VariantComparison {
    /// Whether nothing of it could be compared.
    pub fn is_empty(&self) -> bool {
        self.cases.iter().all(|case| case.lines.is_empty())
    }
}

fn compared(base: &CaseResult, study: &Study, paired: bool) -> CaseComparison {
    let other = study.case_like(base);
    let lines = Measure::ALL.into_iter().filter_map(|(measure, ..)| {
        if measure == Measure::Time && base.iterations.is_none() {
            // It is that of the case.
            return None;
        }
        let (to, of) = (measure.of(&base.rounds)?, measure.of(&other?.rounds)?);
        let paired = paired && to.numbers.len() == of.numbers.len();
        let ratio = measure.ratio(&of.numbers, &to.numbers, paired);
        Some(MeasureComparison {
            measure,
            base: mean(&to.numbers),
            other: mean(&of.numbers),
            base_at_least: to.at_least,
            other_at_least: of.at_least,
            ratio,
            verdict: Verdict::of(measure, ratio, &of, &to),
        })
    });
    CaseComparison { id: base.id.clone(), lines: lines.collect() }
}

impl Verdict {
    /// The verdict on a ratio of some values to others. A lower bound says that its variant is slow, and never
    /// that it is fast.
    fn of(measure: Measure, ratio: Option<Ratio>, of: &Values, to: &Values) -> Self {
        let Some((low, high)) = ratio.and_then(|ratio| ratio.interval) else {
            return Self::NotKnown;
        };
        match (low > 1.0, high < 1.0) {
            (true, _) if to.at_least || to.is_of_survivors(measure, of) => Self::NotDecided,
            (_, true) if of.at_least || of.is_of_survivors(measure, to) => Self::NotDecided,
            (false, false) if of.at_least || to.at_least => Self::NotDecided,
            (false, false) => Self::NoDifferenceShown,
            (more, _) if more == measure.more_is_better() => Self::Better,
            _ => Self::Worse,
        }
    }
}

/// The differences between the variants, and the faults in one of them.
fn caveats(studies: &[(String, Study)]) -> Vec<String> {
    let mut caveats = Vec::new();
    let Some(((base, first), others)) = studies.split_first() else { return caveats };
    for (name, study) in others {
        let mut unlike = |what: &str, here: &str, there: &str| {
            if here != there {
                caveats.push(format!("{what}: {there} in {base}, {here} in {name}."));
            }
        };
        let machine =
            |study: &Study| format!("{}, {}", study.machine.cpu_model, study.machine.kernel);
        unlike("Not the same machine", &machine(study), &machine(first));
        unlike("Not the same build", &study.versions.build, &first.versions.build);
        unlike("Not the same scenario", &study.scenario, &first.scenario);
        unlike("Not the same protocol", &study.protocol, &first.protocol);
        for case in &first.cases {
            if compared(case, study, false).lines.is_empty() {
                caveats.push(format!("Case {} is not in {name}.", case.id));
            }
        }
    }
    for (name, study) in studies {
        for case in study.cases.iter().filter(|case| !case.is_clean()) {
            let words = case.disagreement.clone();
            let failed = format!("{} failed.", counted(case.client.failed, "request"));
            caveats.push(format!("Case {} of {name}: {}", case.id, words.unwrap_or(failed)));
        }
        for case in &study.cases {
            let limits = case.client.limits.iter();
            caveats.extend(limits.map(|limit| format!("Case {} of {name}: {limit}.", case.id)));
        }
    }
    caveats
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::study::Measures;

    /// A study of one case whose rounds have these numbers of one measure.
    pub(crate) fn study(measure: Measure, rounds: &[f64]) -> Study {
        of_rounds(measure, rounds, false, 0.0)
    }

    /// As [`study`], of numbers that are lower bounds, or with a share of requests that count in no time.
    pub(crate) fn of_rounds(
        measure: Measure,
        rounds: &[f64],
        at_least: bool,
        untimed: f64,
    ) -> Study {
        let rounds = rounds
            .iter()
            .map(|value| Measures::of_test(&[(measure, *value)], at_least, untimed))
            .collect();
        let case = CaseResult { id: "A".to_owned(), rounds, ..CaseResult::default() };
        let mut study = Study { cases: vec![case], ..Study::default() };
        study.machine.cores = 2;
        study.versions.build = "release".to_owned();
        study
    }

    pub(crate) fn of(measure: Measure, base: &[f64], other: &[f64], paired: bool) -> Comparison {
        let studies =
            [("a".to_owned(), study(measure, base)), ("b".to_owned(), study(measure, other))];
        Comparison::of(&studies, paired).unwrap()
    }

    fn verdict(measure: Measure, base: &[f64], other: &[f64]) -> Verdict {
        of(measure, base, other, true).others[0].cases[0].lines[0].verdict
    }

    #[test]
    fn a_difference_beyond_its_interval_is_better_or_worse_by_its_measure() {
        use Verdict::{Better, NoDifferenceShown, NotKnown, Worse};
        let (low, high) = (&[1.0, 1.1, 0.9, 1.0][..], &[2.0, 2.2, 1.9, 2.1][..]);
        for (measure, base, other, expected) in [
            (Measure::P99, low, high, Worse),
            (Measure::P99, high, low, Better),
            (Measure::Rate, low, high, Better),
            (Measure::Rate, high, low, Worse),
            (Measure::P99, low, &[1.1, 0.9, 1.0, 1.05], NoDifferenceShown),
            (Measure::P99, &[1.0], &[9.0], NotKnown),
            (Measure::Failed, &[0.0, 0.0], &[3.0, 1.0], NotKnown),
        ] {
            assert_eq!(verdict(measure, base, other), expected, "{measure}: {base:?} {other:?}");
        }
    }

    #[test]
    fn a_variant_is_not_faster_because_its_slow_requests_have_no_time() {
        use Verdict::{Better, NoDifferenceShown, NotDecided, NotKnown, Worse};
        let (low, high) = (&[1.0, 1.1, 0.9, 1.0][..], &[2.0, 2.2, 1.9, 2.1][..]);
        // Numbers, whether they are lower bounds, and the share of requests that failed without a time.
        let (known, bound, failed) = ((false, 0.0), (true, 0.0), (false, 0.1));
        for (measure, base, other, expected) in [
            (Measure::P99, (low, known), (high, bound), Worse),
            (Measure::P99, (high, known), (low, bound), NotDecided),
            (Measure::P99, (low, known), (low, bound), NotDecided),
            (Measure::P99, (high, bound), (low, known), Better),
            (Measure::P99, (low, bound), (high, known), NotDecided),
            (Measure::P99, (low, bound), (high, bound), NotDecided),
            (Measure::P99, (&[1.0], known), (&[9.0], bound), NotKnown),
            (Measure::P99, (high, known), (low, failed), NotDecided),
            (Measure::Mean, (high, known), (low, failed), NotDecided),
            (Measure::P50, (high, known), (low, failed), Better),
            (Measure::P99, (low, failed), (high, known), NotDecided),
            (Measure::P99, (low, known), (high, failed), Worse),
            (Measure::P99, (high, failed), (low, failed), Better),
            (Measure::P99, (low, known), (low, failed), NoDifferenceShown),
            (Measure::Rate, (low, known), (high, failed), Better),
        ] {
            let [one, two] =
                [("a", base), ("b", other)].map(|(name, (rounds, (at_least, untimed)))| {
                    (name.to_owned(), of_rounds(measure, rounds, at_least, untimed))
                });
            let comparison = Comparison::of(&[one, two], true).unwrap();
            let line = &comparison.others[0].cases[0].lines[0];
            assert_eq!(line.verdict, expected, "{measure}: {base:?} {other:?}");
        }
    }

    #[test]
    fn the_time_of_a_case_that_lasts_for_a_time_is_not_compared() {
        for (iterations, lines) in [(Some(5), 1), (None, 0)] {
            let with = |seconds: &[f64]| {
                let mut study = study(Measure::Time, seconds);
                study.cases[0].iterations = iterations;
                study
            };
            let studies =
                [("a".to_owned(), with(&[1.0, 1.0])), ("b".to_owned(), with(&[1.1, 1.1]))];
            let comparison = Comparison::of(&studies, true).unwrap();
            assert_eq!(comparison.others[0].cases[0].lines.len(), lines, "{iterations:?}");
        }
    }

    #[test]
    fn quantiles_of_neighbouring_buckets_may_be_of_equal_times() {
        // All rounds of each are in one bucket, so their spread is 0.
        let next = 2f64.powf(1.0 / 32.0);
        let (base, other, far) = ([1.0; 5], [next; 5], [next * next; 5]);
        for measure in [Measure::P50, Measure::P9999] {
            assert_eq!(verdict(measure, &base, &other), Verdict::NoDifferenceShown);
            assert_eq!(verdict(measure, &base, &far), Verdict::Worse);
            let apart = &of(measure, &base, &other, false).others[0].cases[0].lines[0];
            assert_eq!(apart.verdict, Verdict::NoDifferenceShown);
        }
        assert_eq!(verdict(Measure::Mean, &base, &other), Verdict::Worse, "means are exact");
    }

    #[test]
    fn differences_between_the_two_runs_are_reported() {
        let (a, mut b) = (study(Measure::P99, &[1.0]), study(Measure::P99, &[1.0]));
        b.versions.build = "debug".to_owned();
        b.cases[0].model = "another".to_owned();
        b.cases[0].client.failed = 2;
        let mut of_one = study(Measure::P99, &[1.0]);
        of_one.cases[0].client.failed = 1;
        let studies = [("a".to_owned(), a), ("b".to_owned(), b), ("c".to_owned(), of_one)];
        let comparison = Comparison::of(&studies, false).unwrap();
        for expected in [
            "Not the same build: release in a, debug in b.",
            "Case A is not in b.",
            "Case A of b: 2 requests failed.",
            "Case A of c: 1 request failed.",
        ] {
            let caveats = &comparison.caveats;
            assert!(caveats.iter().any(|caveat| caveat == expected), "{expected}: {caveats:?}");
        }
        assert!(comparison.others[0].cases[0].lines.is_empty());
    }
}
