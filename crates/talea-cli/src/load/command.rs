//! `talea load`: checks, runs, prints.

use std::io::ErrorKind;

use anyhow::{Result, anyhow};

use super::{Meters, Plan, Summary, Target};
use crate::arguments::LoadArguments;
use crate::descriptors;
use crate::figures::counted;
use crate::progress::Progress;
use crate::stop::{Ending, Stop};

/// Runs the load and prints its summary to standard output.
///
/// # Errors
/// When it cannot begin: too few descriptors, or nothing at the URL.
pub async fn run(arguments: &LoadArguments, mut stop: Stop) -> Result<Ending> {
    descriptors::ensure(arguments.clients)?;
    let reached = tokio::select! {
        reached = arguments.url.clone().reached(arguments.timeout) => reached,
        () = stop.requested() => return Ok(Ending::Interrupted),
    };
    let plan = Plan {
        target: reached.map_err(|error| unreachable(&arguments.url, &error))?,
        clients: arguments.clients,
        iterations: arguments.iterations,
        timeout: arguments.timeout,
    };
    let window = Meters::new()?.window();
    let label = counted(plan.clients, "client");
    let progress = Progress::begin(&label, plan.requests(), window.clone());
    let outcome = super::run(&plan, &window, stop).await;
    progress.end();

    let summary = Summary::new(&plan, &outcome);
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&summary)?);
    } else {
        println!("{summary}");
    }
    Ok(match (outcome.interrupted, summary.failed) {
        (true, _) => Ending::Interrupted,
        (false, 0) => Ending::Clean,
        (false, _) => Ending::Failures,
    })
}

fn unreachable(url: &Target, error: &std::io::Error) -> anyhow::Error {
    let what_to_do = match error.kind() {
        ErrorKind::ConnectionRefused => {
            "Nothing listens there: start the service, or correct the URL."
        }
        ErrorKind::TimedOut => "No connection in time: is the host up, or a firewall in between?",
        _ => "Check the URL's host and port.",
    };
    anyhow!("{url} cannot be reached: {error}.\n{what_to_do}")
}
