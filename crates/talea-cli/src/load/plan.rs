//! The plan of a load.

use std::sync::Arc;
use std::time::Duration;

use super::connection::Protocol;
use super::model::Model;
use super::target::Target;
use crate::scenario::Scenario;

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The URL that the scenario's paths stand behind.
    pub target: Target,
    pub scenario: Arc<Scenario>,
    pub model: Model,
    pub protocol: Protocol,
    /// How long a client waits for a connection or an answer.
    pub timeout: Duration,
    /// The seed of random values and random arrivals: equal seeds give equal values.
    pub seed: u64,
    /// Whether a sample of each request is kept.
    pub samples: bool,
}

impl Plan {
    /// How many requests the plan makes where every one of them can be sent, if that is known
    /// beforehand.
    pub(crate) fn requests(&self) -> Option<u64> {
        let iterations = self.model.iterations()?;
        Some(iterations.saturating_mul(self.scenario.steps.len() as u64))
    }
}
