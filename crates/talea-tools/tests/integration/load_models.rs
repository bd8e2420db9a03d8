//! `talea load`: models, protocols and scenarios, against a real server that counts.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use serde_json::Value;

use crate::support::counting_server::{Certificate, Server, text};
use crate::support::{
    HELLO_SCENARIO as HELLO, assert_ends, printed_json as summary, sample_file, talea,
};

fn load(url: &str, arguments: &[&str]) -> Output {
    talea([&["load", url, "--json"], arguments].concat())
}

fn scenario(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("scenario.toml");
    std::fs::write(&path, text).unwrap();
    path
}

/// A server that says hello, and a scenario that asks for it.
struct Hello {
    server: Server,
    folder: tempfile::TempDir,
    url: String,
    scenario: String,
}

impl Hello {
    fn new(certificate: Option<&Certificate>) -> Self {
        let server = Server::start(certificate, async |_| text("hello"));
        let folder = tempfile::tempdir().unwrap();
        let scenario = scenario(folder.path(), HELLO).to_str().unwrap().to_owned();
        let scheme = if certificate.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", server.address);
        Self { server, folder, url, scenario }
    }

    fn load(&self, arguments: &[&str]) -> Output {
        load(&self.url, &[&["--scenario", self.scenario.as_str()], arguments].concat())
    }

    /// The summary of a load of which all went well, and was received.
    fn loaded(&self, arguments: &[&str]) -> Value {
        let before = self.server.requests();
        let output = self.load(arguments);
        let summary = summary(&output);
        assert_eq!(output.status.code(), Some(0), "{summary}");
        let sent = summary["requests_sent"].as_u64().unwrap();
        assert_eq!(self.server.requests() - before, sent, "{summary}");
        assert_eq!(summary["answers"], sent);
        summary
    }
}

#[test]
fn a_url_is_requested_by_get_as_often_as_all_clients_together_are_asked_to() {
    let hello = Hello::new(None);
    for (clients, requests) in [("2", "5"), ("3", "2"), ("1", "1")] {
        let before = hello.server.requests();
        let summary = summary(&load(&hello.url, &["-c", clients, "-n", requests]));
        assert_eq!(summary["requests_sent"].to_string(), requests, "{summary}");
        assert_eq!(summary["answers_by_status"]["200"].to_string(), requests, "{summary}");
        assert_eq!((hello.server.requests() - before).to_string(), requests);
        assert_eq!(summary["scenario"], "GET", "{summary}");
    }
}

#[test]
fn every_protocol_sends_each_request_once() {
    let certificate = Certificate::new();
    let ca = certificate.pem.to_str().unwrap();
    for (tls, arguments, connections, http2) in [
        (false, vec![], 3, false),
        (false, vec!["--no-keep-alive"], 30, false),
        (false, vec!["--http2"], 3, true),
        (true, vec!["--ca", ca], 3, false),
        (true, vec!["--insecure"], 3, false),
        (true, vec!["--ca", ca, "--http2"], 3, true),
        (true, vec!["--insecure", "--no-keep-alive"], 30, false),
    ] {
        let hello = Hello::new(tls.then_some(&certificate));
        let plan = [&["--clients", "3", "--iterations", "10"], arguments.as_slice()].concat();
        let summary = hello.loaded(&plan);
        assert_eq!(summary["requests_sent"], 30, "{arguments:?}");
        assert_eq!(summary["connections"], connections, "{arguments:?}");
        assert_eq!(summary["reconnects"], 0, "{arguments:?}");
        assert_eq!(hello.server.http2(), if http2 { 30 } else { 0 }, "{arguments:?}");
    }
}

#[test]
fn a_certificate_that_signs_itself_as_an_authority_is_trusted_if_it_is_named() {
    let certificate = Certificate::authority("127.0.0.1");
    let hello = Hello::new(Some(&certificate));
    let ca = certificate.pem.to_str().unwrap();
    hello.loaded(&["--clients", "1", "--iterations", "1", "--ca", ca]);
    let dry_run = talea(["load", &hello.url, "--ca", ca, "--dry-run"]);
    assert_ends(&dry_run, 0, &[]);
}

