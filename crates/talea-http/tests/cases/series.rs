//! From what was to be told to the series that tell it, by convention.

use std::collections::BTreeMap;

use axum::http::Version;
use talea::{Snapshot, Value};
use talea_http::Convention;

use crate::case::{Outcome, Told};
use crate::way::Way;
use crate::witness::Record;

pub(crate) const CONVENTIONS: [Convention; 4] =
    [Convention::Prometheus, Convention::OpenTelemetry, Convention::Servant, Convention::Caddy];

/// Series that are not 0, by name and labels: a value or a count, and of sizes the sum.
pub(crate) type Series = BTreeMap<String, (f64, Option<f64>)>;

/// A request that was made, with what was seen of it.
pub(crate) struct Made<'a> {
    pub(crate) way: Way,
    pub(crate) told: Told,
    pub(crate) record: &'a Record,
}

/// Adds what a request is told as.
pub(crate) fn tell(series: &mut Series, convention: Convention, made: &Made<'_>) {
    let Made { told, record, .. } = made;
    let (request, response) = (record.request(), record.response());
    let labels = |names: &[&str]| labels(convention, made, names);
    let mut tell = |name: &str, names: &[&str], bytes: Option<u64>| {
        let (count, sum) = series.entry(format!("{name}{}", labels(names))).or_default();
        *count += 1.0;
        *sum = bytes.map(|bytes| sum.unwrap_or(0.0) + bytes as f64);
    };
    match convention {
        Convention::Prometheus => {
            let endpoint = ["method", "route"];
            tell("http_requests_total", &["method", "route", "status"], None);
            tell("http_request_outcomes_total", &["method", "outcome", "route"], None);
            tell("http_request_duration_seconds", &endpoint, None);
            tell("http_exchange_duration_seconds", &endpoint, None);
            tell("http_request_body_size_bytes", &endpoint, Some(request));
            tell("http_response_body_size_bytes", &endpoint, Some(response));
        }
        Convention::OpenTelemetry => {
            let all = [
                "error_type",
                "http_request_method",
                "http_response_status_code",
                "http_route",
                "network_protocol_version",
                "url_scheme",
            ];
            tell("http_server_request_duration_seconds", &all, None);
            tell("http_server_request_body_size_bytes", &all, Some(request));
            tell("http_server_response_body_size_bytes", &all, Some(response));
        }
        Convention::Servant => {
            tell("http_responses_total", &["method", "path", "status"], None);
            tell("http_request_duration_seconds", &["method", "path"], None);
        }
        Convention::Caddy => {
            let basic = ["handler", "server"];
            let answered = ["code", "handler", "method", "server"];
            tell("caddy_http_requests_total", &basic, None);
            if told.outcome != Outcome::Complete || matches!(told.status, Some(500..=599)) {
                tell("caddy_http_request_errors_total", &basic, None);
            }
            tell("caddy_http_request_duration_seconds", &answered, None);
            tell("caddy_http_response_duration_seconds", &answered, None);
            tell("caddy_http_request_size_bytes", &answered, Some(record.declared_size));
            tell("caddy_http_response_size_bytes", &answered, Some(response));
        }
        _ => unreachable!("there are four"),
    }
}

/// The text of a request's labels of these names.
fn labels(convention: Convention, made: &Made<'_>, names: &[&str]) -> String {
    let Made { way, told, record } = made;
    let value = |name: &str| match (convention, name) {
        (Convention::Caddy, "method") => sent(told.method, "OTHER").to_owned(),
        (_, "http_request_method") => sent(told.method, "_OTHER").to_owned(),
        (_, "method") if *way == Way::RouterLayer && told.route != "_unmatched" => {
            sent(told.method, "_OTHER").to_owned()
        }
        (Convention::Servant, "path" | "method") if is_undeclared(*way, told) => String::new(),
        (_, "method") => told.declared.to_owned(),
        (_, "http_route") if told.route == "_unmatched" => String::new(),
        (_, "route" | "http_route") => told.route.to_owned(),
        (_, "path") => {
            let path = told.route.trim_start_matches('/').replace("/{*path}", "");
            path.replace('{', ":").replace('}', "")
        }
        (_, "handler") => handler(*way, told),
        (_, "server") => "srv0".to_owned(),
        (_, "outcome") => match told.outcome {
            Outcome::Complete => "complete".to_owned(),
            Outcome::Aborted => "aborted".to_owned(),
            Outcome::Panicked => "panicked".to_owned(),
            Outcome::TimedOut => "timed_out".to_owned(),
        },
        (_, "error_type") => match (told.outcome, told.status) {
            (Outcome::Complete, Some(status @ 500..=599)) => status.to_string(),
            (Outcome::Complete, _) => String::new(),
            (Outcome::Aborted, _) => "aborted".to_owned(),
            (Outcome::Panicked, _) => "panic".to_owned(),
            (Outcome::TimedOut, _) => "timeout".to_owned(),
        },
        (_, "url_scheme") => "http".to_owned(),
        (_, "network_protocol_version") => match record.version {
            Version::HTTP_10 => "1.0".to_owned(),
            Version::HTTP_2 => "2".to_owned(),
            _ => "1.1".to_owned(),
        },
        (_, "status" | "code" | "http_response_status_code") => status(convention, told.status),
        _ => unreachable!("{name}"),
    };
    let texts: Vec<_> = names.iter().map(|name| format!("{name}={:?}", value(name))).collect();
    format!("{{{}}}", texts.join(","))
}

