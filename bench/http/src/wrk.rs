//! wrk: its command line and its report.

use std::net::SocketAddr;

use anyhow::{Result, bail};
use tokio::process::Command;

use crate::load_report::LoadReport;

pub(crate) fn command(server: SocketAddr, connections: u64, seconds: u32) -> Command {
    let mut command = Command::new("wrk");
    command
        .args(["--threads", "1"])
        .args(["--connections", &connections.to_string()])
        .args(["--duration", &format!("{seconds}s")])
        // The timeout of `talea load`: opening many connections takes time.
        .args(["--timeout", "30s"])
        .args(["--latency", &format!("http://{server}/hello/alice")]);
    command
}

/// Reads the report. A request that failed makes it an error: its figures are not comparable.
pub(crate) fn read(text: &str) -> Result<LoadReport> {
    let mut requests = None;
    let mut per_second = None;
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            ["Socket", "errors:", ..] | ["Non-2xx", ..] => bail!("requests failed"),
            ["Requests/sec:", rate] => per_second = Some(rate.parse()?),
            [count, "requests", "in", ..] => requests = Some(count.parse()?),
            _ => {}
        }
    }
    match (requests, per_second) {
        (Some(requests @ 1..), Some(per_second)) => {
            Ok(LoadReport { requests, per_second, memory: 0 })
        }
        _ => bail!("a figure is missing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "\
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
    fn a_report_is_read() {
        let expected = LoadReport { requests: 822_628, per_second: 40923.58, memory: 0 };
        assert_eq!(read(PRINTED).unwrap(), expected);
    }

    #[test]
    fn failed_requests_are_an_error() {
        for line in [
            "  Socket errors: connect 0, read 56, write 2, timeout 0\n",
            "  Non-2xx or 3xx responses: 3396\n",
        ] {
            let printed = PRINTED.replace("Requests/sec", &format!("{line}Requests/sec"));
            assert!(read(&printed).is_err(), "{line}");
        }
    }

    #[test]
    fn a_figure_that_is_missing_is_an_error() {
        for gone in ["822628 requests", "Requests/sec"] {
            let printed: Vec<_> = PRINTED.lines().filter(|line| !line.contains(gone)).collect();
            assert!(read(&printed.join("\n")).is_err(), "{gone}");
        }
        assert!(read(&PRINTED.replace("822628", "0")).is_err());
    }
}
