//! The steps of a load: which of the scenario's requests are slow, and which fail.

use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use crate::scenario::Scenario;

/// The requests of one step. Response times are of its answers, whatever their status, by the
/// clients' clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StepSummary {
    pub name: String,
    pub method: String,
    /// Answers that were read to their end.
    pub answers: u64,
    /// Requests that failed, those that could not be sent among them.
    pub failed: u64,
    pub mean_ms: Option<f64>,
    pub p50_ms: Option<f64>,
    pub p90_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub max_ms: Option<f64>,
}

impl StepSummary {
    /// Those of a scenario, in its order.
    pub(crate) fn all_of(scenario: &Scenario, outcome: &Outcome) -> Vec<Self> {
        let steps = scenario.steps.iter().zip(&outcome.step_times).enumerate();
        let summary = |(n, (step, times)): (usize, (&crate::scenario::Step, _))| {
            let times: &talea::HistogramSnapshot = times;
            let quantile = |q| times.quantile(q).map(|seconds| seconds * 1e3);
            let failures = outcome.tally.failures.iter();
            Self {
                name: step.name.clone(),
                method: step.method.to_string(),
                answers: times.count(),
                failed: failures.filter(|(kind, _)| kind.step() == n).map(|(_, count)| count).sum(),
                mean_ms: times.mean().map(|seconds| seconds * 1e3),
                p50_ms: quantile(0.5),
                p90_ms: quantile(0.9),
                p99_ms: quantile(0.99),
                max_ms: quantile(1.0),
            }
        };
        steps.map(summary).collect()
    }
}
