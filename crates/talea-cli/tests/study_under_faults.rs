//! `talea study` against services that fail in every way: what was sent is what was received is
//! what is shown.

#![cfg(unix)]

mod stand_in;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use serde_json::Value;
use stand_in::{Reply, Request, StandIn, as_expected};
use tempfile::TempDir;

const TALEA: &str = env!("CARGO_BIN_EXE_talea");

/// A service that counts the requests it receives, reports the count, and answers every request by
/// its number.
fn service(reply: impl Fn(u64, u16, String) -> Reply + Send + Sync + 'static) -> StandIn {
    let received = Arc::new(AtomicU64::new(0));
    StandIn::start(move |request: &Request| match request.path.as_str() {
        "/metrics" => {
            let count = received.load(SeqCst);
            Reply::Answer(200, format!("http_requests_total {count}\n"))
        }
        _ => {
            let number = received.fetch_add(1, SeqCst);
            let (status, body) = as_expected(request);
            reply(number, status, body)
        }
    })
}

/// A study of a service by its URL: its report, the page, the table, and how it ended.
struct Studied {
    report: Value,
    page: String,
    table: String,
    status: i32,
    _folder: TempDir,
}

fn study(service: &StandIn, cases: &str, more: &[&str]) -> Studied {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(TALEA)
        .args(["study", "--cases", cases, "--url", &service.url(), "--metrics-url"])
        .arg(format!("http://{}/metrics", service.address))
        .args(more)
        .arg("--out")
        .arg(folder.path())
        .output()
        .unwrap();
    let read = |name: &str| fs::read_to_string(folder.path().join(name));
    let report = read("report.json").unwrap_or_else(|_| {
        panic!("no report: {}", String::from_utf8_lossy(&output.stderr));
    });
    Studied {
        report: serde_json::from_str(&report).unwrap(),
        page: read("report.html").unwrap(),
        table: String::from_utf8(output.stdout).unwrap(),
        status: output.status.code().unwrap(),
        _folder: folder,
    }
}

impl Studied {
    fn sum(&self, of: impl Fn(&Value) -> u64) -> u64 {
        self.report["cases"].as_array().unwrap().iter().map(of).sum()
    }
}

fn whole(number: u64) -> String {
    talea_cli::figures::whole(number)
}

/// Closed for some iterations, closed for a time, open.
const MODELS: &str = "4x10,3x400ms,150/s:400ms";

/// Each way to fail, with what is expected of the exit status.
fn exact_in_every_model(
    reply: impl Fn(u64, u16, String) -> Reply + Send + Sync + 'static,
    more: &[&str],
    status: i32,
) -> Studied {
    let service = service(reply);
    let studied = study(&service, MODELS, more);
    let sent = studied.sum(|case| case["client"]["requests_sent"].as_u64().unwrap());
    assert_eq!(sent, service.requests(), "{}", studied.table);
    for case in studied.report["cases"].as_array().unwrap() {
        let (client, server) = (&case["client"], &case["server"]);
        assert_eq!(client["requests_sent"], server["requests_received"], "{case}");
        assert!(case["disagreement"].is_null());
        // Every request has an answer or a failure of its own, or both.
        let answers: u64 = client["answers_by_status"]
            .as_object()
            .unwrap()
            .values()
            .filter_map(Value::as_u64)
            .sum();
        let failed: u64 = client["failures"]
            .as_array()
            .unwrap()
            .iter()
            .map(|kind| kind["count"].as_u64().unwrap())
            .sum();
        assert_eq!(client["failed"], failed);
        let (sent, not_sent) = (
            client["requests_sent"].as_u64().unwrap(),
            client["requests_not_sent"].as_u64().unwrap(),
        );
        assert!(answers <= sent && sent + not_sent <= answers + failed, "{client}");
        // The report shows the findings.
        for shown in [sent, failed] {
            assert!(studied.table.contains(&whole(shown)), "{shown} in {}", studied.table);
            assert!(studied.page.contains(&whole(shown)), "{shown} in the page");
        }
        let heat = client["times"]["heat"]["counts"].as_array().unwrap();
        let shown: u64 = heat
            .iter()
            .flat_map(|slice| slice.as_array().unwrap())
            .map(|count| count.as_u64().unwrap())
            .sum();
        assert_eq!(shown, answers, "the heat map has every answer");
    }
    let failed = studied.sum(|case| case["client"]["failed"].as_u64().unwrap());
    assert_eq!((studied.status, failed > 0), (status, status == 1), "{}", studied.table);
    studied
}

#[test]
fn a_service_that_does_well() {
    exact_in_every_model(|_, status, body| Reply::Answer(status, body), &[], 0);
}

#[test]
fn a_service_that_answers_500() {
    let studied = exact_in_every_model(
        |number, status, body| match number % 7 {
            3 => Reply::Answer(500, String::new()),
            _ => Reply::Answer(status, body),
        },
        &[],
        1,
    );
    assert!(studied.page.contains("500 Internal Server Error"), "the kind is named");
}

#[test]
fn a_service_that_answers_slowly() {
    exact_in_every_model(
        |_, status, body| {
            std::thread::sleep(Duration::from_millis(15));
            Reply::Answer(status, body)
        },
        &[],
        0,
    );
}

