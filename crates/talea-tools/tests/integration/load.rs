//! `talea load`: the real program against a server that counts.

use std::process::{Command, Output};

use serde_json::json;

use crate::support::stand_in::{Reply, Request, StandIn, answer, as_expected};
use crate::support::{
    TALEA, assert_ends, interrupt, printed_json as summary, start, stdout, talea, until,
};

/// A load of the CRUD sequence.
fn load(url: &str, clients: u64, iterations: u64, more: &[&str]) -> Output {
    let sizes = [clients.to_string(), iterations.to_string()];
    let sizes = ["load", url, "--clients", &sizes[0], "--iterations", &sizes[1], "--json"];
    let scenario = if more.contains(&"--scenario") { &[][..] } else { &["--scenario", "crud"] };
    talea([&sizes[..], scenario, more].concat())
}

#[test]
fn every_request_is_sent_once_over_one_connection_a_client_and_counted_by_status() {
    let server = StandIn::well_behaved();
    let output = load(&server.url(), 7, 3, &[]);
    let summary = summary(&output);
    assert_eq!(output.status.code(), Some(0), "{summary}");
    assert_eq!(server.requests(), 7 * 3 * 5);
    for (name, expected) in [
        ("requests_sent", json!(105)),
        ("answers", json!(105)),
        ("failed", json!(0)),
        ("answers_by_status", json!({"200": 63, "201": 21, "204": 21})),
        ("connections", json!(7)),
        ("reconnects", json!(0)),
    ] {
        assert_eq!(summary[name], expected, "{name}");
    }
    // One more looks whether the target is there.
    assert_eq!(server.connections(), 8);
    for phase in ["client", "connect", "head"] {
        let [p50, p99] = ["p50", "p99"].map(|of| summary[format!("{phase}_{of}_ms")].as_f64());
        assert!(Some(0.0) < p50 && p50 <= p99, "{phase}: {summary}");
    }
    assert!(summary["head_p50_ms"].as_f64() <= summary["client_p50_ms"].as_f64());
    assert!(summary["bytes_received"].as_u64().unwrap() > 0);
}

#[test]
fn a_load_that_is_over_at_once_is_not_said_to_be_limited() {
    let server = StandIn::well_behaved();
    let one = ["--clients", "1", "--iterations", "1"];
    let none = ["--rate", "0.001", "--for", "1ms", "--poisson"];
    for (arguments, requests) in [(&one[..], 5), (&none, 0)] {
        let url = server.url();
        let summary =
            summary(&talea([&["load", &url, "--json", "--scenario", "crud"], arguments].concat()));
        assert_eq!(summary["requests_sent"], requests, "{summary}");
        assert!(summary["limits"].as_array().unwrap().is_empty(), "{summary}");
        assert!(summary["generator_cores"].as_f64().unwrap() < 1000.0, "{summary}");
    }
}

#[test]
fn the_summary_is_also_for_people() {
    let server = StandIn::well_behaved();
    let output = talea(["load", &server.url(), "--scenario=crud", "--clients=2", "--iterations=1"]);
    let text = stdout(&output);
    assert!(text.contains("requests sent  10 of 10"), "{text}");
    assert!(text.contains("200: 6, 201: 2, 204: 2"), "{text}");
    for step in ["create", "list", "get", "update", "delete"] {
        let line = text.lines().find(|line| line.trim_start().starts_with(step)).expect(step);
        assert!(line.contains(" 2 responses, 0 failed, p50 "), "{text}");
    }
}

#[test]
fn a_load_passes_or_fails_by_its_conditions() {
    let server = StandIn::well_behaved();
    for (conditions, status, messages) in [
        (&["p50 > 0us"][..], 1, &["FAILED: p50 > 0us: found"][..]),
        (&["p50 > 60s"], 0, &["passed: p50 > 60s: found"]),
        (&["rate < 0.001"], 0, &["passed: rate < 0.001: found"]),
        (&["failed > 0"], 0, &["passed: failed > 0: found 0"]),
        (&["p99 > 1.1x"], 2, &["needs something to compare with; give a limit"]),
        (
            &["list: p99.5 > 60s", "create: failed > 0%"],
            0,
            &["list: p99.5 > 60s: found", "found 0 %"],
        ),
        (&["list: rate > 0"], 1, &["FAILED: list: rate > 0: found"]),
        (&["A: p99 > 1s"], 2, &["names no case or step; there are the steps create, list"]),
        (&["checks < 99%"], 2, &["this was not measured"]),
        (
            &["p50 > 60s", "checks < 99%"],
            2,
            &["passed: p50 > 60s: found", "--fail-if checks < 99%: there is no such case"],
        ),
        (&["cpu > 1us"], 2, &["cpu > 1us needs the service's metrics", "talea study"]),
    ] {
        let options: Vec<_> = conditions.iter().flat_map(|one| ["--fail-if", one]).collect();
        assert_ends(&load(&server.url(), 2, 3, &options), status, messages);
    }
}

