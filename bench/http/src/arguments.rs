//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Measure HTTP services under load. Tables go to standard output.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) experiment: Experiment,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Experiment {
    /// Measure the cost of metering for a service
    Metering(Metering),
    /// Measure the cost of making load: `talea load` beside wrk
    Generators(Generators),
}

/// Arguments of the experiment with generators.
#[derive(Debug, Args)]
pub(crate) struct Generators {
    /// Rounds; each generator makes load once in each
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Seconds that each makes load in a round
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(crate) seconds: u32,
    /// Connections with which memory is measured; 0 leaves that out
    #[arg(long, default_value_t = 10_000, value_parser = open)]
    pub(crate) open: u64,
    /// The file for the results, as JSON
    #[arg(long, value_name = "FILE", default_value = "bench/results/load.json")]
    pub(crate) results: PathBuf,
}

fn open(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(found @ (0 | 1000..=20_000)) => Ok(found),
        _ => Err("expected 0, or 1000 to 20000".to_owned()),
    }
}

/// Arguments of the experiment with metering.
#[derive(Debug, Args)]
pub(crate) struct Metering {
    /// Rounds with the server and wrk pinned to a core each; each variant is loaded once in
    /// each round
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Rounds as servant-prometheus ran it, unpinned; 0 leaves them out
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(..=1000))]
    pub(crate) reference_rounds: u32,
    /// Seconds that each variant is loaded in a round
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(crate) seconds: u32,
    /// The file for the results, as JSON
    #[arg(long, value_name = "FILE", default_value = "bench/results/http.json")]
    pub(crate) results: PathBuf,
}
