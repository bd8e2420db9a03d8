//! oha: where it is, its command line and its report.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use tokio::process::Command;

use crate::load_report::LoadReport;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/oha");

/// The path of the program, which is built if it is not there. Without it the comparison has one generator less.
pub(crate) async fn installed() -> Option<String> {
    let output = Command::new(SCRIPT).stdin(Stdio::null()).stderr(Stdio::inherit()).output().await;
    let output = output.ok().filter(|output| output.status.success());
    let path = output.and_then(|output| String::from_utf8(output.stdout).ok());
    if path.is_none() {
        eprintln!("oha could not be installed and is left out");
    }
    path.map(|path| path.trim_end().to_owned())
}

pub(crate) fn command(
    program: &str,
    server: SocketAddr,
    connections: u64,
    seconds: u32,
) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--no-tui", "--output-format", "json"])
        // Requests that are under way when it ends are counted.
        .arg("--wait-ongoing-requests-after-deadline")
        .args(["-c", &connections.to_string(), "-z", &format!("{seconds}s")])
        .arg(format!("http://{server}/hello/alice"));
    command
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    summary: Summary,
    status_code_distribution: BTreeMap<String, u64>,
    error_distribution: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    requests_per_sec: f64,
}

/// Reads the report. A request that failed makes it an error: its figures are not comparable.
pub(crate) fn read(text: &str) -> Result<LoadReport> {
    let report: Report = serde_json::from_str(text)?;
    let requests = report.status_code_distribution.get("200").copied();
    let requests = requests.context("no request was answered")?;
    let is_all = report.status_code_distribution.len() == 1 && report.error_distribution.is_empty();
    ensure!(is_all, "requests failed");
    Ok(LoadReport { requests, per_second: report.summary.requests_per_sec, memory: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = r#"{
        "summary": {"successRate": 1.0, "total": 1.5, "requestsPerSec": 6.5, "sizePerRequest": 9},
        "statusCodeDistribution": {"200": 9},
        "errorDistribution": {}
    }"#;

    #[test]
    fn a_report_is_read_if_no_request_failed() {
        let expected = LoadReport { requests: 9, per_second: 6.5, memory: 0 };
        assert_eq!(read(PRINTED).unwrap(), expected);
        for (found, other) in [
            ("\"200\": 9", ""),
            ("\"200\": 9", "\"200\": 9, \"500\": 1"),
            ("\"errorDistribution\": {}", "\"errorDistribution\": {\"connection error\": 1}"),
            ("requestsPerSec", "rate"),
        ] {
            assert!(read(&PRINTED.replace(found, other)).is_err(), "{other}");
        }
    }
}