#[test]
fn a_live_page_at_an_address_that_is_taken_is_one_clear_line() {
    let server = StandIn::well_behaved();
    let live = format!("--live={}", server.address);
    let output = load(&server.url(), 1, 1, &[&live]);
    let words = format!("error: --live: cannot listen on {}: ", server.address);
    let stderr = assert_ends(&output, 2, &[&words]);
    assert_eq!((stderr.lines().count(), server.requests()), (1, 0), "{stderr}");
}

#[test]
fn http2_against_a_server_without_it_says_so() {
    let server = StandIn::well_behaved();
    let output = load(&server.url(), 2, 1, &["--http2"]);
    let summary = summary(&output);
    assert_eq!(output.status.code(), Some(1), "{summary}");
    let limits = summary["limits"].to_string();
    assert!(limits.contains("no response over HTTP/2"), "{summary}");
    assert!(limits.contains("leave --http2 out"), "{summary}");
}

#[test]
fn a_request_that_is_answered_500_is_counted_and_not_sent_again() {
    let server = StandIn::start(|_| Reply::Answer(500, "{}".to_owned()));
    let output = load(&server.url(), 2, 3, &[]);
    let summary = summary(&output);
    assert_eq!(output.status.code(), Some(1));
    // Create and list go out; get, update and delete have no item.
    assert_eq!(server.requests(), 12);
    assert_eq!(summary["requests_sent"], 12);
    assert_eq!(summary["requests_not_sent"], 18);
    assert_eq!(summary["answers_by_status"], serde_json::json!({"500": 12}));
    assert_eq!(summary["failed"], 30);
    let kinds = summary["failures"].to_string();
    assert!(kinds.contains("create: 500 Internal Server Error, expected 201 Created"), "{kinds}");
    assert!(kinds.contains("delete: not sent: there is no {id}"), "{kinds}");
    let steps = summary["steps"].as_array().unwrap();
    let counts = steps.iter().map(|step| (&step["name"], &step["answers"], &step["failed"]));
    let expected = [("create", 6), ("list", 6), ("get", 0), ("update", 0), ("delete", 0)]
        .map(|(name, answers)| serde_json::json!([name, answers, 6]));
    let found: Vec<_> = counts.map(|counts| serde_json::json!(counts)).collect();
    assert_eq!(found, expected);
    assert!(steps[0]["p99_ms"].is_number() && steps[2]["p99_ms"].is_null(), "{summary}");
}

#[test]
fn a_request_that_fails_is_counted_by_how_it_failed() {
    let no_id = |request: &Request| match request.method.as_str() {
        "POST" => Reply::Answer(201, "{}".to_owned()),
        _ => Reply::Answer(200, "{}".to_owned()),
    };
    for (reply, clients, more, answers, failed, kind) in [
        (
            no_id as fn(&Request) -> Reply,
            1,
            &[][..],
            2,
            4,
            "create: nothing at /data/id in the response for {id}",
        ),
        (|_| Reply::Close, 1, &[], 0, 5, "create: the connection was closed before the response"),
        (
            |_| Reply::HalfABody,
            1,
            &[],
            0,
            5,
            "the connection was closed in the body of the response",
        ),
        (|_| Reply::BadChunk, 1, &[], 0, 5, "create: the response was not HTTP"),
        (|_| Reply::Silence, 2, &["--timeout", "150ms"], 0, 10, "create: no response in time"),
    ] {
        let server = StandIn::start(reply);
        let output = load(&server.url(), clients, 1, more);
        let summary = summary(&output);
        assert_eq!(output.status.code(), Some(1), "{kind}: {summary}");
        // Create and list go out.
        assert_eq!(server.requests(), 2 * clients, "{kind}");
        for (name, expected) in
            [("requests_sent", 2 * clients), ("answers", answers), ("failed", failed)]
        {
            assert_eq!(summary[name], expected, "{kind}: {summary}");
        }
        let is_timeout = kind.ends_with("no response in time");
        assert_eq!(summary["client_p50_ms"].is_null(), answers == 0 && !is_timeout, "{kind}");
        assert!(summary["failures"].to_string().contains(kind), "{kind}: {summary}");
        // Without answers, each client waits for two.
        let least = if more.is_empty() { 0.0 } else { 0.3 };
        assert!(summary["client_seconds"].as_f64() >= Some(least), "{kind}: {summary}");
    }
}

