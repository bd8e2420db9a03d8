//! The cost of making load: `talea load` beside wrk and oha, on the service that studies of metering load too.
//!
//! `talea-hello` (`hello/`) is the service. `turns.rs` lets generators take turns, `measurement.rs`
//! makes one measurement, `accounting.rs` reads CPU times, `comparison.rs`, `memory.rs` and `lateness.rs` are
//! the experiments.

mod accounting;
mod arguments;
mod comparison;
mod cores;
mod generator;
mod lateness;
mod load_report;
mod measurement;
mod memory;
mod oha;
mod report;
mod server;
mod turns;
mod wrk;

use anyhow::{Result, bail};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::Arguments;
use crate::comparison::Comparison;
use crate::generator::Load;

// One thread: children inherit the cores of the thread that starts them.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    // When this ends, running children are dropped and so killed.
    tokio::select! {
        ran = run(&arguments) => ran,
        _ = interrupt.recv() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
    }
}

async fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { rounds, seconds, .. } = *arguments;
    let load = Load { connections: 0, seconds, cores: cores::pair()? };
    let generators = comparison::generators(oha::installed().await);
    let mut all = Vec::new();
    for connections in [1, 50, 500] {
        let comparison =
            Comparison::measure(Load { connections, ..load }, rounds, &generators).await?;
        report::print(&comparison);
        all.push(comparison);
    }
    let memory = match arguments.open {
        0 => Vec::new(),
        many => memory::measure(many, load).await?,
    };
    report::print_memory(&memory);
    let lateness = lateness::measure(seconds, load.cores).await?;
    report::print_lateness(&lateness);
    report::write(&arguments.results, &all, &memory, &lateness)
}
