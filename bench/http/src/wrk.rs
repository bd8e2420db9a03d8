//! The load generator: wrk, and what it says.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use tokio::process::Command;
use tokio::time::timeout;

use crate::cores;

/// Connections that wrk keeps busy.
pub(crate) const CONNECTIONS: u64 = 30;
/// The time it may take beyond its own limit.
const GRACE: Duration = Duration::from_secs(20);

/// The figures that wrk reports.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) requests: u64,
    pub(crate) per_second: f64,
    /// In microseconds, of [`PERCENTILES`].
    pub(crate) latency: [f64; PERCENTILES.len()],
}

/// The output of `wrk --latency`.
pub(crate) const PERCENTILES: [u8; 4] = [50, 75, 90, 99];

/// Loads a server for so many seconds.
pub(crate) async fn load(
    server: SocketAddr,
    threads: usize,
    core: Option<usize>,
    seconds: u32,
) -> Result<Seen> {
    let mut command = command(server, threads, CONNECTIONS, seconds);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let wrk = cores::start_on(core, &mut command)
        .context("starting wrk; Debian's package of that name brings it: apt-get install wrk")?;
    let output = timeout(Duration::from_secs(seconds.into()) + GRACE, wrk.wait_with_output())
        .await
        .context("waiting for wrk")??;
    ensure!(output.status.success(), "wrk ended with {}", output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    read(&text).with_context(|| format!("wrk said:\n{text}"))
}

/// Has so many connections make load for so many seconds.
pub(crate) fn command(
    server: SocketAddr,
    threads: usize,
    connections: u64,
    seconds: u32,
) -> Command {
    let mut command = Command::new("wrk");
    command
        .args(["--threads", &threads.to_string()])
        .args(["--connections", &connections.to_string()])
        .args(["--duration", &format!("{seconds}s")])
        // As long as `talea load` waits: many connections are not open at once.
        .args(["--timeout", "30s"])
        .args(["--latency", &format!("http://{server}/hello/alice")]);
    command
}

/// Reads what wrk prints. A request that failed makes it an error: the figures would be of
/// something else.
pub(crate) fn read(text: &str) -> Result<Seen> {
    let mut requests = None;
    let mut per_second = None;
    let mut latency = [None; PERCENTILES.len()];
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            ["Socket", "errors:", ..] | ["Non-2xx", ..] => bail!("requests failed"),
            ["Requests/sec:", rate] => per_second = Some(rate.parse()?),
            [count, "requests", "in", ..] => requests = Some(count.parse()?),
            [percent, time] => {
                let percent = percent.strip_suffix('%').and_then(|percent| percent.parse().ok());
                let place = PERCENTILES.iter().position(|&one| Some(one) == percent);
                if let Some(place) = place {
                    latency[place] = Some(microseconds(time)?);
                }
            }
            _ => {}
        }
    }
    let missing = || anyhow!("a figure is missing");
    let mut found = [0.0; PERCENTILES.len()];
    for (found, latency) in found.iter_mut().zip(latency) {
        *found = latency.ok_or_else(missing)?;
    }
    let requests = requests.filter(|&requests| requests > 0).ok_or_else(missing)?;
    Ok(Seen { requests, per_second: per_second.ok_or_else(missing)?, latency: found })
}

/// A time as wrk writes it: `494.00us`, `1.11ms`, `2.01s`, `1.50m`.
fn microseconds(text: &str) -> Result<f64> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 60e6), ("h", 3600e6)];
    let read = |(unit, scale)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * scale);
    units.into_iter().find_map(read).with_context(|| format!("{text:?} is no time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
Running 20s test @ http://localhost:52649
  2 threads and 30 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   658.38us    1.05ms  36.02ms   96.64%
    Req/Sec    20.57k     3.57k   28.41k    76.37%
  Latency Distribution
     50%  494.00us
     75%  760.00us
     90%    1.11ms
     99%    2.95ms
  822628 requests in 20.10s, 134.73MB read
Requests/sec:  40923.58
Transfer/sec:      6.70MB
";

    #[test]
    fn what_wrk_prints_is_read() {
        let seen = read(SAID).unwrap();
        assert_eq!(
            seen,
            Seen {
                requests: 822_628,
                per_second: 40923.58,
                latency: [494.0, 760.0, 1110.0, 2950.0]
            }
        );
    }

    #[test]
    fn failed_requests_are_an_error() {
        for line in [
            "  Socket errors: connect 0, read 56, write 2, timeout 0\n",
            "  Non-2xx or 3xx responses: 3396\n",
        ] {
            let said = SAID.replace("Requests/sec", &format!("{line}Requests/sec"));
            assert!(read(&said).is_err(), "{line}");
        }
    }

    #[test]
    fn a_figure_that_is_missing_is_an_error() {
        for gone in ["822628 requests", "Requests/sec", "90%"] {
            let said: Vec<_> = SAID.lines().filter(|line| !line.contains(gone)).collect();
            assert!(read(&said.join("\n")).is_err(), "{gone}");
        }
        assert!(read(&SAID.replace("822628", "0")).is_err());
    }

    #[test]
    fn times_have_units() {
        for (text, expected) in
            [("494.00us", 494.0), ("1.25ms", 1250.0), ("2.00s", 2e6), ("1.50m", 90e6)]
        {
            assert_eq!(microseconds(text).unwrap(), expected);
        }
        assert!(microseconds("12.00").is_err());
    }
}
