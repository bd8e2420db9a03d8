//! `talea load`: the real program against a server that counts.

use std::process::{Command, Output, Stdio};

use crate::support::stand_in::{Reply, StandIn, as_expected};
use crate::support::{TALEA, interrupt, printed_json as summary, stderr, until};

fn load(url: &str, clients: u64, iterations: u64, more: &[&str]) -> Output {
    let sizes = [clients.to_string(), iterations.to_string()];
    Command::new(TALEA)
        .args(["load", url, "--clients", &sizes[0], "--iterations", &sizes[1], "--json"])
        .args(more)
        .output()
        .unwrap()
}

#[test]
fn every_request_is_sent_once_over_one_connection_a_client_and_counted_by_status() {
    let server = StandIn::well_behaved();
    let output = load(&server.url(), 7, 3, &[]);
    let summary = summary(&output);
    assert_eq!(output.status.code(), Some(0), "{summary}");
    assert_eq!(server.requests(), 7 * 3 * 5);
    assert_eq!(summary["requests_sent"], 105);
    assert_eq!(summary["answers"], 105);
    assert_eq!(summary["failed"], 0);
    assert_eq!(summary["answers_by_status"], serde_json::json!({"200": 63, "201": 21, "204": 21}));
    assert_eq!((&summary["connections"], &summary["reconnects"]), (&7.into(), &0.into()));
    // One more looks whether the target is there.
    assert_eq!(server.connections(), 8);
    assert!(summary["client_p50_ms"].as_f64().unwrap() > 0.0);
    assert!(summary["client_p99_ms"].as_f64() >= summary["client_p50_ms"].as_f64());
}

#[test]
fn a_load_that_is_over_at_once_is_not_said_to_be_limited() {
    let server = StandIn::well_behaved();
    let one = ["--clients", "1", "--iterations", "1"];
    let none = ["--rate", "0.001", "--for", "1ms", "--poisson"];
    for (arguments, requests) in [(&one[..], 5), (&none, 0)] {
        let mut command = Command::new(TALEA);
        let output = command.args(["load", &server.url(), "--json"]).args(arguments).output();
        let summary = summary(&output.unwrap());
        assert_eq!(summary["requests_sent"], requests, "{summary}");
        assert!(summary["limits"].as_array().unwrap().is_empty(), "{summary}");
        assert!(summary["generator_cores"].as_f64().unwrap() < 1000.0, "{summary}");
    }
}

#[test]
fn the_summary_is_also_for_people() {
    let server = StandIn::well_behaved();
    let output = Command::new(TALEA)
        .args(["load", &server.url(), "--clients", "2", "--iterations", "1"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("requests sent  10 of 10"), "{text}");
    assert!(text.contains("200: 6, 201: 2, 204: 2"), "{text}");
    for step in ["create", "list", "get", "update", "delete"] {
        let line = text.lines().find(|line| line.trim_start().starts_with(step)).expect(step);
        assert!(line.contains(" 2 answered, 0 failed, p50 "), "{text}");
    }
}

#[test]
fn a_load_fails_where_its_condition_holds() {
    let server = StandIn::well_behaved();
    for (condition, status, message) in [
        ("p50 > 0us", 1, "FAILED: p50 > 0us holds"),
        ("p50 > 60s", 0, "p50 > 60s is not shown"),
        ("rate < 0.001", 0, "rate < 0.001 is not shown"),
        ("failed > 0", 0, "failed > 0 is not shown: 0"),
        ("p99 > 1.1x", 2, "there is nothing to compare with: give a limit"),
        ("A: p99 > 1s", 2, "no such case"),
        ("cpu > 1us", 2, "no number of it"),
    ] {
        let output = load(&server.url(), 2, 3, &["--fail-if", condition]);
        assert_eq!(output.status.code(), Some(status), "{condition}: {}", stderr(&output));
        assert!(stderr(&output).contains(message), "{condition}: {}", stderr(&output));
    }
}

#[test]
fn a_condition_about_nothing_is_an_error_also_beside_another() {
    let server = StandIn::well_behaved();
    let conditions = ["--fail-if", "p50 > 60s", "--fail-if", "cpu > 1us"];
    let output = load(&server.url(), 1, 1, &conditions);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("p50 > 60s is not shown"), "{text}");
    assert!(text.contains("--fail-if cpu > 1us is about nothing that there is"), "{text}");
}

