//! The page that a study reads: what every variant has, whatever its own metrics are.

use std::fs;
use std::net::SocketAddr;

use anyhow::Result;
use talea::{Opts, Registry};
use talea_http::MetricsServer;

use crate::service::Counted;

/// Serves user CPU time, since system time has two modes from one process to the next, with each variant; and
/// the requests that the variant has counted, if it counts them.
pub(crate) fn serve(address: SocketAddr, counted: &Counted) -> Result<MetricsServer> {
    let registry = Registry::new()?;
    let help = "User CPU time of the process in seconds.";
    let opts = Opts::new("hello_user_cpu_seconds_total", help);
    registry.observable_counter(opts, || user_seconds().unwrap_or(f64::NAN))?;
    if counted().is_some() {
        let opts = Opts::new("hello_requests_total", "Requests that the variant has counted.");
        let counted = counted.clone();
        registry
            .observable_counter(opts, move || counted().map_or(f64::NAN, |count| count as f64))?;
    }
    Ok(MetricsServer::bind(address, &registry)?)
}

/// To a tick of the clock, 10 ms. The process's name, the second figure, may contain spaces.
fn user_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let ticks: f64 = stat.rsplit(')').next()?.split_whitespace().nth(11)?.parse().ok()?;
    Some(ticks / rustix::param::clock_ticks_per_second() as f64)
}
