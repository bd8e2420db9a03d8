//! The steps of a load: which of the scenario's requests are slow, and which fail.

use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;
use crate::scenario::Scenario;
use crate::times::{LowerBounds, Times};

/// The requests of one step. Response times are of its answers, whatever their status, and of its requests that
/// timed out or were cut off, by the clients' clock.
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
    /// Those of them that have no answer.
    pub failed_without_answer: u64,
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
    /// Those of these times that are lower bounds.
    #[serde(skip_serializing_if = "LowerBounds::is_empty")]
    pub at_least: LowerBounds,
    /// The distribution of these times.
    #[serde(skip)]
    pub times: Option<Times>,
}

impl StepSummary {
    /// Requests with an answer, those that failed without one, and those that could not be sent.
    pub fn requests(&self) -> u64 {
        self.answers + self.failed_without_answer
    }

    /// Those of a scenario, in its order.
    pub fn all_of(scenario: &Scenario, outcome: &Outcome) -> Vec<Self> {
        let steps = scenario.steps.iter().zip(&outcome.step_times).enumerate();
        let summary = steps.map(|(n, (step, times))| {
            let failures = outcome.tally.failures.iter().filter(|(kind, _)| kind.step() == n);
            let unanswered = failures.clone().filter(|(kind, _)| !kind.is_answered());
            let mut summary = Self {
                name: step.name.clone(),
                method: step.method.to_string(),
                answers: times.known(),
                failed: failures.map(|(_, count)| count).sum(),
                failed_without_answer: unanswered.map(|(_, count)| count).sum(),
                ..Self::default()
            };
            summary.set_times(times);
            summary
        });
        summary.collect()
    }

    /// Sets all figures that come from the distribution of its times.
    pub(crate) fn set_times(&mut self, times: &Times) {
        let mut at_least = LowerBounds::default();
        self.mean_ms = at_least.note("mean_ms", times.mean());
        for (field, name, quantile) in [
            (&mut self.p50_ms, "p50_ms", 0.5),
            (&mut self.p90_ms, "p90_ms", 0.9),
            (&mut self.p99_ms, "p99_ms", 0.99),
            (&mut self.max_ms, "max_ms", 1.0),
        ] {
            *field = at_least.note(name, times.quantile(quantile));
        }
        self.at_least = at_least;
        self.times = Some(times.clone());
    }
}
