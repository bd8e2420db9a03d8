//! The distributions of a load's times, which add up.

use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;
use crate::times::Times;

/// The distributions of a load's times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distributions {
    /// Response times.
    pub responses: Times,
    /// Those from when each request was sent, of an open model.
    pub sent: Times,
    /// Times to the head of a response.
    pub heads: Times,
    /// Times to connect.
    pub connects: Times,
    /// How late arrivals were taken, of an open model.
    pub late: Times,
    /// The response times of each step.
    pub steps: Vec<Times>,
}

impl Distributions {
    /// Those of a load that was run.
    pub fn of(outcome: &Outcome) -> Self {
        Self {
            responses: outcome.response_times.clone(),
            sent: outcome.sent_times.clone(),
            heads: outcome.head_times.clone(),
            connects: outcome.connect_times.clone(),
            late: Times::all_known(&outcome.health.late),
            steps: outcome.step_times.clone(),
        }
    }

    /// Adds another load's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.responses.add(&other.responses);
        self.sent.add(&other.sent);
        self.heads.add(&other.heads);
        self.connects.add(&other.connects);
        self.late.add(&other.late);
        for (step, other) in self.steps.iter_mut().zip(&other.steps) {
            step.add(other);
        }
    }
}
