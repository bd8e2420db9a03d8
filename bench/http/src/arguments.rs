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
    /// Rounds of the paired experiment; each variant is loaded once in each
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Seconds that each variant is loaded in a round
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Seconds that each variant is loaded once, unpinned, as servant-prometheus did it;
    /// 0 leaves that out
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(..=600))]
    reference_seconds: u32,
    /// Where the results are written, as JSON
    #[arg(long, value_name = "FILE", default_value = "bench/results/http.json")]
    pub(crate) results: PathBuf,
}

impl Arguments {
    /// The setups that are asked for; the budgets are about the first.
    pub(crate) fn setups(&self) -> Result<Vec<Setup>> {
        let mut setups = vec![Setup {
            name: "pinned",
            threads: 1,
            cores: Some(cores::pair()?),
            rounds: self.rounds,
            seconds: self.seconds,
        }];
        if self.reference_seconds > 0 {
            setups.push(Setup {
                name: "as the reference ran it",
                threads: 2,
                cores: None,
                rounds: 1,
                seconds: self.reference_seconds,
            });
        }
        Ok(setups)
    }
}
