//! What metering costs an HTTP service under load: the experiment of
//! servant-prometheus, with the same service in several variants that take turns. And what
//! making that load costs (`generators/`).
//!
//! `talea-hello` (`hello/`) is the service. `experiment.rs` says how the variants take
//! turns, `round.rs` what one measurement is, `accounting.rs` where CPU times come from,
//! `statistics.rs` how sure the differences are, `budget.rs` what they may be, `report.rs`
//! what comes out.

mod accounting;
mod arguments;
mod budget;
mod cores;
mod experiment;
mod generators;
mod report;
mod round;
mod server;
mod statistics;
mod variants;
mod wrk;

use anyhow::{Result, bail};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::{Arguments, Experiment, Metering};

// One thread: children inherit the cores of the thread that starts them.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    // Whichever way this ends, children that still run are dropped and so killed.
    let run = async {
        match &arguments.experiment {
            Experiment::Metering(arguments) => meter(arguments).await,
            Experiment::Generators(arguments) => generators::run(arguments).await,
        }
    };
    tokio::select! {
        done = run => done,
        _ = interrupt.recv() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
    }
}

async fn meter(arguments: &Metering) -> Result<()> {
    let mut courses = Vec::new();
    for setup in arguments.setups()? {
        let course = experiment::run(setup).await?;
        report::print(&course);
        courses.push(course);
    }
    let verdicts = courses.first().map(budget::judge).unwrap_or_default();
    report::print_verdicts(&verdicts);
    report::write(&arguments.results, &courses, &verdicts)?;
    eprintln!("written to {}", arguments.results.display());
    Ok(())
}