#[test]
fn a_connection_that_the_server_closes_is_replaced_and_the_reconnect_counted() {
    let server = StandIn::start(|request| {
        let (status, body) = as_expected(request);
        Reply::AnswerAndClose(status, body)
    });
    let output = load(&server.url(), 3, 4, &[]);
    let summary = summary(&output);
    assert_eq!(output.status.code(), Some(0), "{summary}");
    assert_eq!(server.requests(), 60);
    for (name, expected) in
        [("requests_sent", 60), ("failed", 0), ("connections", 60), ("reconnects", 57)]
    {
        assert_eq!(summary[name], expected, "{name}");
    }
}

#[test]
fn a_connection_that_vanishes_between_requests_loses_no_count() {
    let server = StandIn::start(|request| {
        let (status, body) = as_expected(request);
        Reply::AnswerAndVanish(status, body)
    });
    let summary = summary(&load(&server.url(), 3, 4, &[]));
    let count = |name: &str| summary[name].as_u64().unwrap();
    // A request may meet the closing connection: then it was sent, failed, and not received.
    assert_eq!(count("answers"), server.requests());
    assert_eq!(count("requests_sent") + count("requests_not_sent"), 60);
    assert_eq!(count("failed"), 60 - count("answers"));
}

#[test]
fn a_target_that_is_not_there_is_named_with_what_to_do() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{free}/api/items");
    assert_ends(&load(&url, 1, 1, &[]), 2, &[&url, "start the service"]);
}

/// A load, in a shell with a limit of descriptors.
fn load_with_limit(server: &StandIn, limit: &str, clients: u64) -> Output {
    let url = server.url();
    let load = format!("exec {TALEA} load {url} --scenario crud -c {clients} -m 1");
    Command::new("sh").args(["-c", &format!("ulimit {limit}; {load}")]).output().unwrap()
}

