//! The cost of metering for an HTTP service under load (`metering/`), and the cost of making that
//! load (`generators/`).
//!
//! `talea-hello` (`hello/`) is the service. `turns.rs` lets subjects take turns, `measurement.rs`
//! makes one measurement, `accounting.rs` reads CPU times, `statistics.rs` computes intervals,
//! `verdict.rs` compares with budgets, `report.rs` has the parts that both outputs share.

mod accounting;
mod arguments;
mod cores;
mod generator;
mod generators;
mod load_report;
mod measurement;
mod metering;
mod report;
mod server;
mod statistics;
mod turns;
mod verdict;
mod wrk;

use anyhow::{Result, bail};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::{Arguments, Experiment};

// One thread: children inherit the cores of the thread that starts them.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    // When this ends, running children are dropped and so killed.
    let run = async {
        match &arguments.experiment {
            Experiment::Metering(arguments) => metering::run(arguments).await,
            Experiment::Generators(arguments) => generators::run(arguments).await,
        }
    };
    tokio::select! {
        done = run => done,
        _ = interrupt.recv() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
    }
}
