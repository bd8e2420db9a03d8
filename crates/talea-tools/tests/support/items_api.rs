//! The real items API as a process, and the requests that it counts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{LONGEST, Running, TALEA};

/// The series that counts lists of items which were answered well.
pub(crate) const LISTED: &str =
    r#"http_requests_total{method="GET",route="/api/items",status="2xx"}"#;

/// The items API that was built with the program under test.
pub(crate) fn program() -> PathBuf {
    let program = Path::new(TALEA).with_file_name("items-api");
    assert!(
        program.is_file(),
        "no items-api at {}: run `cargo build -p items-api` with the same profile first",
        program.display()
    );
    program
}

/// The items API, killed when dropped.
pub(crate) struct ItemsApi {
    process: Running,
    /// Where it answers requests, as `127.0.0.1:4000`.
    pub(crate) items: String,
    /// Where it shows its metrics.
    pub(crate) metrics: String,
    /// Its database: one that is killed leaves it there.
    _temporary: tempfile::TempDir,
}

impl ItemsApi {
    /// Counts in a file, or in memory of its own.
    pub(crate) fn start(region: Option<&Path>) -> Self {
        Self::start_with(region, &[])
    }

    pub(crate) fn start_with(region: Option<&Path>, more: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", "127.0.0.1:0", region, more)
    }

    /// One that listens on these addresses, for requests and for scrapes.
    pub(crate) fn start_at(
        items: &str,
        metrics: &str,
        region: Option<&Path>,
        more: &[&str],
    ) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let mut child = Command::new(program())
            .env("TMPDIR", temporary.path())
            .args(["--listen", items, "--metrics-listen", metrics])
            .args(more)
            .env_remove("DATABASE_URL")
            .env_remove("ITEMS_METRICS")
            .env_remove("TALEA_REGION_GROUP")
            .env("TALEA_REGION", region.unwrap_or(Path::new("")))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut address = || {
            let line = lines.next().unwrap().unwrap();
            let url = line.split("http://").nth(1).unwrap();
            url.split('/').next().unwrap().to_owned()
        };
        let (items, metrics) = (address(), address());
        Self { process: Running(child), items, metrics, _temporary: temporary }
    }

    pub(crate) fn list(&self, times: usize) {
        (0..times).for_each(|_| assert!(is_listed(&self.items)));
    }

    /// Makes an item and lists them, so many times.
    pub(crate) fn make_and_list(&self, times: usize) {
        for _ in 0..times {
            let body = r#"{"item":{"value":true}}"#;
            let head = format!(
                "POST /api/items HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
                 Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            assert!(send(&self.items, &head).unwrap().starts_with("HTTP/1.1 201"));
            self.list(1);
        }
    }

    /// Its page of metrics.
    pub(crate) fn scrape(&self) -> String {
        let request = "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let answer = send(&self.metrics, request).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.0.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process.0), signal).unwrap();
    }

    /// Ends it by SIGKILL, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.process.0.kill().unwrap();
        self.process.0.wait().unwrap();
    }
}

fn send(address: &str, request: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LONGEST))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Whether the items were listed whole, by a service that may be killed meanwhile.
pub(crate) fn is_listed(items: &str) -> bool {
    let request = "GET /api/items HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    send(items, request).is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}
