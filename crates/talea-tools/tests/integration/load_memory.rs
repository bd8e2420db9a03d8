//! `talea load --server-pid`: the memory of the server's processes.

use std::process::{Child, Command};

use crate::support::stand_in::{Reply, StandIn};
use crate::support::{assert_ends, printed_json, stdout, talea};

/// A process that waits; it is killed when this is dropped.
struct Process(Child);

impl Process {
    fn start() -> Self {
        Self(Command::new("sleep").arg("600").spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn server() -> StandIn {
    StandIn::start(|_| Reply::Answer(200, "ok".to_owned()))
}

#[test]
fn the_memory_of_the_server_is_shown_and_judged() {
    let (server, processes) = (server(), [Process::start(), Process::start()]);
    let pids = processes.each_ref().map(Process::pid).join(",");
    let url = server.url();
    // Four times as long as the samples take that a growth needs: a busy machine samples later.
    let load = ["load", &url, "-c", "1", "--for", "4s", "--server-pid", &pids];
    for (conditions, status, words) in [
        (["memory > +50%", "memory > 4GiB"], 0, "passed: memory >"),
        (["memory < +50%", "memory > 1KiB"], 1, "FAILED: memory"),
    ] {
        let options: Vec<_> = conditions.iter().flat_map(|one| ["--fail-if", one]).collect();
        let output = talea([&load[..], &options].concat());
        let stderr = assert_ends(&output, status, &[]);
        assert_eq!(stderr.matches(words).count(), 2, "{stderr}");
        let shown = stdout(&output);
        assert!(
            shown.contains("server memory  peak ") && shown.contains("of 2 processes"),
            "{shown}"
        );
    }
    let output = talea([&load[..], &["--json"]].concat());
    assert_ends(&output, 0, &[]);
    let memory = &printed_json(&output)["server_memory"];
    assert!(memory["peak_bytes"].as_u64().unwrap() > 100_000, "{memory}");
    assert!(memory["growth"]["share"].as_f64().unwrap().abs() < 0.5, "{memory}");
}

#[test]
fn a_process_that_ends_is_named_and_its_growth_is_not_judged() {
    let process = Process::start();
    let pid = process.pid();
    let killed = pid.clone();
    // It dies by the first request.
    let server = StandIn::start(move |_| {
        let _ = Command::new("kill").args(["-9", &killed]).status();
        Reply::Answer(200, "ok".to_owned())
    });
    let url = server.url();
    let load = ["load", &url, "-c", "1", "-n", "2", "--server-pid", &pid];
    let output = talea([&load[..], &["--fail-if", "memory > +50%"]].concat());
    assert_ends(&output, 2, &["memory > +50%: there is no such figure"]);
    assert!(stdout(&output).contains("process ended"), "{output:?}");
}

#[test]
fn a_memory_that_cannot_be_watched_is_refused_before_the_load() {
    let server = server();
    let url = server.url();
    let load = ["load", &url, "-c", "1", "-n", "1"];
    for (options, words) in [
        (&["--server-pid", "4194305"][..], "--server-pid: the memory of [4194305] cannot be read"),
        (&["--fail-if", "memory > +1%"], "add --server-pid PID"),
        (&["--server-pid", "1", "--fail-if", "cpu > 1us"], "talea study"),
        (&["--server-pid", "1", "--find-limit", "rate < 1"], "cannot be used with"),
    ] {
        assert_ends(&talea([&load[..], options].concat()), 2, &[words]);
    }
    assert_eq!(server.requests(), 0);
}