fn sent(method: &'static str, other: &'static str) -> &'static str {
    match method {
        "GET" | "HEAD" | "POST" | "PUT" | "OPTIONS" => method,
        _ => other,
    }
}

/// Whether no declared endpoint answers. The layer on the router knows no methods.
fn is_undeclared(way: Way, told: &Told) -> bool {
    told.declared == "_OTHER" && (way != Way::RouterLayer || told.route == "_unmatched")
}

fn handler(way: Way, told: &Told) -> String {
    match (way, told.route, told.declared) {
        // A function has a name.
        (Way::Declared, "/memory", "GET") => "cases::way::memory".to_owned(),
        (Way::Declared, "/upgrades", "GET") => "cases::way::upgrades".to_owned(),
        (Way::Declared, "/panics-at-once", "GET") => "cases::way::panics_at_once".to_owned(),
        _ if is_undeclared(way, told) => "_unmatched".to_owned(),
        (Way::RouterLayer, route, _) => route.to_owned(),
        (_, route, method) => format!("{method} {route}"),
    }
}

fn status(convention: Convention, status: Option<u16>) -> String {
    match (convention, status) {
        (Convention::Prometheus, Some(status)) => format!("{}xx", status / 100),
        (Convention::Prometheus, None) => "_OTHER".to_owned(),
        (Convention::Servant, Some(status)) if matches!(status / 100, 2 | 4 | 5) => {
            format!("{}XX", status / 100)
        }
        (Convention::Servant, _) => "XXX".to_owned(),
        (Convention::Caddy, None) => "499".to_owned(),
        (_, status) => status.map_or_else(String::new, |status| status.to_string()),
    }
}

/// The series of a snapshot that are not 0.
pub(crate) fn shown(snapshot: &Snapshot) -> Series {
    let mut shown = Series::new();
    for family in snapshot.families().filter(|family| is_of_http(family.name())) {
        for series in family.series() {
            let mut labels = series.labels();
            labels.sort_unstable();
            let labels: Vec<_> =
                labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
            let key = format!("{}{{{}}}", family.name(), labels.join(","));
            let is_of_sizes = family.name().ends_with("_size_bytes");
            let value = match series.value() {
                Value::Histogram(all) => (all.count() as f64, is_of_sizes.then(|| all.sum())),
                _ => (series.as_f64().unwrap(), None),
            };
            if value.0 != 0.0 {
                shown.insert(key, value);
            }
        }
    }
    shown
}

pub(crate) fn is_of_http(name: &str) -> bool {
    name.starts_with("http_") || name.starts_with("caddy_http_")
}

/// What is in flight.
pub(crate) fn in_flight(snapshot: &Snapshot) -> f64 {
    let names =
        ["http_requests_in_flight", "http_server_active_requests", "caddy_http_requests_in_flight"];
    names.iter().filter_map(|name| snapshot.total(name, &[])).sum()
}

/// The sums of the times to heads and to ends; 0 where heads have none.
pub(crate) fn durations(convention: Convention, snapshot: &Snapshot) -> (f64, f64) {
    let sum = |name| snapshot.histogram(name, &[]).map_or(0.0, |histogram| histogram.sum());
    match convention {
        Convention::Prometheus => {
            (sum("http_request_duration_seconds"), sum("http_exchange_duration_seconds"))
        }
        Convention::Caddy => (
            sum("caddy_http_response_duration_seconds"),
            sum("caddy_http_request_duration_seconds"),
        ),
        _ => (0.0, 0.0),
    }
}

/// How many requests with these labels have ended, by every metric that counts them all.
pub(crate) fn ended(
    convention: Convention,
    snapshot: &Snapshot,
    labels: &[(&str, &str)],
) -> Vec<(&'static str, f64)> {
    let (counters, histograms): (&[&str], &[&str]) = match convention {
        Convention::Prometheus => (
            &["http_requests_total", "http_request_outcomes_total"],
            &[
                "http_request_duration_seconds",
                "http_exchange_duration_seconds",
                "http_request_body_size_bytes",
                "http_response_body_size_bytes",
            ],
        ),
        Convention::OpenTelemetry => (
            &[],
            &[
                "http_server_request_duration_seconds",
                "http_server_request_body_size_bytes",
                "http_server_response_body_size_bytes",
            ],
        ),
        Convention::Servant => (&["http_responses_total"], &["http_request_duration_seconds"]),
        Convention::Caddy => (
            &["caddy_http_requests_total"],
            &[
                "caddy_http_request_duration_seconds",
                "caddy_http_response_duration_seconds",
                "caddy_http_request_size_bytes",
                "caddy_http_response_size_bytes",
            ],
        ),
        _ => unreachable!("there are four"),
    };
    let totals = counters.iter().map(|&name| (name, snapshot.total(name, labels).unwrap_or(0.0)));
    let counts = histograms.iter().map(|&name| {
        (name, snapshot.histogram(name, labels).map_or(0.0, |histogram| histogram.count() as f64))
    });
    totals.chain(counts).collect()
}