#[test]
fn tls_that_fails_is_said_in_words_with_what_to_do() {
    let [usual, other, elsewhere] = [
        Certificate::new(),
        Certificate::authority("127.0.0.1"),
        Certificate::authority("elsewhere"),
    ];
    for (certificate, ca, parts) in [
        (None, &usual, &["127.0.0.1:", " speaks no TLS; write http:// in the URL"][..]),
        (Some(&usual), &other, &["an issuer that is not trusted", "--ca FILE", "--insecure"]),
        (
            Some(&elsewhere),
            &elsewhere,
            &["is for another name", "a name of the certificate in the URL"],
        ),
        // One authority vouches for no other.
        (Some(&other), &elsewhere, &["--ca FILE", "--insecure"]),
    ] {
        let hello = Hello::new(certificate);
        let url = hello.url.replace("http:", "https:");
        let ca = ca.pem.to_str().unwrap();
        let output = load(&url, &["--clients", "1", "--iterations", "1", "--ca", ca]);
        assert_ends(&output, 2, parts);
        assert_ends(&talea(["check", &url, "--ca", ca]), 2, parts);
        assert_eq!(hello.server.requests(), 0);
    }
}

#[test]
fn a_url_with_http_of_a_port_that_expects_tls_is_said_in_words() {
    const WORDS: &str = "this port expects TLS; write https:// in the URL";
    let hello = Hello::new(Some(&Certificate::new()));
    let url = hello.url.replace("https:", "http:");
    let output = load(&url, &["--clients", "2", "--iterations", "1"]);
    let summary = summary(&output);
    assert_eq!(output.status.code(), Some(1), "{summary}");
    assert_eq!(summary["limits"], serde_json::json!([WORDS]), "{summary}");
    let dry_run = talea(["load", &url, "--dry-run"]);
    assert!(
        String::from_utf8_lossy(&dry_run.stdout).ends_with(&format!("{WORDS}\n")),
        "{dry_run:?}"
    );
    assert_ends(&talea(["check", &url]), 2, &[WORDS]);
}

#[test]
fn even_arrivals_are_sent_at_their_rate() {
    let hello = Hello::new(None);
    let summary = hello.loaded(&["--rate", "200", "--for", "2s"]);
    assert_eq!(summary["requests_sent"], 400);
    assert_eq!(summary["requests_planned"], 400);
    let seconds = summary["client_seconds"].as_f64().unwrap();
    assert!(seconds >= 1.99, "{seconds}");
    let summary = hello.loaded(&["--rate", "100:1s,300:1s"]);
    assert_eq!(summary["requests_sent"], 400);
}

#[test]
fn random_arrivals_are_the_same_for_the_same_seed() {
    let hello = Hello::new(None);
    let sent = |seed: &str| {
        let arguments = ["--rate", "300", "--for", "1s", "--poisson", "--seed", seed];
        hello.loaded(&arguments)["requests_sent"].as_u64().unwrap()
    };
    let (one, two) = (sent("1"), sent("2"));
    assert_eq!(one, sent("1"));
    assert!(one != two && (200..400).contains(&one) && (200..400).contains(&two), "{one} {two}");
}

#[test]
fn clients_go_on_for_a_time() {
    let hello = Hello::new(None);
    let summary = hello.loaded(&["--clients", "4", "--for", "1s"]);
    assert!(summary["requests_planned"].is_null());
    let seconds = summary["client_seconds"].as_f64().unwrap();
    assert!(seconds >= 0.99, "{seconds}");
    assert_eq!(summary["connections"], 4);
}

#[test]
fn a_warm_up_is_not_counted_and_is_reported() {
    let hello = Hello::new(None);
    let output = hello.load(&["--clients", "2", "--iterations", "5", "--warm-up", "300ms"]);
    let summary = summary(&output);
    assert_eq!(summary["requests_sent"], 10);
    let warm_up = summary["requests_of_warm_up"].as_u64().unwrap();
    assert!(warm_up > 0);
    assert_eq!(hello.server.requests(), warm_up + 10);
}

