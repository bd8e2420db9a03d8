//! `talea load` and `talea study --ab` with requests that get no answer: what they count for in times.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::stand_in::{Reply, StandIn};
use crate::support::{
    HELLO_SCENARIO, assert_ends, interrupt, json_file, printed_json, start, stdout, talea, until,
};

/// A server that does not answer each tenth request as it should.
fn tenth(reply: fn() -> Reply) -> StandIn {
    StandIn::counting(
        |_| String::new(),
        move |number, _| match number % 10 {
            0 => reply(),
            _ => Reply::Answer(200, String::new()),
        },
    )
}

struct Load {
    folder: tempfile::TempDir,
    scenario: PathBuf,
}

impl Load {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scenario = folder.path().join("scenario.toml");
        std::fs::write(&scenario, HELLO_SCENARIO).unwrap();
        Self { folder, scenario }
    }

    fn arguments<'a>(&'a self, server: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let load = ["load", server, "--scenario", self.scenario.to_str().unwrap()];
        [&load[..], more].concat()
    }
}

/// Twenty requests, of which two or more time out.
const SILENT: [&str; 3] = ["--clients=2", "--iterations=10", "--timeout=1s"];
/// A bucket of the times is 2.2 % wide.
const A_SECOND: f64 = 978.0;

fn has(names: &Value, name: &str) -> bool {
    names.as_array().unwrap().contains(&json!(name))
}

#[test]
fn a_request_that_times_out_counts_as_at_least_as_long() {
    let load = Load::new();
    let csv = load.folder.path().join("samples.csv");
    let (server, csv_name) = (tenth(|| Reply::Silence), csv.to_str().unwrap());
    let (url, more) = (server.url(), ["--json", "--samples", csv_name, "--fail-if", "p99 > 50ms"]);
    let output = talea(load.arguments(&url, &[&SILENT[..], &more].concat()));
    assert_ends(&output, 1, &["FAILED: p99 > 50ms: found ≥ "]);
    let summary = printed_json(&output);
    let (failed, step) = (summary["failed"].as_u64().unwrap(), &summary["steps"][0]);
    assert!(failed >= 2, "{summary}");
    assert_eq!(
        (&summary["requests_censored"], &summary["requests_untimed"]),
        (&json!(failed), &json!(0))
    );
    assert_eq!(step["answers"], 20 - failed, "{summary}");
    for name in ["mean", "p99", "p999", "p9999", "max"] {
        assert!(has(&summary["at_least"], &format!("client_{name}_ms")), "{name}: {summary}");
    }
    for name in ["head_p99_ms", "client_p99_ms", "client_max_ms"] {
        assert!(summary[name].as_f64().unwrap() >= A_SECOND, "{name}: {summary}");
    }
    assert!(has(&step["at_least"], "p99_ms") && step["p99_ms"].as_f64().unwrap() >= A_SECOND);

    let csv = std::fs::read_to_string(&csv).unwrap();
    let bounds = csv.lines().filter(|line| line.ends_with(",true"));
    let times = bounds.map(|line| line.split(',').nth(8).unwrap().parse::<f64>().unwrap() / 1e3);
    let times: Vec<f64> = times.collect();
    assert_eq!(times.len() as u64, failed, "{csv}");
    assert!(times.iter().all(|ms| *ms >= A_SECOND), "{csv}");
}

#[test]
fn a_limit_above_the_time_limit_is_not_decided_by_requests_that_time_out() {
    let load = Load::new();
    let server = StandIn::start(|_| Reply::Silence);
    let (url, more) = (server.url(), ["--clients=1", "--iterations=1", "--timeout=10ms"]);
    let condition = ["--fail-if", "p99 > 60s"];
    let output = talea(load.arguments(&url, &[&more[..], &condition].concat()));
    assert_ends(&output, 1, &["not decided: p99 > 60s: found ≥ ", "use a longer --timeout"]);
    let text = stdout(&output);
    assert!(text.contains("p99 ≥ ") && text.contains("1 request without a response"), "{text}");
}

