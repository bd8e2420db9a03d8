//! The command line.

use crate::metering::Metering;
use clap::Parser;
use clap::builder::RangedU64ValueParser;
use std::net::SocketAddr;

/// A CRUD service over items, metered by Talea.
///
/// When it accepts requests it prints two lines: where the items are, and where
/// the metrics are. SIGTERM and SIGINT end it once what is in flight is answered,
/// after 10 seconds at most.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Arguments {
    /// Where to serve the items; port 0 picks a free port.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4000")]
    pub listen: SocketAddr,

    /// Where to serve the metrics; port 0 picks a free port.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4050")]
    pub metrics_listen: SocketAddr,

    /// The database, as sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE.
    /// Without it, or when it is empty, a temporary file that is removed at exit.
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,

    /// How many connections to PostgreSQL requests share; they are opened at the
    /// start. SQLite has one that writes, and some that read.
    #[arg(
        long,
        value_name = "N",
        env = "DATABASE_POOL",
        default_value_t = 10,
        value_parser = RangedU64ValueParser::<u32>::new().range(1..=10_000)
    )]
    pub pool: u32,

    /// Metering; `off` serves to measure its cost.
    #[arg(long, value_enum, env = "ITEMS_METRICS", default_value_t)]
    pub metrics: Metering,

    /// Serve a study: POST /study/reset on the metrics port empties the database
    /// and sets the peaks back, and the end of standard input ends the service, so
    /// that it never outlives who started it.
    #[arg(long)]
    pub study: bool,
}
