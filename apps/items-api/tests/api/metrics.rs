//! The metrics of the requests.

use crate::client::send;
use crate::service::{Service, program};
use std::io::Write;
use std::process::{Command, Stdio};
use talea_parse::Sample;

/// Every endpoint as declared.
const ENDPOINTS: [(&str, &str); 6] = [
    ("GET", "/api/items"),
    ("POST", "/api/items"),
    ("GET", "/api/items/{id}"),
    ("PUT", "/api/items/{id}"),
    ("PATCH", "/api/items/{id}"),
    ("DELETE", "/api/items/{id}"),
];

fn find<'a>(samples: &'a [Sample], name: &str, labels: &[(&str, &str)]) -> Option<&'a Sample> {
    samples.iter().find(|sample| {
        sample.name == name
            && labels.iter().all(|(name, value)| {
                sample.labels.iter().any(|label| label.0 == *name && label.1 == *value)
            })
    })
}

pub(crate) fn value(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> f64 {
    find(samples, name, labels).unwrap_or_else(|| panic!("there is no {name} {labels:?}")).value
}

#[test]
fn every_endpoint_is_there_at_zero_before_the_first_request() {
    let samples = Service::start().scrape();
    for (method, route) in ENDPOINTS {
        let labels = [("method", method), ("route", route)];
        assert_eq!(value(&samples, "http_requests_in_flight", &labels), 0.0);
        assert_eq!(value(&samples, "http_request_duration_seconds_count", &labels), 0.0);
        for status in ["2xx", "4xx", "5xx"] {
            let labels = [("method", method), ("route", route), ("status", status)];
            assert_eq!(value(&samples, "http_requests_total", &labels), 0.0);
        }
    }
}

#[test]
fn promtool_has_no_complaint() {
    let service = Service::start();
    service.create();
    let text = service.scrape_text();
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is missing: scripts/setup --test installs it");
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn each_request_is_counted_once_at_its_endpoint() {
    let service = Service::start();
    let id = service.create();
    let path = format!("/api/items/{id}");
    service.send("GET /api/items");
    service.send("GET /api/items");
    service.send(&format!("GET {path}"));
    service.send_json(&format!("PUT {path}"), r#"{"item":{"value":false}}"#);
    service.send_json(&format!("PATCH {path}"), r#"{"item":{"value":true}}"#);
    service.send_json(&format!("PATCH {path}"), "nonsense");
    service.send(&format!("DELETE {path}"));
    service.send(&format!("DELETE {path}"));

    let samples = service.scrape();
    for ((method, route), good, bad) in [
        (ENDPOINTS[0], 2.0, 0.0),
        (ENDPOINTS[1], 1.0, 0.0),
        (ENDPOINTS[2], 1.0, 0.0),
        (ENDPOINTS[3], 1.0, 0.0),
        (ENDPOINTS[4], 1.0, 1.0),
        (ENDPOINTS[5], 1.0, 1.0),
    ] {
        let counted = |status| {
            let labels = [("method", method), ("route", route), ("status", status)];
            value(&samples, "http_requests_total", &labels)
        };
        assert_eq!((counted("2xx"), counted("4xx")), (good, bad), "{method} {route}");
        let labels = [("method", method), ("route", route)];
        let observed = value(&samples, "http_request_duration_seconds_count", &labels);
        assert_eq!(observed, good + bad, "{method} {route}");
        assert_eq!(value(&samples, "http_requests_in_flight", &labels), 0.0);
    }
}

#[test]
fn scrapes_are_not_among_the_requests() {
    let service = Service::start();
    let total = |samples: &[Sample]| -> f64 {
        let requests = samples.iter().filter(|sample| sample.name == "http_requests_total");
        requests.map(|sample| sample.value).sum()
    };
    for _ in 0..5 {
        assert_eq!(total(&service.scrape()), 0.0);
    }
    service.create();
    assert_eq!(total(&service.scrape()), 1.0);
}

#[test]
fn the_process_the_runtime_and_the_tasks_are_shown() {
    let service = Service::start();
    service.create();
    let samples = service.scrape();
    let main = [("runtime", "main")];
    for name in ["tokio_workers", "tokio_busy_seconds_total"] {
        assert!(value(&samples, name, &main) > 0.0, "{name}");
    }
    value(&samples, "tokio_alive_tasks", &main);
    assert!(value(&samples, "server_tasks_alive_peak", &[]) > 0.0);
    for name in ["server_tasks_ready", "server_tasks_ready_peak"] {
        value(&samples, name, &[]);
    }
    if cfg!(target_os = "linux") {
        assert!(value(&samples, "process_cpu_seconds_total", &[]) > 0.0);
    }
}

#[test]
fn the_version_that_runs_is_shown() {
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    assert_eq!(value(&Service::start().scrape(), "items_api_build_info", &version), 1.0);
}

#[test]
fn without_meters_the_build_and_the_process_are_shown() {
    let service = Service::unmetered();
    service.create();
    for sample in service.scrape() {
        let name = &sample.name;
        assert!(name == "items_api_build_info" || name.starts_with("process_"), "{name}");
    }
    value(&service.scrape(), "items_api_build_info", &[]);
}

#[test]
fn without_meters_a_reset_is_a_reset() {
    let mut command = program();
    command.env("ITEMS_METRICS", "off");
    let service = Service::study(command);
    service.create();
    assert_eq!(send(service.metrics, "POST /study/reset", None).status, 204);
    assert_eq!(service.send("GET /api/items").body, r#"{"data":[]}"#);
}

#[test]
fn quantiles_are_shown_where_they_are_asked_for() {
    let mut command = program();
    command.args(["--metrics", "quantiles"]);
    let (with, without) = (Service::run(command), Service::start());
    let name = "http_request_duration_recent_seconds";
    let labels = [("method", "POST"), ("route", "/api/items"), ("quantile", "0.99")];
    for service in [&with, &without] {
        service.create();
    }
    assert!(value(&with.scrape(), name, &labels) > 0.0);
    assert!(find(&without.scrape(), name, &[]).is_none());
}
