//! Runs a plan: starts its clients, waits for them, puts their results together.

use std::sync::Arc;
use std::time::Instant;

use crate::client::{Client, ClientTask};
use crate::dispatch::Dispatch;
use crate::health::{Health, cpu_time};
use crate::meters::{Meters, Window};
use crate::model::Model;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::stop::Stop;
use crate::tally::Tally;
use crate::threads::Threads;

/// Runs the plan's clients until they are done or a stop is requested. The window is to begin just
/// before, and no other load may run meanwhile.
///
/// A stop leaves the requests that are under way unanswered; the tally counts them.
///
/// Fails when a path of the scenario, behind that of the target, is none, or no threads can be
/// started.
pub async fn run(plan: &Plan, window: &Window, stop: Stop) -> Result<Outcome, String> {
    let threads = Arc::new(Threads::start(plan)?);
    let started = threads.started();
    let (begun, cpu) = (Instant::now(), cpu_time());
    let (clients, starved) = begin(plan, &threads, &window.meters, &stop).await;

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
    // Of the same time, which is not that of the clients.
    let (spent, running) = (cpu_time() - cpu, begun.elapsed());
    let elapsed = ended - started;
    let planned = plan.requests().is_none_or(|planned| tally.requests() >= planned);
    Ok(Outcome {
        interrupted: stop.is_requested() && (!planned || tally.unanswered > 0),
        health: Health {
            late: window.late(),
            starved,
            threads: threads.count(),
            cpu: spent,
            elapsed: running,
        },
        elapsed,
        tally,
        response_times: window.response_times(),
        step_times: window.step_times(),
        head_times: window.head_times(),
        connect_times: window.connect_times(),
        bytes_received: window.bytes_received(),
        protocol: plan.protocol,
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
) -> (Vec<ClientTask>, u64) {
    match &plan.model {
        Model::Closed { clients, until } => {
            let client = |n| {
                ClientTask(threads.spawn(n, |plan| {
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
                Ok(load) => (load.clients, load.starved),
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            }
        }
    }
}
