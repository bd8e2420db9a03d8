//! The program under test.

use crate::client::{Answer, send};
use crate::postgres::Postgres;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use talea_parse::Sample;
use tempfile::TempDir;

/// The program, with two free ports and nothing else said.
pub(crate) fn program() -> Command {
    from_outside(Command::new(env!("CARGO_BIN_EXE_items-api")))
}

/// The program in a shell that first does as `preparation` says.
pub(crate) fn program_after(preparation: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!(r#"{preparation}; exec "$0" "$@""#));
    shell.arg(env!("CARGO_BIN_EXE_items-api"));
    from_outside(shell)
}

fn from_outside(mut command: Command) -> Command {
    command
        .args(["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"])
        .env_remove("DATABASE_URL")
        .env_remove("DATABASE_POOL")
        .env_remove("ITEMS_METRICS")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A running service; killed when dropped.
pub(crate) struct Service {
    child: Child,
    pub(crate) items: SocketAddr,
    pub(crate) metrics: SocketAddr,
    /// Held open; a study's service ends when it is dropped.
    pub(crate) input: Option<ChildStdin>,
    /// Where it keeps temporary files.
    pub(crate) temporary: TempDir,
}

impl Service {
    pub(crate) fn start() -> Service {
        Service::run(program())
    }

    /// On an empty database of a PostgreSQL that all tests share.
    pub(crate) fn on_postgres() -> Service {
        let mut command = program();
        command.env("DATABASE_URL", Postgres::shared().new_database()).args(["--pool", "3"]);
        Service::run(command)
    }

    /// Without meters.
    pub(crate) fn unmetered() -> Service {
        let mut command = program();
        command.args(["--metrics", "off"]);
        Service::run(command)
    }

    /// With `--study`, and a standard input that stays open.
    pub(crate) fn start_study() -> Service {
        Service::study(program())
    }

    /// Starts `command` for a study, with a standard input that stays open.
    pub(crate) fn study(mut command: Command) -> Service {
        command.arg("--study").stdin(Stdio::piped());
        Service::run(command)
    }

    /// Runs `command` and waits for its two lines.
    pub(crate) fn run(mut command: Command) -> Service {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let mut child = command.env("TMPDIR", temporary.path()).spawn().expect("the program");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let mut address = |from: &str, to: &str| -> SocketAddr {
            let line = lines.next().and_then(Result::ok);
            let line = line.unwrap_or_else(|| panic!("it ended before its line {from:?}"));
            let address = line.strip_prefix(from).and_then(|rest| rest.strip_suffix(to));
            let address = address.unwrap_or_else(|| panic!("expected {from}…{to}, found {line}"));
            address.parse().expect("an address")
        };
        Service {
            items: address("items on http://", "/api/items"),
            metrics: address("metrics on http://", "/metrics"),
            input: child.stdin.take(),
            child,
            temporary,
        }
    }

    /// Sends `METHOD /path` without a body.
    pub(crate) fn send(&self, line: &str) -> Answer {
        send(self.items, line, None)
    }

    /// Sends `METHOD /path` with a JSON body.
    pub(crate) fn send_json(&self, line: &str, body: &str) -> Answer {
        send(self.items, line, Some(("application/json", body)))
    }

    /// Makes an item that says true, and returns its id.
    pub(crate) fn create(&self) -> i64 {
        let answer = self.send_json("POST /api/items", r#"{"item":{"value":true}}"#);
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["data"]["id"].as_i64().expect("an id")
    }

    /// The present page of the metrics port.
    pub(crate) fn scrape(&self) -> Vec<Sample> {
        talea_parse::text(&self.scrape_text()).expect("exposition text")
    }

    pub(crate) fn scrape_text(&self) -> String {
        let answer = send(self.metrics, "GET /metrics", None);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("a signal");
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("its status").is_none()
    }

    /// Waits for its end, and says how it ended and what it wrote to standard
    /// error.
    pub(crate) fn wait(&mut self, at_most: Duration) -> (ExitStatus, String) {
        let start = Instant::now();
        while self.is_running() {
            assert!(start.elapsed() < at_most, "still running after {at_most:?}");
            sleep(Duration::from_millis(5));
        }
        let mut stderr = String::new();
        let errors = self.child.stderr.as_mut().expect("its standard error");
        errors.read_to_string(&mut stderr).expect("text");
        (self.child.wait().expect("its status"), stderr)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
