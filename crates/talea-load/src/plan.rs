//! The plan of a load.

use std::sync::Arc;
use std::time::Duration;

use crate::connection::Protocol;
use crate::model::Model;
use crate::scenario::{Scenario, Shard};
use crate::target::Target;

/// A load that is to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The URL that the scenario's paths stand behind.
    pub target: Target,
    /// The requests of a client.
    pub scenario: Arc<Scenario>,
    /// When requests are made.
    pub model: Model,
    /// The version of HTTP.
    pub protocol: Protocol,
    /// How long a client waits for a connection or an answer.
    pub timeout: Duration,
    /// The seed of random values and random arrivals: equal seeds give equal values.
    pub seed: u64,
    /// Whether a sample of each request is kept.
    pub samples: bool,
    /// How many threads clients run on; by the number of clients and cores if this is none.
    pub threads: Option<u64>,
    /// The part of a load that this is: it takes its rows of feeds. The model is that of the part.
    pub shard: Shard,
}

impl Plan {
    /// How many requests the plan makes where every one of them can be sent, if that is known
    /// beforehand.
    pub fn requests(&self) -> Option<u64> {
        let iterations = self.model.iterations()?;
        Some(iterations.saturating_mul(self.scenario.requests_of_iteration()?))
    }
}
