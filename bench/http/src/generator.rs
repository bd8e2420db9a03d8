//! The load generators: their command lines and their reports.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use crate::cores::{self, Pair};
use crate::load_report::LoadReport;
use crate::{accounting, oha, wrk};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generator {
    Wrk,
    /// The program at a path.
    Oha(&'static str),
    Talea,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) connections: u64,
    pub(crate) seconds: u32,
    pub(crate) cores: Pair,
}

/// The time that it may take beyond its own limit: many connections are slow to open and close.
const GRACE: Duration = Duration::from_secs(60);
/// How often its highest memory so far is read.
const POLL: Duration = Duration::from_millis(20);

const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/hello.toml");

impl Generator {
    /// Makes load. A request that failed makes it an error.
    pub(crate) async fn run(self, server: SocketAddr, load: Load) -> Result<LoadReport> {
        let mut command = self.command(server, load)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = cores::start_on(load.cores.generator, command.kill_on_drop(true))
            .with_context(|| {
                format!("starting {self:?}; wrk is in Debian's package wrk: apt-get install wrk")
            })?;
        let id = child.id().context("it has ended")?;
        let mut memory = 0;
        let polling = async {
            loop {
                // A process that has just ended has none.
                memory = accounting::most_memory(id).unwrap_or(0).max(memory);
                sleep(POLL).await;
            }
        };
        let ended =
            timeout(Duration::from_secs(load.seconds.into()) + GRACE, child.wait_with_output());
        let output = tokio::select! {
            output = ended => output.with_context(|| format!("waiting for {self:?}"))??,
            () = polling => unreachable!("polling does not end"),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let printed = || format!("{self:?} ended with {} and printed:\n{text}", output.status);
        ensure!(output.status.success(), printed());
        let report = match self {
            Self::Wrk => wrk::read(&text),
            Self::Oha(_) => oha::read(&text),
            Self::Talea => read_summary(&text, load.connections),
        };
        Ok(LoadReport { memory, ..report.with_context(printed)? })
    }

    fn command(self, server: SocketAddr, load: Load) -> Result<Command> {
        let Load { connections, seconds, .. } = load;
        match self {
            Self::Wrk => return Ok(wrk::command(server, connections, seconds)),
            Self::Oha(program) => return Ok(oha::command(program, server, connections, seconds)),
            Self::Talea => {}
        }
        let program = std::env::current_exe()?.with_file_name("talea");
        let mut command = Command::new(program);
        command
            .args(["load", &format!("http://{server}"), "--scenario", SCENARIO, "--json"])
            .args(["--clients", &connections.to_string(), "--for", &format!("{seconds}s")]);
        Ok(command)
    }

    /// The most requests that a server may have received beyond the reported ones: wrk does not
    /// report requests that are under way when it ends.
    pub(crate) fn unreported(self, connections: u64) -> u64 {
        match self {
            Self::Wrk => connections,
            Self::Oha(_) | Self::Talea => 0,
        }
    }
}

fn read_summary(text: &str, connections: u64) -> Result<LoadReport> {
    let summary: Value = serde_json::from_str(text)?;
    let whole = |name: &str| summary[name].as_u64().with_context(|| format!("{name} is missing"));
    let requests = whole("answers")?;
    ensure!(requests > 0 && whole("requests_sent")? == requests, "not all were answered");
    ensure!(whole("connections")? == connections, "not as many connections as asked for");
    let per_second = summary["mean_rate"].as_f64().context("mean_rate is missing")?;
    Ok(LoadReport { requests, per_second, memory: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read_if_all_requests_were_answered() {
        let text = r#"{"answers":9,"requests_sent":9,"connections":3,"mean_rate":4.5}"#;
        let report = read_summary(text, 3).unwrap();
        assert_eq!((report.requests, report.per_second), (9, 4.5));
        assert!(read_summary(text, 4).is_err());
        for (found, other) in [("\"answers\":9", "\"answers\":8"), ("mean_rate", "rate")] {
            assert!(read_summary(&text.replace(found, other), 3).is_err(), "{other}");
        }
    }
}
