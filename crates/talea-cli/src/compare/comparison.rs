//! Variants beside each other: ratios of their measures, with intervals.

use serde::{Deserialize, Serialize};
use talea_load::figures::counted;
use talea_statistics::{Ratio, mean};

use crate::study::{CaseResult, Measure, Study};

/// Variants, each compared with the first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Comparison {
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
pub(crate) struct VariantComparison {
    pub name: String,
    pub cases: Vec<CaseComparison>,
}

/// One case of two variants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CaseComparison {
    pub id: String,
    /// The measures that both have.
    pub lines: Vec<MeasureComparison>,
}

/// One number of a case, of two variants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MeasureComparison {
    pub measure: Measure,
    /// The first variant's: the mean over its rounds.
    pub base: f64,
    pub other: f64,
    /// How many times the first variant's the other's is; none where one of them is 0.
    pub ratio: Option<Ratio>,
    pub verdict: Verdict,
}

/// The meaning of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// It is better: its interval lies on the better side of 1.
    Better,
    Worse,
    /// 1 is in its interval.
    NoDifferenceShown,
    /// There are no rounds that an interval could come from, or nothing to divide by.
    NotKnown,
}

impl Comparison {
    /// Compares studies that were run side by side with the first; each has its name.
    pub(crate) fn side_by_side(studies: &[(String, Study)]) -> Option<Self> {
        Self::of(studies, true)
    }

    /// Compares studies that were run apart.
    pub(crate) fn apart(studies: &[(String, Study)]) -> Option<Self> {
        Self::of(studies, false)
    }

    fn of(studies: &[(String, Study)], paired: bool) -> Option<Self> {
        let ((base, first), others) = studies.split_first()?;
        let others = others.iter().map(|(name, study)| VariantComparison {
            name: name.clone(),
            cases: first.cases.iter().filter_map(|one| compared(one, study, paired)).collect(),
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

fn compared(base: &CaseResult, study: &Study, paired: bool) -> Option<CaseComparison> {
    let other = study.cases.iter().find(|case| case.id == base.id && case.model == base.model)?;
    let of = |result: &CaseResult, measure| -> Option<Vec<f64>> {
        result.rounds.iter().map(|round| round.get(&measure).copied()).collect()
    };
    let lines = Measure::ALL.into_iter().filter_map(|(measure, ..)| {
        let (to, of) = (of(base, measure)?, of(other, measure)?);
        let paired = paired && to.len() == of.len();
        let ratio = measure.ratio(&of, &to, paired);
        Some(MeasureComparison {
            measure,
            base: mean(&to),
            other: mean(&of),
            ratio,
            verdict: Verdict::of(measure, ratio),
        })
    });
    Some(CaseComparison { id: base.id.clone(), lines: lines.collect() })
}

impl Verdict {
    fn of(measure: Measure, ratio: Option<Ratio>) -> Self {
        let Some((low, high)) = ratio.and_then(|ratio| ratio.interval) else {
            return Self::NotKnown;
        };
        match (low > 1.0, high < 1.0) {
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
            if compared(case, study, false).is_none() {
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

    /// A study of one case whose rounds have these numbers of one measure.
    pub(crate) fn study(measure: Measure, rounds: &[f64]) -> Study {
        let rounds: Vec<_> = rounds.iter().map(|value| [(measure, *value)]).collect();
        let rounds: Vec<std::collections::BTreeMap<_, _>> =
            rounds.into_iter().map(|round| round.into_iter().collect()).collect();
        serde_json::from_value(serde_json::json!({
            "cases": [{
                "id": "A", "model": "10 clients × 20 iterations", "clients": 10, "iterations": 20,
                "client": {}, "server": null, "prometheus": null, "queries": [],
                "disagreement": null, "differences": [], "rounds": rounds,
            }],
            "subject": "items-api", "started": true, "scenario": "crud", "steps": ["create"],
            "protocol": "HTTP/1.1", "emptied": true, "missing_metrics": [],
            "machine": {
                "cores": 2, "cpu_model": "x", "memory_bytes": null, "os": "x", "kernel": "x",
                "architecture": "x",
            },
            "versions": { "talea": "0", "subject": "x", "build": "release" },
            "command": "talea study", "begun": "2026-01-01T00:00:00Z", "scrapes": 0,
            "sampled_every_ms": 100,
        }))
        .unwrap()
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
        let (low, high) = ([1.0, 1.1, 0.9, 1.0], [2.0, 2.2, 1.9, 2.1]);
        assert_eq!(verdict(Measure::P99, &low, &high), Verdict::Worse);
        assert_eq!(verdict(Measure::P99, &high, &low), Verdict::Better);
        assert_eq!(verdict(Measure::Rate, &low, &high), Verdict::Better);
        assert_eq!(verdict(Measure::Rate, &high, &low), Verdict::Worse);
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
    fn noise_is_no_difference() {
        let (a, b) = ([1.0, 1.1, 0.9, 1.0], [1.1, 0.9, 1.0, 1.05]);
        assert_eq!(verdict(Measure::P99, &a, &b), Verdict::NoDifferenceShown);
        assert_eq!(verdict(Measure::P99, &[1.0], &[9.0]), Verdict::NotKnown);
        assert_eq!(verdict(Measure::Failed, &[0.0, 0.0], &[3.0, 1.0]), Verdict::NotKnown);
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
        let comparison = Comparison::apart(&studies).unwrap();
        let text = comparison.caveats.join("\n");
        assert!(text.contains("Not the same build: release in a, debug in b."), "{text}");
        assert!(text.contains("Case A is not in b."), "{text}");
        assert!(text.contains("Case A of b: 2 requests failed."), "{text}");
        assert!(text.contains("Case A of c: 1 request failed."), "{text}");
        assert!(comparison.others[0].cases.is_empty());
    }
}
