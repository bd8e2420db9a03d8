//! `talea study` against services that fail in every way: the numbers of requests sent, received
//! and shown are equal.

use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::items_api::{ItemsApi, LISTED};
use crate::support::stand_in::{Reply, StandIn, answer, as_expected};
use crate::support::study_output::StudyOutput;
use crate::support::{assert_ends, json_file, sample, start, stdout, until};

/// A service that counts the requests it receives, reports the count, and answers every request by
/// its number.
fn service(reply: impl Fn(u64, u16, String) -> Reply + Send + Sync + 'static) -> StandIn {
    StandIn::counting(
        |received| format!("http_requests_total {received}\n"),
        move |number, request| {
            let (status, body) = as_expected(request);
            reply(number, status, body)
        },
    )
}

fn study(service: &StandIn, cases: &str, more: &[&str]) -> StudyOutput {
    StudyOutput::of(&service.url(), &service.metrics_url(), cases, more)
}

/// A number below a million as a report has it: `12,345`.
fn whole(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", number / 1000, number % 1000),
    }
}

/// Closed for some iterations, closed for a time, open.
const MODELS: &str = "4x10,3x400ms,150/s:400ms";

/// Each way to fail, with what is expected of the exit status.
fn exact_in_every_model(
    reply: impl Fn(u64, u16, String) -> Reply + Send + Sync + 'static,
    more: &[&str],
    status: i32,
) -> StudyOutput {
    let service = service(reply);
    let studied = study(&service, MODELS, more);
    let sent = studied.sum(|case| case["client"]["requests_sent"].as_u64().unwrap());
    assert_eq!(sent, service.requests(), "{}", studied.table);
    for case in studied.report["cases"].as_array().unwrap() {
        let (client, server) = (&case["client"], &case["server"]);
        assert_eq!(client["requests_sent"], server["requests_received"], "{case}");
        assert!(case["disagreement"].is_null());
        // Every request has an answer or a failure of its own, or both.
        let answers = client["answers_by_status"].as_object().unwrap().values();
        let answers: u64 = answers.filter_map(Value::as_u64).sum();
        let kinds = client["failures"].as_array().unwrap().iter();
        let failed: u64 = kinds.map(|kind| kind["count"].as_u64().unwrap()).sum();
        assert_eq!(client["failed"], failed);
        let [sent, not_sent] =
            ["requests_sent", "requests_not_sent"].map(|name| client[name].as_u64().unwrap());
        assert!(answers <= sent && sent + not_sent <= answers + failed, "{client}");
        // The report shows the findings.
        for shown in [sent, failed] {
            assert!(studied.table.contains(&whole(shown)), "{shown} in {}", studied.table);
            assert!(studied.page.contains(&whole(shown)), "{shown} in the page");
        }
        let heat = client["times"]["heat"]["counts"].as_array().unwrap().iter();
        let slices = heat.flat_map(|slice| slice.as_array().unwrap());
        let shown: u64 = slices.map(|count| count.as_u64().unwrap()).sum();
        let censored = client["requests_censored"].as_u64().unwrap();
        assert_eq!(shown, answers + censored, "the heat map has every request that has a time");
    }
    let failed = studied.sum(|case| case["client"]["failed"].as_u64().unwrap());
    assert_eq!((studied.status, failed > 0), (status, status == 1), "{}", studied.table);
    studied
}

#[test]
fn every_request_of_a_service_that_does_well_or_fails_in_some_way_is_counted() {
    type Behaviour = fn(u64, u16, String) -> Reply;
    let behaviours: [(Behaviour, &[&str], i32); 6] = [
        (|_, status, body| Reply::Answer(status, body), &[], 0),
        (
            |_, status, body| {
                std::thread::sleep(Duration::from_millis(15));
                Reply::Answer(status, body)
            },
            &[],
            0,
        ),
        (
            |number, status, body| match number % 7 {
                3 => Reply::Answer(500, String::new()),
                _ => Reply::Answer(status, body),
            },
            &[],
            1,
        ),
        (
            |number, status, body| match number % 9 {
                2 => Reply::Close,
                4 => Reply::HalfABody,
                8 => Reply::AnswerAndClose(status, body),
                _ => Reply::Answer(status, body),
            },
            &[],
            1,
        ),
        (
            |number, status, body| match number % 11 {
                5 => Reply::Silence,
                _ => Reply::Answer(status, body),
            },
            &["--timeout", "200ms"],
            1,
        ),
        (
            |number, status, body| match number % 5 {
                3 => Reply::Close,
                _ => Reply::AnswerAndClose(status, body),
            },
            &["--no-keep-alive"],
            1,
        ),
    ];
    let studied = behaviours.map(|(reply, more, status)| exact_in_every_model(reply, more, status));
    assert!(studied[2].page.contains("500 Internal Server Error"), "the kind is named");
}

