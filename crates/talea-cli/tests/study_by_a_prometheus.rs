//! `talea study --prometheus`: a real Prometheus that runs already, and scrapes others too.

#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const TALEA: &str = env!("CARGO_BIN_EXE_talea");

/// A process that is started for a test, and ends with it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The items API: itself, where its items are, and where its metrics are.
fn items_api() -> (Running, String, String) {
    let path = Path::new(TALEA).with_file_name("items-api");
    assert!(path.is_file(), "no items-api at {}", path.display());
    let mut child = Command::new(path)
        .args(["--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut address = |before: &str| {
        let line = lines.next().unwrap().unwrap();
        line.strip_prefix(before).unwrap().to_owned()
    };
    let (items, metrics) = (address("items on "), address("metrics on "));
    (Running(child), items, metrics)
}

/// A Prometheus that scrapes the same twice, as two jobs.
fn prometheus(folder: &Path, metrics: &str) -> (Running, String) {
    let authority = metrics.trim_start_matches("http://").trim_end_matches("/metrics");
    let job = |name: &str| {
        format!("- {{job_name: {name}, static_configs: [{{targets: ['{authority}']}}]}}\n")
    };
    let configuration = format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs:\n{}{}",
        job("shop"),
        job("other")
    );
    let path = folder.join("prometheus.yml");
    fs::write(&path, configuration).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let child = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "prometheus", "--log.level=error"])
        .arg(format!("--config.file={}", path.display()))
        .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let running = Running(child);
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(30), "prometheus does not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    (running, format!("http://127.0.0.1:{port}"))
}

/// The first case of a study, and how it ended.
fn studied(items: &str, metrics: &str, prometheus: &str, more: &[&str]) -> (Value, Option<i32>) {
    let out = tempfile::tempdir().unwrap();
    let output = Command::new(TALEA)
        .args(["study", "--cases", "5x40", "--url", items, "--metrics-url", metrics])
        .args(["--prometheus", prometheus])
        .args(more)
        .arg("--out")
        .arg(out.path())
        .output()
        .unwrap();
    let report = fs::read(out.path().join("report.json"));
    let report = report.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let report: Value = serde_json::from_slice(&report).unwrap();
    (report["cases"][0].clone(), output.status.code())
}

#[test]
fn one_service_among_others_is_selected_by_its_labels() {
    let folder = tempfile::tempdir().unwrap();
    let (_api, items, metrics) = items_api();
    let (_prometheus, url) = prometheus(folder.path(), &metrics);
    let (case, status) = studied(&items, &metrics, &url, &["--prometheus-labels", "job=\"shop\""]);
    assert_eq!(status, Some(0));
    assert_eq!(case["server"]["requests_received"], 1_000);
    assert_eq!(case["prometheus"]["requests_received"], 1_000);
    assert_eq!(case["differences"], Value::Array(Vec::new()));
    let query = case["queries"][0]["query"].as_str().unwrap();
    assert!(query.starts_with("sum(increase(http_requests_total{job=\"shop\"}["), "{query}");

    // Without the labels it finds everything twice, and the study says so.
    let (case, _) = studied(&items, &metrics, &url, &[]);
    assert_eq!(case["prometheus"]["requests_received"], 2_000);
    let difference = case["differences"][0].as_str().unwrap();
    let expected = "Requests received: 1,000 by the study's samples, 2,000 by Prometheus.";
    assert_eq!(difference, expected);
}