#[test]
fn a_service_that_closes_in_the_middle() {
    exact_in_every_model(
        |number, status, body| match number % 9 {
            2 => Reply::Close,
            4 => Reply::HalfABody,
            8 => Reply::AnswerAndClose(status, body),
            _ => Reply::Answer(status, body),
        },
        &[],
        1,
    );
}

#[test]
fn requests_that_meet_a_connection_that_is_gone_are_shown_to_be_lost() {
    // It closes without saying so: what a client sends into that, nobody receives.
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
fn a_service_that_drops_answers() {
    exact_in_every_model(
        |number, status, body| match number % 11 {
            5 => Reply::Silence,
            _ => Reply::Answer(status, body),
        },
        &["--timeout", "200ms"],
        1,
    );
}

#[test]
fn without_keep_alive_every_request_is_counted_too() {
    exact_in_every_model(
        |number, status, body| match number % 5 {
            3 => Reply::Close,
            _ => Reply::AnswerAndClose(status, body),
        },
        &["--no-keep-alive"],
        1,
    );
}

#[test]
fn a_service_that_refuses_connections_in_the_middle_is_reported() {
    // It serves one connection for a while, and then nobody listens any more.
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = service.local_addr().unwrap();
    drop(service);
    let folder = tempfile::tempdir().unwrap();
    let mut child = items_api(address.port(), None);
    let study = Command::new(TALEA)
        .args(["study", "--cases", "4x1500ms", "--url"])
        .arg(format!("http://{address}/api/items"))
        .arg("--out")
        .arg(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(700));
    child.0.kill().unwrap();
    let output = study.wait_with_output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stdout.contains("connection refused") || stdout.contains("refused"), "{stdout}");
    let report: Value =
        serde_json::from_slice(&fs::read(folder.path().join("report.json")).unwrap()).unwrap();
    let client = &report["cases"][0]["client"];
    assert!(client["requests_not_sent"].as_u64().unwrap() > 0, "{client}");
    assert!(client["answers_by_status"]["200"].as_u64().unwrap() > 0, "{client}");
    assert!(report["cases"][0]["server"].is_null(), "it has no metrics");
}

#[test]
fn metrics_that_are_wrong_are_shown_to_disagree() {
    let received = Arc::new(AtomicU64::new(0));
    let service = StandIn::start(move |request: &Request| match request.path.as_str() {
        // It forgets one of ten.
        "/metrics" => {
            let count = received.load(SeqCst);
            Reply::Answer(200, format!("http_requests_total {}\n", count - count / 10))
        }
        _ => {
            received.fetch_add(1, SeqCst);
            let (status, body) = as_expected(request);
            Reply::Answer(status, body)
        }
    });
    let studied = study(&service, "5x20", &[]);
    let words = "The clients sent 500 requests, the server counted 450: 50 fewer than were sent.";
    assert_eq!(studied.status, 1);
    assert_eq!(studied.report["cases"][0]["disagreement"], words);
    assert!(studied.table.contains(words) && studied.page.contains(words), "{}", studied.table);
}

/// The real service on a port of its own, which dies with the test.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn items_api(port: u16, metrics: Option<u16>) -> Service {
    let path: PathBuf = Path::new(TALEA).with_file_name("items-api");
    assert!(path.is_file(), "no items-api at {}", path.display());
    let child = Command::new(path)
        .arg(format!("--listen=127.0.0.1:{port}"))
        .arg(format!("--metrics-listen=127.0.0.1:{}", metrics.unwrap_or(0)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    for port in [Some(port), metrics].into_iter().flatten() {
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "the service does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    Service(child)
}

#[test]
fn a_service_that_is_killed_and_restarted_is_counted_on_and_reported() {
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (items, metrics) = (free(), free());
    let first = items_api(items, Some(metrics));
    let folder = tempfile::tempdir().unwrap();
    let study = Command::new(TALEA)
        .args(["study", "--cases", "4x3s", "--url"])
        .arg(format!("http://127.0.0.1:{items}/api/items"))
        .arg(format!("--metrics-url=http://127.0.0.1:{metrics}/metrics"))
        .arg("--out")
        .arg(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1200));
    // SIGKILL: it says no good-bye.
    drop(first);
    let _second = items_api(items, Some(metrics));
    let output = study.wait_with_output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value =
        serde_json::from_slice(&fs::read(folder.path().join("report.json")).unwrap()).unwrap();
    let (client, server) = (&report["cases"][0]["client"], &report["cases"][0]["server"]);
    assert_eq!(server["restarts"], 1, "{server}");
    let (sent, received) =
        (client["requests_sent"].as_u64().unwrap(), server["requests_received"].as_u64().unwrap());
    // The counts of the first one in its last tenth of a second are lost, and no more: the rest
    // is counted once.
    assert!(received <= sent && received * 10 > sent * 8, "{received} of {sent}");
    assert!(client["failed"].as_u64().unwrap() > 0, "{client}");
    if received < sent {
        assert!(stdout.contains("It started anew 1 time meanwhile"), "{stdout}");
    }
}