#[test]
fn requests_that_meet_a_connection_that_is_gone_are_shown_to_be_lost() {
    // It closes without notice: a request that meets this is not received.
    let service = service(|number, status, body| match number % 6 {
        5 => Reply::AnswerAndVanish(status, body),
        _ => Reply::Answer(status, body),
    });
    let studied = study(&service, "4x50", &[]);
    let case = &studied.report["cases"][0];
    let sent = case["client"]["requests_sent"].as_u64().unwrap();
    let received = case["server"]["requests_received"].as_u64().unwrap();
    assert_eq!(received, service.requests());
    let failures = case["client"]["failures"].as_array().unwrap().iter();
    let lost = failures.filter(|kind| {
        let kind = kind["kind"].as_str().unwrap();
        !kind.contains("not sent") && !kind.contains("expected")
    });
    let lost: u64 = lost.map(|kind| kind["count"].as_u64().unwrap()).sum();
    assert_eq!(sent - received, lost, "{}", studied.table);
    match lost {
        0 => assert!(case["disagreement"].is_null()),
        _ => assert!(studied.table.contains(&format!("{} fewer than were sent", whole(lost)))),
    }
}

#[test]
fn metrics_that_are_wrong_are_shown_to_disagree() {
    // It forgets one of ten.
    let service = StandIn::counting(
        |count| format!("http_requests_total {}\n", count - count / 10),
        |_, request| answer(request),
    );
    let studied = study(&service, "5x20", &[]);
    let words = "The clients sent 500 requests, the server counted 450: 50 fewer than were sent.";
    assert_eq!(studied.status, 1);
    assert_eq!(studied.report["cases"][0]["disagreement"], words);
    assert!(studied.table.contains(words) && studied.page.contains(words), "{}", studied.table);
}

/// A study of the real service, whose process ends by SIGKILL once it has served some requests.
/// It is started anew where that is asked for.
fn study_of_a_killed_service(case: &str, has_metrics: bool, starts_again: bool) -> (Output, Value) {
    let mut service = ItemsApi::start(None);
    let started = Instant::now();
    let (items, metrics) = (service.items.clone(), service.metrics.clone());
    let folder = tempfile::tempdir().unwrap();
    let (url, out) = (format!("http://{items}/api/items"), folder.path().to_str().unwrap());
    let mut arguments = vec!["study", "--cases", case, "--url", &url, "--out", out];
    arguments.extend(["--scenario", "crud"]);
    let metrics_url = format!("--metrics-url=http://{metrics}/metrics");
    arguments.extend(has_metrics.then_some(&*metrics_url));
    let study = start(&arguments);
    // A study distinguishes two processes by their start times only if these differ by half a second.
    until("the service has served some, and is a second old", || {
        let listed = sample(&service.scrape(), LISTED);
        listed.is_some_and(|listed: u64| listed > 50) && started.elapsed() > Duration::from_secs(1)
    });
    service.kill();
    let _second = starts_again.then(|| ItemsApi::start_at(&items, &metrics, None, &[]));
    let output = study.wait_with_output().unwrap();
    assert_ends(&output, 1, &[]);
    (output, json_file(&folder.path().join("report.json"))["cases"][0].take())
}

#[test]
fn a_service_that_refuses_connections_in_the_middle_is_reported() {
    let (output, case) = study_of_a_killed_service("4x1500ms", false, false);
    assert!(stdout(&output).contains("refused"), "{}", stdout(&output));
    let client = &case["client"];
    assert!(client["requests_not_sent"].as_u64().unwrap() > 0, "{client}");
    assert!(client["answers_by_status"]["200"].as_u64().unwrap() > 0, "{client}");
    assert!(case["server"].is_null(), "it has no metrics");
}

#[test]
fn a_service_that_is_killed_and_restarted_is_counted_on_and_reported() {
    let (output, case) = study_of_a_killed_service("4x3s", true, true);
    let (client, server) = (&case["client"], &case["server"]);
    assert_eq!(server["restarts"], 1, "{server}");
    let (sent, received) =
        (client["requests_sent"].as_u64().unwrap(), server["requests_received"].as_u64().unwrap());
    // The counts of the first process since the last sample of it are lost, and no more: the rest
    // is counted once.
    assert!(received <= sent && received > 0, "{received} of {sent}");
    assert!(client["failed"].as_u64().unwrap() > 0, "{client}");
    if received < sent {
        assert!(stdout(&output).contains("It restarted 1 time meanwhile"), "{output:?}");
    }
}
