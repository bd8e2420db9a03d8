//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// Compare the cost of making load: `talea load` beside wrk and oha. Tables go to standard output.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
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
