//! `talea load --shard` and `talea load merge`: parts of a load, and the whole that they make.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::support::counting_server::{Server, text};
use crate::support::stand_in::{Reply, StandIn};
use crate::support::{TALEA, assert_ends, printed_json, start, stdout, talea, until};

struct Shards {
    server: Server,
    folder: tempfile::TempDir,
}

impl Shards {
    fn new() -> Self {
        let server = Server::start(None, async |_| text("hello"));
        Self { server, folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self, number: u64) -> PathBuf {
        self.folder.path().join(format!("{number}.json"))
    }

    /// Runs a shard of four at once with the others, which is to end well.
    fn run(&self, number: u64, arguments: &[&str]) {
        let url = format!("http://{}/", self.server.address);
        let (shard, file) = (format!("{number}/4"), self.file(number));
        let words = ["load", &url, "--shard", &shard, "--record", file.to_str().unwrap()];
        assert_ends(&talea([&words[..], arguments].concat()), 0, &[]);
    }

    fn run_all(&self, arguments: &[&str]) {
        std::thread::scope(|scope| {
            for number in 1..=4 {
                scope.spawn(move || self.run(number, arguments));
            }
        });
    }

    fn merge(&self, numbers: &[u64], arguments: &[&str]) -> Output {
        let files = numbers.iter().map(|number| self.file(*number).display().to_string());
        let words = ["load", "merge"].map(str::to_owned).into_iter().chain(files);
        talea(words.chain(arguments.iter().map(ToString::to_string)))
    }

    /// Changes a record as a shard would have written it in other circumstances.
    fn change(&self, number: u64, change: impl FnOnce(&mut Value)) {
        let text = std::fs::read_to_string(self.file(number)).unwrap();
        let mut record: Value = serde_json::from_str(&text).unwrap();
        change(&mut record);
        let version = record.as_object_mut().unwrap().remove("talea_load").unwrap();
        // It stands first, so that a record is found in a log.
        let rest = record.to_string();
        let text = format!("{{\"talea_load\":{version},{}\n", &rest[1..]);
        std::fs::write(self.file(number), text).unwrap();
    }
}

fn count(of: &Value, name: &str) -> u64 {
    of[name].as_u64().unwrap_or_else(|| panic!("{name}: {of}"))
}

#[test]
fn four_shards_make_the_whole_load_and_their_results_add_up_exactly() {
    for (arguments, requests, clients) in [
        (&["--rate", "100", "--for", "1100ms"][..], 110, 1000),
        (&["--clients", "6", "--requests", "50"], 50, 6),
        (&["--clients", "5", "--iterations", "3"], 15, 5),
    ] {
        let shards = Shards::new();
        shards.run_all(arguments);
        assert_eq!(shards.server.requests(), requests, "{arguments:?}");
        let output = shards.merge(&[4, 2, 1, 3], &["--json", "--fail-if", "p99 > 60s"]);
        assert_ends(&output, 0, &["passed: p99 > 60s: found"]);
        let merged = printed_json(&output);
        let summary = &merged["summary"];
        assert_eq!(count(summary, "requests_sent"), requests, "{summary}");
        assert_eq!(count(summary, "requests_planned"), requests, "{summary}");
        assert_eq!(count(summary, "clients"), clients, "{summary}");
        assert_eq!(summary["answers_by_status"], json!({ "200": requests }));
        assert_eq!(merged["faults"], json!([]));
        // Distributions and seconds hold each request once.
        let buckets = |times: &Value| -> u64 {
            let of_one = |histogram: &Value| {
                let counts = histogram["buckets"].as_array().unwrap().iter();
                count(histogram, "zero") + counts.map(|pair| pair[1].as_u64().unwrap()).sum::<u64>()
            };
            times.as_array().unwrap().iter().map(of_one).sum()
        };
        assert_eq!(buckets(&merged["distributions"]["responses"]), requests);
        let timeline = merged["timeline"].as_array().unwrap();
        let seconds: u64 = timeline.iter().map(|slice| count(slice, "requests")).sum();
        let distributed: u64 = timeline.iter().map(|slice| buckets(&slice["times"])).sum();
        assert_eq!((seconds, distributed), (requests, requests), "{arguments:?}");
        let text = stdout(&shards.merge(&[1, 2, 3, 4], &[]));
        assert!(text.contains(&format!("requests sent  {requests} of {requests}")), "{text}");
    }
}

#[test]
fn a_shard_that_is_missing_late_or_has_another_clock_is_named() {
    let shards = Shards::new();
    let past = SystemTime::now() - Duration::from_secs(5);
    let past = past.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs().to_string();
    let load = ["--rate", "40", "--for", "500ms"];
    let late = [&load[..], &["--start-at", &past]].concat();
    shards.run(1, &load);
    shards.run(2, &late);
    shards.run(3, &load);
    shards.run(4, &load);
    let clock =
        |record: &mut Value| record["clock"] = json!(record["clock"].as_f64().unwrap() + 30.0);
    shards.change(3, clock);
    let output = shards.merge(&[1, 2, 3, 4], &[]);
    let words = "FAULT: the clock of shard 3/4 is ";
    let stderr =
        assert_ends(&output, 0, &["FAULT: shard 2/4 began ", words, " ahead of the others'"]);
    assert!(!stderr.contains("shard 1/4") && !stderr.contains("shard 4/4"), "{stderr}");

    // One died before it wrote anything, another while it wrote.
    let whole = std::fs::read(shards.file(4)).unwrap();
    std::fs::write(shards.file(4), &whole[..whole.len() / 2]).unwrap();
    let output = shards.merge(&[1, 2, 4], &[]);
    let words = [
        "4.json has no whole result: its shard died",
        "shard 3/4 has no result: it did not run, or it died; 25.0 % of the load is missing",
        "shard 4/4 has no result",
        "10 of 20 requests were offered",
    ];
    assert_ends(&output, 1, &words);
    assert!(stdout(&output).contains("requests sent  10 of 20"), "{output:?}");
}

#[test]
fn a_shard_that_is_stopped_or_killed_is_named() {
    let server = StandIn::start(|_| Reply::Silence);
    let folder = tempfile::tempdir().unwrap();
    let file = |number: u64| folder.path().join(format!("{number}.json")).display().to_string();
    let shard = |number: u64| {
        let (part, file, url) = (format!("{number}/2"), file(number), server.url());
        start(["load", &url, "--shard", &part, "--record", &file, "-c", "2", "-m", "1"])
    };
    let (stopped, mut killed) = (shard(1), shard(2));
    until("both have asked", || server.requests() == 2);
    crate::support::interrupt(&stopped);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_ends(&stopped.wait_with_output().unwrap(), 130, &[]);
    let output = talea(["load", "merge", &file(1), &file(2)]);
    let words = [
        "shard 1/2 was stopped before it was done",
        "shard 2/2 has no result",
        "2.json has no whole",
    ];
    assert_ends(&output, 1, &words);
}

#[test]
fn records_are_found_in_the_log_of_an_indexed_job() {
    let server = Server::start(None, async |_| text("hello"));
    let url = format!("http://{}/", server.address);
    let mut log = String::new();
    for index in ["0", "1"] {
        let arguments =
            ["load", &url, "--shard", "index/2", "--record", "-", "-c", "2", "-n", "4", "-q"];
        let output =
            Command::new(TALEA).args(arguments).env("JOB_COMPLETION_INDEX", index).output();
        let output = output.unwrap();
        assert_ends(&output, 0, &[]);
        log += &format!("[pod/load-{index}] starting\n[pod/load-{index}] {}", stdout(&output));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    std::fs::write(&path, log).unwrap();
    let merged =
        printed_json(&talea([Path::new("load"), Path::new("merge"), &path, Path::new("--json")]));
    assert_eq!(merged["summary"]["requests_sent"], 4, "{merged}");
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let shards = Shards::new();
    shards.run(1, &["-c", "4", "-m", "1"]);
    shards.run(2, &["-c", "4", "-m", "2"]);
    std::fs::copy(shards.file(1), shards.file(3)).unwrap();
    std::fs::write(shards.file(4), "nothing").unwrap();
    for (numbers, words) in [
        (&[1, 2][..], "parts of different loads: shard 1/4 has"),
        (&[1, 3], "found shard 1/4 twice"),
        (&[4], "4.json has no whole result"),
        (&[9], "9.json cannot be read"),
    ] {
        assert_ends(&shards.merge(numbers, &[]), 2, &[words]);
    }
    let url = format!("http://{}/", shards.server.address);
    for (arguments, words) in [
        (&["--shard", "1/4", "-c", "9", "-m", "1"][..], "--record <FILE>"),
        (&["--shard", "5/4", "--record", "-", "-c", "9", "-m", "1"], "expected one such as 3/8"),
        (
            &["--shard", "4/4", "--record", "-", "-c", "3", "-m", "1"],
            "fewer clients or requests than shards",
        ),
        (&["--start-at", "soon", "-c", "3", "-m", "1"], "expected a time such as"),
    ] {
        assert_ends(&talea([&["load", &url], arguments].concat()), 2, &[words]);
    }
}

/// The arguments of the program in the manifest of the job, each with its change.
fn arguments_of_the_job(changes: &[(&str, String)]) -> Vec<String> {
    let job = include_str!("../../../../contrib/load/job.yaml");
    let lines = job.lines().skip_while(|line| line.trim() != "args:").skip(1);
    let mut arguments: Vec<String> =
        lines.map_while(|line| line.trim().strip_prefix("- ")).map(str::to_owned).collect();
    for (from, to) in changes {
        let changed = arguments.iter_mut().find(|argument| *argument == from);
        *changed.unwrap_or_else(|| panic!("{from}")) = to.clone();
    }
    arguments
}

#[test]
fn the_job_in_contrib_begins_at_its_time_and_makes_its_load_once() {
    let first = Arc::new(OnceLock::new());
    let noted = first.clone();
    let server = Server::start(None, move |_| {
        noted.get_or_init(SystemTime::now);
        async { text("hello") }
    });
    let begin = SystemTime::now() + Duration::from_secs(2);
    let begin = begin.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let arguments = arguments_of_the_job(&[
        ("http://shop.default.svc:8080/", format!("http://{}/", server.address)),
        ("--rate=8000", "--rate=80".to_owned()),
        ("--for=60s", "--for=500ms".to_owned()),
        ("--start-at=$START", format!("--start-at={begin}")),
    ]);
    // As Kubernetes runs them, and `kubectl logs --prefix` shows them.
    let pods = [0, 1, 2, 3, 4, 5, 6, 7].map(|index: u64| {
        let mut command = Command::new(TALEA);
        command.args(&arguments).env("JOB_COMPLETION_INDEX", index.to_string());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("shards.log");
    let mut lines = String::new();
    for (index, pod) in pods.into_iter().enumerate() {
        let output = pod.wait_with_output().unwrap();
        assert_ends(&output, 0, &[]);
        for line in stdout(&output).lines() {
            lines.push_str(&format!("[pod/talea-load-{index}-x7k2p/talea] {line}\n"));
        }
    }
    std::fs::write(&log, lines).unwrap();
    let output = talea(["load", "merge", log.to_str().unwrap(), "--json"]);
    assert_ends(&output, 0, &[]);
    let summary = &printed_json(&output)["summary"];
    assert_eq!((count(summary, "requests_sent"), count(summary, "answers")), (40, 40));
    assert_eq!(server.requests(), 40);
    let begun = first.get().unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    assert!(begun >= Duration::from_secs(begin), "{begun:?} before {begin}");
}
