//! The command line.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::PossibleValuesParser;

use crate::http_layer;
use crate::measure;
use crate::task::Task;
use crate::work::Setting;
use crate::{groups, instructions, scrape};

/// Compare Talea with other libraries, in one run. Tables go to standard output.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    /// Run these groups only; the rows of others stay in the results file
    #[arg(long, value_name = "GROUP", value_delimiter = ',',
        value_parser = PossibleValuesParser::new(names()))]
    pub(crate) only: Vec<String>,
    /// Rounds; each subject is measured once in each. Publish from 7 on
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Inserts of the groups `insert-5m…`
    #[arg(long, default_value_t = groups::INSERTS,
        value_parser = clap::value_parser!(u64).range(1000..=200_000_000))]
    pub(crate) inserts: u64,
    /// Compare with an earlier build of this program instead of with other libraries
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) base: Option<PathBuf>,
    /// The file for the results, as JSON
    #[arg(long, value_name = "FILE", default_value = "bench/results/latest.json")]
    pub(crate) results: PathBuf,
    /// Measure once and print that, in a process that this program or a later build starts
    #[arg(long, hide = true)]
    pub(crate) measure: Option<Task>,
    /// Measure a case of `http-layer` once and print that
    #[arg(long, hide = true)]
    pub(crate) http_layer: Option<String>,
    /// Measure the latencies of one library's histogram and print that
    #[arg(long, hide = true)]
    pub(crate) latencies: Option<String>,
}

impl Arguments {
    pub(crate) fn asks_for(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    pub(crate) fn setting(&self) -> Setting {
        Setting { inserts: self.inserts, target: measure::TARGET }
    }
}

/// The names that `--only` accepts: the groups, and the measurements beside them.
fn names() -> Vec<&'static str> {
    let beside = [scrape::NAME, http_layer::NAME, instructions::NAME];
    groups::ALL.iter().map(|group| group.name).chain(beside).collect()
}
