//! The command line.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::PossibleValuesParser;

use crate::groups;
use crate::http_layer::{self, Case};
use crate::instructions;
use crate::latencies::Library;
use crate::process::Task;
use crate::scrape;
use crate::store_table::{self, Beside};
use crate::work::Setting;

/// Talea beside its peers, in one run. The table goes to standard output.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    /// Run these groups only; what the results file says of others is kept
    #[arg(long, value_name = "GROUP", value_delimiter = ',',
        value_parser = PossibleValuesParser::new(names()))]
    pub(crate) only: Vec<String>,
    /// Rounds; each subject is measured once in each. Publish from 7 on
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Series that `insert-5m` makes
    #[arg(long, default_value_t = groups::INSERTS,
        value_parser = clap::value_parser!(u64).range(1000..=200_000_000))]
    pub(crate) inserts: u64,
    /// Compare with an earlier build of this program instead of with the peers
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) base: Option<PathBuf>,
    /// Where the results are written, as JSON
    #[arg(long, value_name = "FILE", default_value = "bench/results/latest.json")]
    pub(crate) results: PathBuf,
    /// Measure once and print that: how this program runs itself and its base
    #[arg(long, hide = true)]
    pub(crate) measure: Option<Task>,
    /// Measure a line of `store-table` once and print that
    #[arg(long, hide = true)]
    pub(crate) store_table: Option<Beside>,
    /// Measure a case of `http-layer` once and print that
    #[arg(long, hide = true)]
    pub(crate) http_layer: Option<Case>,
    /// Tell of the latencies of one library's histogram and print that
    #[arg(long, hide = true)]
    pub(crate) latencies: Option<Library>,
}

impl Arguments {
    /// Whether a group of this name is to be run.
    pub(crate) fn asks_for(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    pub(crate) fn setting(&self) -> Setting {
        Setting { inserts: self.inserts }
    }
}

/// The names that `--only` accepts: the groups, and the measurements beside them.
fn names() -> Vec<&'static str> {
    [groups::names(), vec![store_table::NAME, scrape::NAME, http_layer::NAME, instructions::NAME]]
        .concat()
}
