//! The steps of a load: which of the scenario's requests are slow, and which fail.

use serde::{Deserialize, Serialize};

use crate::outcome::{Outcome, in_ms};
use crate::scenario::Scenario;

/// The requests of one step. Response times are of its answers, whatever their status, by the
/// clients' clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepSummary {
    /// Its name in the scenario.
    pub name: String,
    /// Its HTTP method.
    pub method: String,
    /// Answers that were read to their end.
    pub answers: u64,
    /// Requests that failed, those that could not be sent among them.
    pub failed: u64,
    /// Mean response time, in milliseconds.
    pub mean_ms: Option<f64>,
    /// Median.
    pub p50_ms: Option<f64>,
    /// 90th percentile.
    pub p90_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// The longest.
    pub max_ms: Option<f64>,
}

impl StepSummary {
    /// Those of a scenario, in its order.
    pub fn all_of(scenario: &Scenario, outcome: &Outcome) -> Vec<Self> {
        let steps = scenario.steps.iter().zip(&outcome.step_times).enumerate();
        let summary = steps.map(|(n, (step, times))| {
            let failures = outcome.tally.failures.iter();
            Self {
                name: step.name.clone(),
                method: step.method.to_string(),
                answers: times.count(),
                failed: failures.filter(|(kind, _)| kind.step() == n).map(|(_, count)| count).sum(),
                mean_ms: times.mean().map(|seconds| seconds * 1e3),
                p50_ms: in_ms(times, 0.5),
                p90_ms: in_ms(times, 0.9),
                p99_ms: in_ms(times, 0.99),
                max_ms: in_ms(times, 1.0),
            }
        });
        summary.collect()
    }
}
