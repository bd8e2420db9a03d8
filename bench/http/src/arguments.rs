//! The command line.

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

use crate::cores;
use crate::experiment::Setup;

/// What metering costs an HTTP service under load. Tables go to standard output.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
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

impl Arguments {
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
