//! The command line.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use crate::cores;
use crate::experiment::Setup;

/// HTTP services under load. Tables go to standard output.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) experiment: Experiment,
}

/// The experiment.
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
    /// Rounds; each generator makes load once in each round
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Seconds that each makes load in a round
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(crate) seconds: u32,
    /// Connections, one number after the other
    #[arg(long, value_delimiter = ',', default_value = "50,500", value_parser = clap::value_parser!(u64).range(1..=20_000))]
    pub(crate) connections: Vec<u64>,
    /// Connections with which memory is measured; 0 leaves that out
    #[arg(long, default_value_t = 10_000, value_parser = open)]
    pub(crate) open: u64,
    /// Where the results are written, as JSON
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
    rounds: u32,
    /// Rounds as servant-prometheus ran it, unpinned; 0 leaves them out
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(..=1000))]
    reference_rounds: u32,
    /// Seconds that each variant is loaded in a round
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Where the results are written, as JSON
    #[arg(long, value_name = "FILE", default_value = "bench/results/http.json")]
    pub(crate) results: PathBuf,
}

impl Metering {
    /// The setups that are asked for; the budgets are about the first.
    pub(crate) fn setups(&self) -> Result<Vec<Setup>> {
        let pinned = Setup {
            name: "pinned",
            threads: 1,
            cores: Some(cores::pair()?),
            rounds: self.rounds,
            seconds: self.seconds,
        };
        let reference = Setup {
            name: "as the reference ran it",
            threads: 2,
            cores: None,
            rounds: self.reference_rounds,
            seconds: self.seconds,
        };
        Ok([pinned, reference].into_iter().filter(|setup| setup.rounds > 0).collect())
    }
}
