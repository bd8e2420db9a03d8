//! Load: clients that run a scenario, counted exactly.
//!
//! A client keeps one connection (`line`), sends one request at a time, waits for the
//! answer, and reads all of its body. Its requests and their results go into a [`Tally`] of
//! its own, so that no counter is shared between clients; the tallies are merged at the end.
//! Response times go into one Talea histogram that all clients share. Clients run on threads of
//! their own (`threads`), beside whatever else this process does.
//!
//! The [`Model`] decides when a request is made: the clients themselves (closed), or a
//! schedule that knows nothing of the answers (open), which a `crew` of clients serves.

mod bell;
mod client;
pub mod command;
mod connection;
mod crew;
mod health;
mod line;
mod meters;
mod model;
mod patience;
mod request;
mod rounds;
pub mod samples;
mod summary;
mod tally;
mod target;
mod threads;

use std::sync::Arc;
use std::time::{Duration, Instant};

use talea::HistogramSnapshot;
use tokio::task::JoinHandle;

pub use self::connection::{Protocol, Trouble};
pub use self::health::Health;
pub use self::line::{Answer, Line};
pub use self::meters::{Meters, Window};
pub use self::model::{Arrivals, Model, Stage, Until, rate_of};
pub use self::request::NoRequest;
pub use self::samples::Sample;
pub use self::summary::{KindOfFailure, Summary, kinds_of_failure};
pub use self::tally::{Failure, Tally};
pub use self::target::Target;

use self::client::{Client, Ending};
use self::crew::Dispatch;
use self::request::Requests;
use self::threads::Threads;
use crate::scenario::Scenario;
use crate::stop::Stop;

/// The plan of a load.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The URL that the scenario's paths stand behind.
    pub target: Target,
    /// The requests that clients make.
    pub scenario: Arc<Scenario>,
    /// When.
    pub model: Model,
    /// How.
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
    pub fn requests(&self) -> Option<u64> {
        let iterations = self.model.iterations()?;
        Some(iterations.saturating_mul(self.scenario.steps.len() as u64))
    }
}

/// A plan that is under way on one thread.
struct Prepared {
    plan: Plan,
    requests: Requests,
    started: Instant,
}

/// The result of a load.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Requests, answers and failures of all clients.
    pub tally: Tally,
    /// From the start of the first client to the end of the last, connecting included.
    pub elapsed: Duration,
    /// Time from the start of a request to the end of its answer's body, of every answer that was
    /// read to its end, whatever its status. Connecting is not part of it. In an open model the
    /// scenario's first request counts from when it was to be made, so that waiting for a client
    /// or a connection is part of it.
    pub response_times: HistogramSnapshot,
    /// Whether a signal stopped the clients before they were done.
    pub interrupted: bool,
    /// How the generator itself fared.
    pub health: Health,
    /// A sample of each request, if the plan asks for them.
    pub samples: Vec<Sample>,
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
/// [`Tally::unanswered`].
///
/// # Errors
/// When a path of the scenario, behind that of the target, is none, or no threads can be started.
pub async fn run(plan: &Plan, window: &Window, stop: Stop) -> Result<Outcome, String> {
    let cpu = health::cpu_time();
    let threads = Arc::new(Threads::start(plan)?);
    let started = threads.started();
    let (clients, starved) = begin(plan, &threads, window.meters(), &stop).await;

    let mut tally = Tally::default();
    let mut ended = started;
    let mut samples = Vec::new();
    for mut client in clients {
        match (&mut client.0).await {
            Ok(ending) => {
                ended = ended.max(ending.at);
                tally.merge(ending.tally);
                samples.extend(ending.samples);
            }
            // A panic in a client is a fault of this program: it must not pass for a result.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    let elapsed = ended - started;
    let planned = plan.requests().is_none_or(|planned| tally.requests() >= planned);
    Ok(Outcome {
        interrupted: stop.is_requested() && (!planned || tally.unanswered > 0),
        health: Health {
            late: window.late(),
            starved,
            threads: threads.count(),
            cpu: health::cpu_time() - cpu,
            elapsed,
        },
        elapsed,
        tally,
        response_times: window.response_times(),
        samples,
    })
}

/// Begins the load. Of an open one all have arrived when it returns; also how many of them found
/// no client.
async fn begin(
    plan: &Plan,
    threads: &Arc<Threads>,
    meters: &Meters,
    stop: &Stop,
) -> (Vec<Running>, u64) {
    match &plan.model {
        Model::Closed { clients, until } => {
            let client = |n| {
                Running(threads.spawn(n, |plan| {
                    Client::new(plan, n, meters.clone()).run(*until, stop.clone())
                }))
            };
            ((0..*clients).map(client).collect(), 0)
        }
        Model::Open { arrivals, at_most } => {
            // While somebody waits for it.
            let waiting = Arc::new(());
            let dispatch = Dispatch {
                seed: plan.seed,
                arrivals: arrivals.clone(),
                at_most: *at_most,
                meters: meters.clone(),
                stop: stop.clone(),
                waiting: Arc::downgrade(&waiting),
                threads: threads.clone(),
            };
            match tokio::task::spawn_blocking(move || dispatch.run()).await {
                Ok(hired) => (hired.clients, hired.starved),
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            }
        }
    }
}

/// A client's task, which ends when nobody waits for it any more.
struct Running(JoinHandle<Ending>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}