#[test]
fn a_time_beyond_all_clocks_is_refused() {
    for option in ["--for", "--timeout", "--warm-up"] {
        let output = Command::new(TALEA)
            .args(["load", "http://127.0.0.1:1", "--clients", "1", option, "500000000000y"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{option}: {}", stderr(&output));
        assert!(stderr(&output).contains("more than 100 years"), "{}", stderr(&output));
    }
}

#[test]
fn connecting_the_head_and_the_body_are_measured_apart() {
    let server = StandIn::well_behaved();
    let summary = summary(&load(&server.url(), 3, 5, &[]));
    let ms = |name: &str| summary[name].as_f64().unwrap();
    assert!(0.0 < ms("connect_p50_ms") && ms("connect_p50_ms") <= ms("connect_p99_ms"));
    assert!(0.0 < ms("head_p50_ms") && ms("head_p50_ms") <= ms("head_p99_ms"));
    assert!(ms("head_p50_ms") <= ms("client_p50_ms"));
    assert!(summary["bytes_received"].as_u64().unwrap() > 0);
}

#[test]
fn http2_against_a_server_without_it_says_so() {
    let server = StandIn::well_behaved();
    let output = load(&server.url(), 2, 1, &["--http2"]);
    let summary = summary(&output);
    assert_eq!(output.status.code(), Some(1), "{summary}");
    let limits = summary["limits"].to_string();
    assert!(limits.contains("nothing was answered over HTTP/2"), "{summary}");
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
fn a_create_without_an_id_fails_and_leaves_the_rest_unsent() {
    let server = StandIn::start(|request| match request.method.as_str() {
        "POST" => Reply::Answer(201, "{}".to_owned()),
        _ => Reply::Answer(200, "{}".to_owned()),
    });
    let summary = summary(&load(&server.url(), 1, 1, &[]));
    assert_eq!(summary["requests_sent"], 2);
    assert_eq!(summary["failed"], 4);
    assert!(
        summary["failures"]
            .to_string()
            .contains("create: nothing at /data/id of the answer for {id}")
    );
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
    assert_eq!(summary["requests_sent"], 60);
    assert_eq!(summary["failed"], 0);
    assert_eq!(summary["connections"], 60);
    assert_eq!(summary["reconnects"], 57);
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
fn a_connection_closed_instead_of_an_answer_is_a_failure_with_that_name() {
    let server = StandIn::start(|_| Reply::Close);
    let output = load(&server.url(), 1, 1, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(server.requests(), 2);
    let summary = summary(&output);
    assert_eq!(summary["requests_sent"], 2);
    assert_eq!(summary["answers"], 0);
    assert!(summary["client_p50_ms"].is_null());
    let kinds = summary["failures"].to_string();
    assert!(kinds.contains("create: the connection was closed before the answer"), "{kinds}");
}

#[test]
fn half_a_body_is_a_failure_with_that_name() {
    let server = StandIn::start(|_| Reply::HalfABody);
    let summary = summary(&load(&server.url(), 1, 1, &[]));
    assert_eq!(summary["answers"], 0);
    let kinds = summary["failures"].to_string();
    assert!(kinds.contains("the connection was closed in the answer's body"), "{kinds}");
}

#[test]
fn a_chunk_without_a_length_is_not_http() {
    let server = StandIn::start(|_| Reply::BadChunk);
    let summary = summary(&load(&server.url(), 1, 1, &[]));
    assert_eq!(summary["answers"], 0);
    let kinds = summary["failures"].to_string();
    assert!(kinds.contains("create: the answer was not HTTP"), "{kinds}");
}

#[test]
fn an_answer_that_does_not_come_in_time_is_a_failure() {
    let server = StandIn::start(|_| Reply::Silence);
    let output = load(&server.url(), 2, 1, &["--timeout", "150ms"]);
    assert_eq!(output.status.code(), Some(1));
    let summary = summary(&output);
    assert_eq!(summary["requests_sent"], 4);
    assert_eq!(server.requests(), 4);
    assert!(summary["failures"].to_string().contains("create: no answer in time"));
    assert!(summary["client_seconds"].as_f64().unwrap() >= 0.3);
}

#[test]
fn a_target_that_is_not_there_is_named_with_what_to_do() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{free}/api/items");
    let output = load(&url, 1, 1, &[]);
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(text.contains(&url) && text.contains("start the service"), "{text}");
}

#[test]
fn wrong_usage_is_refused_with_status_2() {
    assert_eq!(load("http://127.0.0.1:1/items", 0, 1, &[]).status.code(), Some(2));
    let output = load("ftp://127.0.0.1/items", 1, 1, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("http and https are spoken"));
}

#[cfg(unix)]
#[test]
fn more_clients_than_descriptors_are_refused_before_anything_is_sent() {
    let server = StandIn::well_behaved();
    let script =
        format!("ulimit -n 200; exec {TALEA} load {} --clients 500 --iterations 1", server.url());
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(text.contains("200") && text.contains("ulimit -n 564"), "{text}");
    assert_eq!(server.connections(), 0);
}

#[cfg(unix)]
#[test]
fn a_low_soft_limit_is_raised() {
    let server = StandIn::well_behaved();
    let script =
        format!("ulimit -Sn 64; exec {TALEA} load {} --clients 80 --iterations 1", server.url());
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(server.requests(), 400);
}

/// A load of three clients that get no answer, interrupted once all have asked.
#[cfg(unix)]
fn interrupted_load(more: &[&str]) -> Output {
    let server = StandIn::start(|_| Reply::Silence);
    let child = Command::new(TALEA)
        .args(["load", &server.url(), "--clients", "3", "--iterations", "9", "--json"])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("three requests", || server.requests() >= 3);
    interrupt(&child);
    child.wait_with_output().unwrap()
}

#[cfg(unix)]
#[test]
fn ctrl_c_while_warming_up_ends_without_a_summary_or_an_error() {
    let output = interrupted_load(&["--warm-up", "60s", "--fail-if", "p99 > 50ms"]);
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(output.stdout.is_empty(), "{output:?}");
    assert!(stderr(&output).ends_with("stopped before a request was counted\n"), "{output:?}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_is_no_failure_of_a_condition_that_has_no_number_yet() {
    let output = interrupted_load(&["--fail-if", "p99 > 50ms"]);
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_eq!(summary(&output)["unanswered"], 3);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_load_and_counts_what_was_under_way() {
    let output = interrupted_load(&[]);
    assert_eq!(output.status.code(), Some(130));
    let summary = summary(&output);
    assert_eq!(summary["interrupted"], true);
    assert_eq!(summary["requests_sent"], 3);
    assert_eq!(summary["unanswered"], 3);
}
