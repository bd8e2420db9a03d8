//! Runs a plan: starts its clients, waits for them, puts their results together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::client::{Client, ClientTask};
use crate::dispatch::{Dispatch, OpenLoad};
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
    let OpenLoad { clients, waiting, starved, timing } =
        begin(plan, &threads, &window.meters, &stop).await;

    let mut tally = Tally::default();
    let (mut ended, mut last_begun) = (started, started);
    let (mut samples, mut was_stopped) = (Vec::new(), false);
    for mut client in clients {
        match (&mut client.0).await {
            Ok(ending) => {
                ended = ended.max(ending.at);
                was_stopped |= ending.was_stopped;
                last_begun = ending.last_begun.map_or(last_begun, |at| last_begun.max(at));
                tally.merge(ending.tally);
                samples.extend(ending.samples);
            }
            // A panic in a client is a fault of this program: it must not pass for a result.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    // A stop leaves them there: they have waited in vain, as a request that is cut off.
    while let Ok(intended) = waiting.try_recv() {
        tally.not_begun += 1;
        window.meters.waited_in_vain(0, intended.elapsed());
    }
    // Of the same time, which is not that of the clients.
    let (spent, running) = (cpu_time() - cpu, begun.elapsed());
    let elapsed = ended - started;
    let schedule = match &plan.model {
        Model::Open { arrivals, .. } => Some(arrivals.time()),
        Model::Closed { .. } => None,
    };
    // All clients of an open model may wait for arrivals when its schedule is cut off.
    let planned = plan.requests().is_none_or(|planned| tally.requests() >= planned);
    let is_cut = was_stopped || tally.cut_off + tally.not_begun > 0;
    let interrupted = stop.is_requested() && (!planned || is_cut);
    // A server that speaks TLS answers a plain request with an alert, or with the status 400.
    let is_refused = tally.failed() > 0 && tally.answers.keys().all(|status| *status == 400);
    Ok(Outcome {
        expects_tls: is_refused && !stop.is_requested() && plan.target.expects_tls().await,
        interrupted,
        // The last arrival of an even schedule comes a gap before its end.
        sending: schedule
            .filter(|_| !interrupted)
            .map_or(elapsed, |schedule| schedule.max(last_begun - started)),
        health: Health {
            late: window.late(),
            starved,
            threads: threads.count(),
            cpu: spent,
            timing,
            elapsed: running,
        },
        elapsed,
        tally,
        response_times: window.response_times(),
        step_times: window.step_times(),
        sent_times: window.sent_times(),
        head_times: window.head_times(),
        connect_times: window.connect_times(),
        bytes_received: window.bytes_received(),
        protocol: plan.protocol,
        samples,
    })
}

/// Begins the load. Of an open one all have arrived when it returns.
async fn begin(plan: &Plan, threads: &Arc<Threads>, meters: &Meters, stop: &Stop) -> OpenLoad {
    match &plan.model {
        Model::Closed { clients, until } => {
            let (_, waiting) = async_channel::unbounded();
            OpenLoad {
                clients: (0..*clients)
                    .map(|n| {
                        ClientTask(threads.spawn(n, |plan| {
                            let until = until.of_client(n, *clients);
                            Client::new(plan, n, meters.clone()).run(until, stop.clone())
                        }))
                    })
                    .collect(),
                waiting,
                starved: 0,
                timing: Duration::ZERO,
            }
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
                Ok(load) => load,
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            }
        }
    }
}