#[test]
fn rounds_have_intervals() {
    let hello = Hello::new(None);
    let rounds = summary(&hello.load(&["--clients", "2", "--iterations", "50", "--rounds", "3"]));
    assert_eq!(rounds["rounds"].as_array().unwrap().len(), 3);
    assert_eq!(hello.server.requests(), 300);
    let mean = |what: &str| rounds["client_p50_ms"][what].as_f64().unwrap();
    assert!(mean("low") <= mean("mean") && mean("mean") <= mean("high"), "{rounds}");
}

#[test]
fn a_scenario_carries_values_from_answer_to_request() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = seen.clone();
    let server = Server::start(None, move |request| {
        let log = log.clone();
        async move {
            use http_body_util::BodyExt;
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let header = head.headers.get("x-tenant").map_or("", |value| value.to_str().unwrap());
            let body = String::from_utf8_lossy(&body);
            log.lock().unwrap().push(format!("{} {} {header} {body}", head.method, head.uri));
            text(r#"{"order":{"id":42,"ref":"a/b"}}"#)
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let path = scenario(
        folder.path(),
        r#"
            [variables]
            tenant = "acme"
            count = { random = [3, 3] }
            [[step]]
            method = "POST"
            path = "/orders"
            headers = { "X-Tenant" = "{tenant}" }
            json = { count = "{count}", note = "of {tenant}" }
            capture = { id = "/order/id", ref = "/order/ref" }
            think = "1ms"
            [[step]]
            method = "PUT"
            path = "/orders/{ref}?by={tenant}"
            json = { id = "{id}" }
        "#,
    );
    let url = format!("http://{}/api", server.address);
    let output =
        load(&url, &["--scenario", path.to_str().unwrap(), "--clients", "1", "--iterations", "1"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let seen = seen.lock().unwrap();
    assert_eq!(
        *seen,
        [
            r#"POST /api/orders acme {"count":3,"note":"of acme"}"#,
            r#"PUT /api/orders/a%2Fb?by=acme  {"id":42}"#
        ]
    );
}

#[test]
fn a_request_fails_once_however_many_of_its_values_are_missing() {
    let server = Server::start(None, async |_| text(r#"{"id":1}"#));
    let folder = tempfile::tempdir().unwrap();
    let path = scenario(
        folder.path(),
        r#"
            [[step]]
            method = "GET"
            path = "/"
            capture = { id = "/id", a = "/a", b = "/b", c = "/c" }
        "#,
    );
    let csv = folder.path().join("samples.csv");
    let (path, csv) = (path.to_str().unwrap(), csv.to_str().unwrap());
    let sizes = ["--clients", "2", "--iterations", "3"];
    let files = ["--scenario", path, "--samples", csv];
    let output = load(&format!("http://{}", server.address), &[&sizes[..], &files].concat());
    let summary = summary(&output);
    assert_eq!((&summary["answers"], &summary["failed"]), (&6.into(), &6.into()), "{summary}");
    assert_eq!(summary["steps"][0]["failed"], 6);
    let csv = std::fs::read_to_string(csv).unwrap();
    assert_eq!(csv.matches("nothing at /").count(), 6, "{csv}");
}

#[test]
fn a_scenario_that_cannot_be_run_is_reported_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = scenario(folder.path(), "[[step]]\nmethod = \"GET\"\npath = \"/{who}\"\n");
    for (path, message) in [
        (path.to_str().unwrap(), "scenario.toml:3: found {who}, which is neither a variable"),
        ("nowhere", "the scenario nowhere cannot be read"),
    ] {
        let output = load("http://127.0.0.1:1", &["--scenario", path, "-c", "1", "-m", "1"]);
        assert_ends(&output, 2, &[message]);
    }
}

#[test]
fn an_argument_that_is_missing_or_wrong_is_named() {
    const AGES: &str = "500000000000y";
    for (arguments, message) in [
        (&["-c", "0", "-m", "1"][..], "found 0, expected at least 1"),
        (&["-c", "1", "-m", "1", "-n", "1"], "cannot be used with"),
        (&["--rate", "5:1s", "--for", "1s"], "leave one out"),
        (&["--rate", "0", "--for", "1s"], "expected 0.001 to 1000000"),
        (&["--rate", "5:x"], "expected RATE:TIME"),
        (&["-c", "x", "-m", "1"], "expected a whole number, at least 1"),
        (&["-c", "1", "--for", "0s"], "found 0, expected a time above 0, such as 30s"),
        (&["-c", "1", "--for", "30"], "expected a duration such as 500ms"),
        (&["-c", "1", "--for", AGES], "more than 100 years"),
        (&["-c", "1", "--timeout", AGES], "more than 100 years"),
        (&["-c", "1", "--warm-up", AGES], "more than 100 years"),
    ] {
        let stderr = assert_ends(&load("http://127.0.0.1:1", arguments), 2, &[]);
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
    }
    let output = load("ftp://127.0.0.1/items", &["-c", "1", "-m", "1"]);
    assert_ends(&output, 2, &["expected http or https"]);
}

#[test]
fn samples_are_as_many_as_requests() {
    let hello = Hello::new(None);
    let path = hello.folder.path().join("samples.csv");
    let arguments = ["--rate", "100", "--for", "1s", "--samples", path.to_str().unwrap()];
    let summary = hello.loaded(&arguments);
    let samples = sample_file::read(&path);
    assert_eq!(samples.len() as u64, summary["requests_sent"].as_u64().unwrap());
    for (n, sample) in samples.iter().enumerate() {
        assert!((sample.intended - n as f64 * 0.01).abs() < 1e-4);
        assert!(sample.started >= sample.intended && sample.took > 0.0);
    }
    let nowhere = ["-c", "1", "-m", "1", "--samples", "/nowhere/samples.csv"];
    assert_ends(&hello.load(&nowhere), 2, &["/nowhere/samples.csv"]);
}

#[test]
fn a_rate_that_changes_evenly_has_as_many_arrivals_as_its_mean_rate() {
    let hello = Hello::new(None);
    let summary = hello.loaded(&["--rate", "0-400:1s,400-0:500ms"]);
    assert_eq!(summary["requests_sent"], 300);
    assert_eq!(
        summary["model"],
        "arrivals: 0 to 400 a second for 1.00 s, then 400 to 0 a second for 0.500 s"
    );
}

#[test]
fn the_limit_lies_between_a_rate_at_which_most_loads_hold_and_one_at_which_few_do() {
    let hello = Hello::new(None);
    let goal = "rate < 120 and failed < 1%";
    let output = hello.load(&["--find-limit", goal, "--rate", "50", "--for", "250ms"]);
    assert_ends(&output, 0, &["50.0 a second: holds", "rate < 120: found"]);
    let found = summary(&output);
    let [holds, fails] = ["holds", "fails"].map(|name| found[name].as_f64().unwrap());
    // Below 116 no load has that rate; a busy machine makes fewer requests than are due, so that others hold too.
    assert!(holds < fails && fails > 115.0, "{found}");
    let probes = found["probes"].as_array().unwrap();
    let missed = |rate: f64| {
        let loads = probes.iter().filter(|probe| probe["rate"] == rate);
        let missed = loads.clone().filter(|load| !load["missed"].as_array().unwrap().is_empty());
        (missed.count(), loads.count())
    };
    let ((few, at_holds), (most, at_fails)) = (missed(holds), missed(fails));
    assert!(few * 2 < at_holds && most * 2 > at_fails && at_holds.min(at_fails) >= 6, "{found}");
    let limit = &found["limit"];
    assert_eq!((limit["low"].as_f64(), limit["high"].as_f64()), (Some(holds), Some(fails)));
    assert_eq!(limit["certainty"], 0.95);
}

#[test]
fn a_service_that_never_does_well_has_no_limit_to_be_found() {
    let server = Server::start(None, async |_| {
        let mut answer = text("");
        *answer.status_mut() = hyper::StatusCode::INTERNAL_SERVER_ERROR;
        answer
    });
    let url = format!("http://{}/", server.address);
    let arguments = ["--find-limit", "failed < 1%", "--for", "20ms", "--quiet"];
    let output = talea([&["load", &url], &arguments[..]].concat());
    assert_eq!(assert_ends(&output, 1, &[]), "");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("no rate was found"), "{output:?}");
}