#[test]
fn a_request_that_fails_otherwise_without_an_answer_counts_in_no_time() {
    let load = Load::new();
    let server = tenth(|| Reply::Close);
    let (url, more) = (server.url(), ["--clients=1", "--iterations=20"]);
    let output = talea(load.arguments(&url, &[&more[..], &["--json"]].concat()));
    let summary = printed_json(&output);
    assert_eq!(
        (&summary["requests_untimed"], &summary["requests_censored"]),
        (&json!(2), &json!(0))
    );
    assert_eq!(summary["at_least"], json!([]), "{summary}");
    assert!(summary["steps"][0].get("at_least").is_none(), "{summary}");
    let text = stdout(&talea(load.arguments(&url, &more)));
    assert!(text.contains("2 requests that failed without a response: not timed"), "{text}");
}

#[test]
fn a_variant_whose_slow_requests_time_out_is_not_faster() {
    let load = Load::new();
    let urls = [
        tenth(|| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            Reply::Answer(200, String::new())
        }),
        tenth(|| Reply::Silence),
    ]
    .map(|server| server.url());
    let [scenario, out] = [&load.scenario, load.folder.path()].map(|path| path.to_str().unwrap());
    let study = ["study", "--cases=2x10", "--rounds=2", "--timeout=1s", "--scenario", scenario];
    let study = [&study[..], &["--out", out, "--ab", &urls[0], &urls[1]]].concat();
    let output = talea(study);
    assert_ends(&output, 1, &[]);
    assert!(!stdout(&output).contains("faster at p99"), "{output:?}");
    let comparison = json_file(&load.folder.path().join("comparison.json"));
    let lines = comparison["others"][0]["cases"][0]["lines"].as_array().unwrap();
    let p99 = lines.iter().find(|line| line["measure"] == "p99").unwrap();
    assert_eq!(p99["other_at_least"], true, "{p99}");
    assert!(p99["verdict"] != "better" && p99["other"].as_f64().unwrap() >= A_SECOND, "{p99}");
    let report = json_file(&load.folder.path().join("2/report.json"));
    let case = &report["cases"][0];
    assert!(has(&case["client"]["at_least"], "p99_ms"), "{case}");
    assert!(has(&case["rounds"][0]["at_least"], "p99"), "{case}");
    let page = std::fs::read_to_string(load.folder.path().join("2/report.html")).unwrap();
    assert!(page.contains("≥ 1,0") && page.contains("timed out or were cut off"), "{page}");
}

#[test]
fn arrivals_that_a_stop_leaves_waiting_count_as_at_least_as_long() {
    let load = Load::new();
    let server = StandIn::start(|_| Reply::Silence);
    let (url, more) = (server.url(), ["--rate=100000", "--for=60s", "--clients=2", "--json"]);
    let child = start(load.arguments(&url, &more));
    until("both clients wait", || server.requests() == 2);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_ends(&output, 130, &[]);
    let summary = printed_json(&output);
    let not_begun = summary["arrivals_not_begun"].as_u64().unwrap();
    assert!(not_begun > 0, "{summary}");
    assert_eq!(summary["unanswered"], 2, "{summary}");
    assert_eq!(summary["requests_censored"], 2 + not_begun, "{summary}");
    assert!(has(&summary["at_least"], "client_p50_ms"), "{summary}");
}

#[test]
fn the_rate_of_arrivals_is_over_their_schedule() {
    let load = Load::new();
    let server = StandIn::start(|_| Reply::Answer(200, String::new()));
    let url = server.url();
    let more = ["--rate=10", "--for=200ms", "--json", "--fail-if", "rate > 11"];
    let output = talea(load.arguments(&url, &more));
    assert_ends(&output, 0, &["passed: rate > 11"]);
    let summary = printed_json(&output);
    let [rate, seconds] =
        ["mean_rate", "sending_seconds"].map(|name| summary[name].as_f64().unwrap());
    // Longer only if the machine sent the last request late.
    assert!(seconds >= 0.2 && (rate - 2.0 / seconds).abs() < 1e-9, "{summary}");
}