#[test]
fn more_clients_than_descriptors_are_refused_before_anything_is_sent() {
    let server = StandIn::well_behaved();
    assert_ends(&load_with_limit(&server, "-n 200", 500), 2, &["200", "ulimit -n 564"]);
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_low_soft_limit_is_raised() {
    let server = StandIn::well_behaved();
    assert_ends(&load_with_limit(&server, "-Sn 64", 80), 0, &[]);
    assert_eq!(server.requests(), 400);
}

const CLOSED: [&str; 4] = ["--clients", "3", "--iterations", "9"];
const OPEN: [&str; 4] = ["--rate", "100", "--for", "60s"];

/// A load that gets no answer, interrupted once so many have asked.
fn interrupted_load(plan: &[&str], requests: u64, more: &[&str]) -> Output {
    interrupted_load_of(StandIn::start(|_| Reply::Silence), plan, requests, more)
}

fn interrupted_load_of(server: StandIn, plan: &[&str], requests: u64, more: &[&str]) -> Output {
    let child = start([&["load", &server.url(), "--scenario", "crud"], plan, more].concat());
    until("as many requests", || server.requests() >= requests);
    interrupt(&child);
    child.wait_with_output().unwrap()
}

#[test]
fn ctrl_c_in_the_first_of_several_rounds_prints_that_round_alone() {
    let output = interrupted_load(&CLOSED, 3, &["--rounds", "2"]);
    assert_ends(&output, 130, &[]);
    let text = stdout(&output);
    assert!(text.starts_with("round 1\n") && !text.contains("over 1 round"), "{text}");
}

#[test]
fn a_round_that_ctrl_c_cut_short_is_shown_and_not_in_the_means() {
    let plan = ["--clients=1", "--iterations=2", "--rounds=9", "--json"];
    let server = StandIn::counting(
        |_| String::new(),
        |number, request| match number {
            0..20 => answer(request),
            _ => Reply::Silence,
        },
    );
    let output = interrupted_load_of(server, &plan, 21, &[]);
    assert_ends(&output, 130, &[]);
    let summary = summary(&output);
    let rounds = summary["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), 3, "{summary}");
    assert_eq!(rounds[2]["interrupted"], true, "{summary}");
    let [first, second] = [0, 1].map(|round: usize| rounds[round]["mean_rate"].as_f64().unwrap());
    let mean = summary["mean_rate"]["mean"].as_f64().unwrap();
    assert!((mean / ((first + second) / 2.0) - 1.0).abs() < 1e-9, "{summary}");
}

#[test]
fn ctrl_c_while_warming_up_ends_without_a_summary_or_an_error() {
    let output = interrupted_load(&CLOSED, 3, &["--warm-up", "60s", "--fail-if", "p99 > 50ms"]);
    let stderr = assert_ends(&output, 130, &[]);
    assert!(output.stdout.is_empty(), "{output:?}");
    assert!(stderr.ends_with("stopped before a request was counted\n"), "{stderr}");
}

/// Nor is it a failure of a condition that has no number yet.
#[test]
fn ctrl_c_ends_a_load_and_counts_what_was_under_way() {
    let json = &["--json", "--fail-if", "p99 > 50ms"];
    for (plan, requests, more) in
        [(CLOSED, 3, &json[..1]), (CLOSED, 3, json), (OPEN, 20, &json[..1])]
    {
        let output = interrupted_load(&plan, requests, more);
        assert_ends(&output, 130, &[]);
        let summary = summary(&output);
        assert_eq!(summary["interrupted"], true, "{plan:?}, {more:?}");
        assert_eq!(summary["requests_sent"], summary["unanswered"], "{plan:?}, {more:?}");
        let sent = summary["requests_sent"].as_u64().unwrap();
        assert!(if plan == CLOSED { sent == 3 } else { sent >= requests }, "{plan:?}: {summary}");
    }
}

#[test]
fn a_dry_run_sends_each_request_once_and_shows_it_with_its_response() {
    let server = StandIn::well_behaved();
    let output = talea(["load", &server.url(), "--dry-run", "--scenario", "crud"]);
    let shown = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert_eq!(server.requests(), 5);
    for part in [
        "> POST /",
        "< 201 Created, ",
        "> GET /",
        "< 200 OK, ",
        "> DELETE /",
        "< 204 No Content, 0 bytes",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn a_dry_run_shows_no_credentials() {
    let server = StandIn::start(|_| Reply::Answer(200, "{}".to_owned()));
    let header = "Authorization: Bearer hidden";
    let output = talea(["load", &server.url(), "--dry-run", "-H", header, "-H", "X-Tenant: shown"]);
    let shown = stdout(&output);
    assert!(shown.contains("> authorization: …\n") && !shown.contains("hidden"), "{shown}");
    assert!(shown.contains("> x-tenant: shown\n"), "{shown}");
}

#[test]
fn a_dry_run_says_what_fails_and_goes_on() {
    let server = StandIn::start(|_| Reply::Answer(200, "\u{1b}[2J{}".to_owned()));
    let output = talea(["load", &server.url(), "--dry-run", "--scenario", "crud"]);
    let shown = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("failed: create: 200 OK, expected 201 Created"), "{shown}");
    assert!(shown.contains("failed: delete: not sent: there is no {id}"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown}");
}

#[test]
fn results_are_written_for_other_programs() {
    let server = StandIn::start(|request| match request.method.as_str() {
        "DELETE" => Reply::Answer(500, String::new()),
        _ => answer(request),
    });
    let folder = tempfile::tempdir().unwrap();
    let [csv, junit, markdown] = ["a.csv", "b.xml", "c.md"].map(|name| folder.path().join(name));
    std::fs::write(&markdown, "before\n").unwrap();
    let file =
        |format: &str, path: &std::path::Path| format!("--result={format}={}", path.display());
    let arguments = [
        file("csv", &csv),
        file("junit", &junit),
        file("markdown", &markdown),
        "--fail-if=p99 > 60s".to_owned(),
        "--fail-if=delete: failed > 50%".to_owned(),
        "--quiet".to_owned(),
    ];
    let output = load(&server.url(), 1, 2, &arguments.each_ref().map(String::as_str));
    let stderr = assert_ends(&output, 1, &["FAILED: delete: failed > 50%: found 100 %"]);
    assert_eq!(stderr.lines().count(), 1, "no condition that passed: {stderr}");
    let read = |path| std::fs::read_to_string(path).unwrap();
    let rows = read(&csv);
    assert_eq!(rows.lines().count(), 1 + 6, "{rows}");
    assert!(rows.starts_with("name,step,requests,failed,rate,mean_ms"), "{rows}");
    assert!(rows.contains("round 1,,10,2,") && rows.contains("round 1,delete,2,2,,"), "{rows}");
    let xml = read(&junit);
    for part in [
        "tests=\"3\" failures=\"2\" errors=\"0\"",
        "name=\"p99 &gt; 60s: found ",
        "<failure message=\"2 of 10 requests failed\"/>",
        "<failure message=\"delete: failed &gt; 50%: found 100 %\"/>",
    ] {
        assert!(xml.contains(part), "{part}: {xml}");
    }
    let summary = read(&markdown);
    assert!(summary.starts_with("before\n### http://"), "{summary}");
    assert!(summary.contains("❌ **FAILED** delete: failed"), "{summary}");
    assert!(summary.contains("| round 1 | delete | 2 | 2 | "), "{summary}");
}

#[test]
fn a_load_whose_results_cannot_be_written_does_not_begin() {
    let server = StandIn::well_behaved();
    let output = load(&server.url(), 1, 1, &["--result", "csv=/no/such/folder/a.csv"]);
    assert_ends(&output, 2, &["the results cannot be written to /no/such/folder/a.csv"]);
    assert_eq!(server.requests(), 0);
}
