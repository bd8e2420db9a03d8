//! How late `talea load` begins what is due, at some rates: its schedule alone, since the service has time left.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use crate::cores::{self, Pair};
use crate::server::Server;

/// Arrivals a second.
const RATES: [u32; 3] = [100, 1_000, 10_000];

/// At most this late, of 99 % of the arrivals, in microseconds.
pub(crate) const BUDGET: f64 = 100.0;

/// The lateness at a rate, in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Lateness {
    pub(crate) rate: u32,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

pub(crate) async fn measure(seconds: u32, cores: Pair) -> Result<Vec<Lateness>> {
    let server = Server::start(cores.server).await?;
    let mut all = Vec::new();
    for rate in RATES {
        eprintln!("lateness at {rate} a second");
        all.push(at(server.address, rate, seconds, cores).await?);
    }
    Ok(all)
}

async fn at(server: SocketAddr, rate: u32, seconds: u32, cores: Pair) -> Result<Lateness> {
    let mut command = Command::new(std::env::current_exe()?.with_file_name("talea"));
    command
        .args(["load", &format!("http://{server}/hello/alice"), "--json", "--quiet"])
        .args(["--rate", &rate.to_string(), "--for", &format!("{seconds}s")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let child = cores::start_on(cores.generator, &mut command)?;
    let longest = Duration::from_secs(u64::from(seconds) + 60);
    let output = timeout(longest, child.wait_with_output()).await??;
    let printed = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "talea load ended with {}: {printed}", output.status);
    let summary: Value = serde_json::from_str(&printed)?;
    let us =
        |name: &str| summary[name].as_f64().map(|ms| ms * 1e3).with_context(|| name.to_owned());
    Ok(Lateness { rate, p50: us("late_p50_ms")?, p99: us("late_p99_ms")? })
}
