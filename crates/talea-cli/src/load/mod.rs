//! Load: N concurrent clients, each M times the same sequence of requests, counted exactly.
//!
//! A client keeps one connection (`line`), sends one request at a time, waits for the
//! answer, and reads all of its body. What it sent and what became of it goes into a [`Tally`] of
//! its own, so that no counter is shared between clients; the tallies are merged at the end. Response
//! times go into one Talea histogram that all clients share.

mod client;
pub mod command;
mod connection;
mod crud;
mod line;
mod meters;
mod patience;
mod summary;
mod tally;
mod target;

use std::sync::Arc;
use std::time::{Duration, Instant};

use talea::HistogramSnapshot;
use tokio::task::JoinSet;

pub use self::connection::Trouble;
pub use self::crud::Step;
pub use self::line::{Answer, Line};
pub use self::meters::{Meters, Window};
pub use self::summary::{KindOfFailure, Summary, kinds_of_failure};
pub use self::tally::{Failure, Tally};
pub use self::target::Target;

use self::client::Client;
use crate::stop::Stop;

/// What load to make.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The collection that the clients work on.
    pub target: Target,
    /// How many clients run at the same time.
    pub clients: u64,
    /// How many times each client runs the sequence.
    pub iterations: u64,
    /// How long a client waits for a connection or an answer.
    pub timeout: Duration,
}

impl Plan {
    /// How many requests the plan makes where every one of them can be sent.
    pub fn requests(&self) -> u64 {
        requests(self.clients, self.iterations)
    }
}

/// How many requests clients make that run the sequence so many times each: N · M · 5.
pub fn requests(clients: u64, iterations: u64) -> u64 {
    clients.saturating_mul(iterations).saturating_mul(crud::SEQUENCE.len() as u64)
}

/// What became of a load.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Requests, answers and failures of all clients.
    pub tally: Tally,
    /// From the start of the first client to the end of the last, connecting included.
    pub elapsed: Duration,
    /// Time from the start of a request to the end of its answer's body, of every answer that was
    /// read to its end, whatever its status. Connecting is not part of it.
    pub response_times: HistogramSnapshot,
    /// Whether a signal stopped the clients before they were done.
    pub interrupted: bool,
}

impl Outcome {
    /// Requests sent a second; none when nothing was sent.
    pub fn mean_rate(&self) -> Option<f64> {
        let seconds = self.elapsed.as_secs_f64();
        (self.tally.sent > 0 && seconds > 0.0).then(|| self.tally.sent as f64 / seconds)
    }

    /// A quantile of the response times in milliseconds; none when nothing was answered.
    pub fn quantile_ms(&self, quantile: f64) -> Option<f64> {
        self.response_times.quantile(quantile).map(|seconds| seconds * 1e3)
    }
}

/// Runs the plan's clients until they are done or a stop is requested. The window is to begin just
/// before, and no other load may run meanwhile.
///
/// A stop leaves the requests that are under way unanswered; they are in
/// [`Tally::unanswered`]. Dropping the future stops the clients too.
pub async fn run(plan: &Plan, window: &Window, stop: Stop) -> Outcome {
    let plan = Arc::new(plan.clone());
    let started = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..plan.clients {
        let client = Client::new(plan.clone(), window.meters().clone());
        clients.spawn(client.run(stop.clone()));
    }

    let mut tally = Tally::default();
    let mut ended = started;
    while let Some(client) = clients.join_next().await {
        match client {
            Ok(ending) => {
                ended = ended.max(ending.at);
                tally.merge(ending.tally);
            }
            // A panic in a client is a fault of this program: it must not pass for a result.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    Outcome {
        interrupted: stop.is_requested()
            && (tally.requests() < plan.requests() || tally.unanswered > 0),
        tally,
        elapsed: ended - started,
        response_times: window.response_times(),
    }
}
