//! The metrics of the requests.

use crate::client::send;
use crate::service::Service;
use talea_parse::Sample;

const ENDPOINTS: [(&str, &str); 6] = [
    ("GET", "/api/items"),
    ("POST", "/api/items"),
    ("GET", "/api/items/{id}"),
    ("PUT", "/api/items/{id}"),
    ("PATCH", "/api/items/{id}"),
    ("DELETE", "/api/items/{id}"),
];

/// The value of the first series with this name and these labels, if there is one.
fn has(sample: &Sample, label: &(&str, &str)) -> bool {
    sample.labels.iter().any(|(name, value)| (name.as_str(), value.as_str()) == *label)
}

fn find(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let found = samples
        .iter()
        .find(|sample| sample.name == name && labels.iter().all(|label| has(sample, label)));
    found.map(|sample| sample.value)
}

pub(crate) fn value(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> f64 {
    find(samples, name, labels).unwrap_or_else(|| panic!("there is no {name} {labels:?}"))
}

#[test]
fn each_request_is_counted_once_at_its_endpoint() {
    let service = Service::start();
    assert_eq!(service.value("http_requests_total", &[]), 0.0, "a scrape");
    let path = format!("/api/items/{}", service.create());
    service.send("GET /api/items");
    service.send("GET /api/items");
    service.send(&format!("GET {path}"));
    service.send_json(&format!("PUT {path}"), r#"{"item":{"value":false}}"#);
    service.send_json(&format!("PATCH {path}"), r#"{"item":{"value":true}}"#);
    service.send_json(&format!("PATCH {path}"), "nonsense");
    service.send(&format!("DELETE {path}"));
    service.send(&format!("DELETE {path}"));

    let samples = service.scrape();
    let counts = [(2.0, 0.0), (1.0, 0.0), (1.0, 0.0), (1.0, 0.0), (1.0, 1.0), (1.0, 1.0)];
    for ((method, route), (good, bad)) in ENDPOINTS.into_iter().zip(counts) {
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
    let requests = samples.iter().filter(|sample| sample.name == "http_requests_total");
    let all: f64 = requests.map(|sample| sample.value).sum();
    assert_eq!(all, 9.0, "scrapes are not among the requests");
}

#[test]
fn the_process_the_runtime_the_tasks_and_the_version_are_shown() {
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
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    assert_eq!(value(&samples, "items_api_build_info", &version), 1.0);
    if cfg!(target_os = "linux") {
        assert!(value(&samples, "process_cpu_seconds_total", &[]) > 0.0);
    }
}

#[test]
fn without_meters_the_build_and_the_process_are_shown() {
    let service = Service::unmetered();
    service.create();
    for sample in service.scrape() {
        let name = &sample.name;
        assert!(name == "items_api_build_info" || name.starts_with("process_"), "{name}");
    }
    service.value("items_api_build_info", &[]);
}

#[test]
fn without_meters_a_reset_is_a_reset() {
    let service = Service::study(|program| program.env("ITEMS_METRICS", "off"));
    service.create();
    assert_eq!(send(service.metrics, "POST /study/reset", None).status, 204);
    assert_eq!(service.send("GET /api/items").body, r#"{"data":[]}"#);
}

#[test]
fn quantiles_are_shown_where_they_are_asked_for() {
    let with = Service::with(|program| program.args(["--metrics", "quantiles"]));
    let without = Service::start();
    let name = "http_request_duration_recent_seconds";
    let labels = [("method", "POST"), ("route", "/api/items"), ("quantile", "0.99")];
    for service in [&with, &without] {
        service.create();
    }
    assert!(with.value(name, &labels) > 0.0);
    assert_eq!(find(&without.scrape(), name, &[]), None);
}
