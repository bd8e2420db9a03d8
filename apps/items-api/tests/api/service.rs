//! The program under test.

use crate::client::{Answer, json, send};
use crate::metrics::value;
use crate::postgres::Postgres;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use talea_parse::Sample;
use tempfile::TempDir;

/// When a wait for something that takes milliseconds is given up.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

/// The program, with two free ports and an empty input, which does not end it.
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

pub(crate) fn until(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < LONGEST, "it did not come to pass in {LONGEST:?}");
        sleep(Duration::from_millis(5));
    }
}

/// A standard error that takes nothing, as a file on a full disk.
pub(crate) fn full() -> File {
    File::options().write(true).open("/dev/full").expect("a full device")
}

/// A running service; killed when dropped.
pub(crate) struct Service {
    child: Child,
    pub(crate) items: SocketAddr,
    pub(crate) metrics: SocketAddr,
    /// Held open; a study's service ends when it is dropped.
    pub(crate) input: Option<ChildStdin>,
    /// Where it keeps temporary files.
    temporary: TempDir,
}

impl Service {
    pub(crate) fn start() -> Service {
        Service::run(program())
    }

    /// The program with more arguments or variables.
    pub(crate) fn with(add: impl FnOnce(&mut Command) -> &mut Command) -> Service {
        let mut command = program();
        add(&mut command);
        Service::run(command)
    }

    /// On an empty database of a PostgreSQL that all tests share.
    pub(crate) fn on_postgres() -> Service {
        let url = Postgres::shared().new_database();
        Service::with(|program| program.env("DATABASE_URL", url).args(["--pool", "3"]))
    }

    pub(crate) fn unmetered() -> Service {
        Service::with(|program| program.args(["--metrics", "off"]))
    }

    /// As [`with`](Self::with), for a study, and with a standard input that stays open.
    pub(crate) fn study(add: impl FnOnce(&mut Command) -> &mut Command) -> Service {
        Service::with(|program| add(program.arg("--study").stdin(Stdio::piped())))
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
        send(self.items, line, json(body))
    }

    /// Makes an item that says true, and returns its id.
    pub(crate) fn create(&self) -> i64 {
        let answer = self.send_json("POST /api/items", r#"{"item":{"value":true}}"#);
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["data"]["id"].as_i64().expect("an id")
    }

    pub(crate) fn scrape(&self) -> Vec<Sample> {
        talea_parse::text(&self.scrape_text()).expect("exposition text")
    }

    pub(crate) fn scrape_text(&self) -> String {
        let answer = send(self.metrics, "GET /metrics", None);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    }

    /// The present value of the first series with this name and these labels.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        value(&self.scrape(), name, labels)
    }

    /// The number of files in its temporary folder.
    pub(crate) fn temporary_files(&self) -> usize {
        fs::read_dir(self.temporary.path()).unwrap().count()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("a signal");
    }

    /// The number of files and connections that it has open.
    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("its descriptors").count()
    }

    /// How often its threads waited until something happened.
    pub(crate) fn waits(&self) -> u64 {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("its threads");
        let waits = threads.map(|thread| {
            let status =
                fs::read_to_string(thread.unwrap().path().join("status")).unwrap_or_default();
            let mut lines = status.lines();
            let waits = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            waits.map_or(0, |waits| waits.trim().parse().expect("a number"))
        });
        waits.sum()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("its status").is_none()
    }

    /// Waits for its end, which must be a success, and returns what it wrote to standard error, if
    /// that is a pipe.
    pub(crate) fn wait(&mut self) -> String {
        until(|| !self.is_running());
        let mut stderr = String::new();
        if let Some(errors) = &mut self.child.stderr {
            errors.read_to_string(&mut stderr).expect("text");
        }
        let status = self.child.wait().expect("its status");
        assert_eq!(status.code(), Some(0), "{stderr}");
        stderr
    }

    /// Ends it by a signal.
    pub(crate) fn end(&mut self) -> String {
        self.signal(Signal::TERM);
        self.wait()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
