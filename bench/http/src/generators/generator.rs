//! The two generators: how they are started, and what they say.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use crate::{accounting, cores, wrk};

/// One that makes load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generator {
    Wrk,
    Talea,
}

/// The load to make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) server: SocketAddr,
    pub(super) connections: u64,
    pub(super) seconds: u32,
}

/// The responses that a generator counted, and the CPU time that it took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    /// Requests that were answered.
    pub(super) requests: u64,
    pub(super) per_second: f64,
    /// Bytes of memory that it had at most.
    pub(super) memory: u64,
}

/// The time it may take beyond its own limit: many connections are slow to open and close.
const GRACE: Duration = Duration::from_secs(60);
/// How often its memory is looked at. What is looked at is the most that it has had by then.
const LOOK: Duration = Duration::from_millis(20);

const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/generators/hello.toml");

impl Generator {
    /// Makes load. A request that failed makes it an error.
    pub(super) async fn run(self, load: Load, core: usize) -> Result<Made> {
        let mut command = self.command(load)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = cores::start_on(Some(core), command.kill_on_drop(true))
            .with_context(|| format!("starting {:?}", command.as_std().get_program()))?;
        let id = child.id().context("it has ended")?;
        let mut memory = 0;
        let looking = async {
            loop {
                // It has none any more where it has just ended.
                memory = accounting::most_memory(id).unwrap_or(0).max(memory);
                sleep(LOOK).await;
            }
        };
        let ended =
            timeout(Duration::from_secs(load.seconds.into()) + GRACE, child.wait_with_output());
        let output = tokio::select! {
            output = ended => output.with_context(|| format!("waiting for {self:?}"))??,
            () = looking => unreachable!("it looks for ever"),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let said = || format!("{self:?} ended with {} and said:\n{text}", output.status);
        ensure!(output.status.success(), said());
        let (requests, per_second) = self.read(&text, load).with_context(said)?;
        Ok(Made { requests, per_second, memory })
    }

    fn command(self, load: Load) -> Result<Command> {
        let Load { server, connections, seconds } = load;
        if self == Self::Wrk {
            return Ok(wrk::command(server, 1, connections, seconds));
        }
        let program = std::env::current_exe()?.with_file_name("talea");
        let mut command = Command::new(program);
        command
            .args(["load", &format!("http://{server}"), "--scenario", SCENARIO, "--json"])
            .args(["--clients", &connections.to_string(), "--for", &format!("{seconds}s")]);
        Ok(command)
    }

    fn read(self, text: &str, load: Load) -> Result<(u64, f64)> {
        match self {
            Self::Wrk => wrk::read(text).map(|seen| (seen.requests, seen.per_second)),
            Self::Talea => read_summary(text, load.connections),
        }
    }

    /// The most requests that a server may have received beyond the reported ones: wrk leaves those out
    /// that are under way when it ends.
    pub(super) fn unreported(self, connections: u64) -> u64 {
        match self {
            Self::Wrk => connections,
            Self::Talea => 0,
        }
    }
}

/// Reads the summary of `talea load`: requests, and how many a second.
fn read_summary(text: &str, connections: u64) -> Result<(u64, f64)> {
    let summary: Value = serde_json::from_str(text)?;
    let whole = |name: &str| summary[name].as_u64().with_context(|| format!("{name} is missing"));
    let answers = whole("answers")?;
    ensure!(answers > 0 && whole("requests_sent")? == answers, "not all were answered");
    ensure!(whole("connections")? == connections, "not as many connections as asked for");
    let rate = summary["mean_rate"].as_f64().context("mean_rate is missing")?;
    Ok((answers, rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read_where_all_were_answered() {
        let text = r#"{"answers":9,"requests_sent":9,"connections":3,"mean_rate":4.5}"#;
        assert_eq!(read_summary(text, 3).unwrap(), (9, 4.5));
        assert!(read_summary(text, 4).is_err());
        for (found, other) in [("\"answers\":9", "\"answers\":8"), ("mean_rate", "rate")] {
            assert!(read_summary(&text.replace(found, other), 3).is_err(), "{other}");
        }
    }
}
