//! From expected requests to expected series, by convention.

use std::collections::BTreeMap;

use axum::http::Version;
use talea::{Snapshot, Value};
use talea_http::Convention;

use crate::cases::case::{Expected, Outcome};
use crate::cases::door::Door;
use crate::cases::witness::Record;

pub(crate) const CONVENTIONS: [Convention; 4] =
    [Convention::Prometheus, Convention::OpenTelemetry, Convention::Servant, Convention::Caddy];

/// Series that are not 0, by name and labels: a value or a count, and the sum for sizes.
pub(crate) type Series = BTreeMap<String, (f64, Option<f64>)>;

/// A request that was made, with the witness's record of it.
pub(crate) struct MadeRequest<'a> {
    pub(crate) door: &'static Door,
    pub(crate) expected: Expected,
    pub(crate) record: &'a Record,
}

/// Adds a request to the series that should record it.
pub(crate) fn add_expected(series: &mut Series, convention: Convention, made: &MadeRequest<'_>) {
    let MadeRequest { expected, record, .. } = made;
    let (request, response) = (record.request(), record.response());
    let labels = |names: &[&str]| labels(convention, made, names);
    let mut add = |name: &str, names: &[&str], bytes: Option<u64>| {
        let (count, sum) = series.entry(format!("{name}{}", labels(names))).or_default();
        *count += 1.0;
        *sum = bytes.map(|bytes| sum.unwrap_or(0.0) + bytes as f64);
    };
    match convention {
        Convention::Prometheus => {
            let endpoint = ["method", "route"];
            add("http_requests_total", &["method", "route", "status"], None);
            add("http_request_outcomes_total", &["method", "outcome", "route"], None);
            add("http_request_duration_seconds", &endpoint, None);
            add("http_exchange_duration_seconds", &endpoint, None);
            add("http_request_body_size_bytes", &endpoint, Some(request));
            add("http_response_body_size_bytes", &endpoint, Some(response));
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
            add("http_server_request_duration_seconds", &all, None);
            add("http_server_request_body_size_bytes", &all, Some(request));
            add("http_server_response_body_size_bytes", &all, Some(response));
        }
        Convention::Servant => {
            add("http_responses_total", &["method", "path", "status"], None);
            add("http_request_duration_seconds", &["method", "path"], None);
        }
        Convention::Caddy => {
            let basic = ["handler", "server"];
            let with_status = ["code", "handler", "method", "server"];
            add("caddy_http_requests_total", &basic, None);
            if expected.outcome != Outcome::Complete || matches!(expected.status, Some(500..=599)) {
                add("caddy_http_request_errors_total", &basic, None);
            }
            add("caddy_http_request_duration_seconds", &with_status, None);
            add("caddy_http_response_duration_seconds", &with_status, None);
            add("caddy_http_request_size_bytes", &with_status, Some(record.declared_size));
            add("caddy_http_response_size_bytes", &with_status, Some(response));
        }
        _ => unreachable!("there are four"),
    }
}

fn labels(convention: Convention, made: &MadeRequest<'_>, names: &[&str]) -> String {
    let texts = names.iter().map(|name| format!("{name}={:?}", label(convention, made, name)));
    format!("{{{}}}", texts.collect::<Vec<_>>().join(","))
}

/// The value of a label.
fn label(convention: Convention, made: &MadeRequest<'_>, name: &str) -> String {
    let MadeRequest { door, expected, record } = made;
    match (convention, name) {
        (Convention::Caddy, "method") => sent(expected.method, "OTHER").to_owned(),
        (_, "http_request_method") => sent(expected.method, "_OTHER").to_owned(),
        (_, "method") if !door.knows_methods && expected.route != "_unmatched" => {
            sent(expected.method, "_OTHER").to_owned()
        }
        (Convention::Servant, "path" | "method") if is_undeclared(door, expected) => String::new(),
        (_, "method") => expected.declared.to_owned(),
        (_, "http_route") if expected.route == "_unmatched" => String::new(),
        (_, "route" | "http_route") => expected.route.to_owned(),
        (_, "path") => {
            let path = expected.route.trim_start_matches('/').replace("/{*path}", "");
            path.replace('{', ":").replace('}', "")
        }
        (_, "handler") => handler(door, expected),
        (_, "server") => "srv0".to_owned(),
        (_, "outcome") => outcome(expected.outcome).0.to_owned(),
        (_, "error_type") => match (expected.outcome, expected.status) {
            (Outcome::Complete, Some(status @ 500..=599)) => status.to_string(),
            (other, _) => outcome(other).1.to_owned(),
        },
        (_, "url_scheme") => "http".to_owned(),
        (_, "network_protocol_version") => match record.version {
            Version::HTTP_10 => "1.0".to_owned(),
            Version::HTTP_2 => "2".to_owned(),
            _ => "1.1".to_owned(),
        },
        (_, "status" | "code" | "http_response_status_code") => status(convention, expected.status),
        _ => unreachable!("{name}"),
    }
}

fn sent(method: &'static str, other: &'static str) -> &'static str {
    match method {
        "GET" | "HEAD" | "POST" | "PUT" | "OPTIONS" => method,
        _ => other,
    }
}

/// The labels `outcome` and `error_type`.
fn outcome(outcome: Outcome) -> (&'static str, &'static str) {
    match outcome {
        Outcome::Complete => ("complete", ""),
        Outcome::Aborted => ("aborted", "aborted"),
        Outcome::Panicked => ("panicked", "panic"),
        Outcome::TimedOut => ("timed_out", "timeout"),
    }
}

/// Whether no declared endpoint handles it, and the door knows that.
fn is_undeclared(door: &Door, expected: &Expected) -> bool {
    expected.declared == "_OTHER" && (door.knows_methods || expected.route == "_unmatched")
}

/// The routes of plain functions, which are named by their paths.
const FUNCTIONS: [&str; 5] =
    ["/memory", "/extracts", "/upgrades", "/upgrades-with-guard", "/panics-at-once"];

fn handler(door: &Door, expected: &Expected) -> String {
    let Expected { route, declared, .. } = expected;
    if is_undeclared(door, expected) {
        return "_unmatched".to_owned();
    }
    if door.wraps_handlers && FUNCTIONS.contains(route) && *declared != "_OTHER" {
        return format!("integration::cases::door::{}", route[1..].replace('-', "_"));
    }
    if door.knows_methods { format!("{declared} {route}") } else { (*route).to_owned() }
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

pub(crate) fn recorded(snapshot: &Snapshot) -> Series {
    let mut recorded = Series::new();
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
                recorded.insert(key, value);
            }
        }
    }
    recorded
}

pub(crate) fn is_of_http(name: &str) -> bool {
    name.starts_with("http_") || name.starts_with("caddy_http_")
}

pub(crate) fn in_flight(snapshot: &Snapshot) -> f64 {
    let names =
        ["http_requests_in_flight", "http_server_active_requests", "caddy_http_requests_in_flight"];
    names.iter().filter_map(|name| snapshot.total(name, &[])).sum()
}

/// The sums of the times to heads and to ends; 0 if the convention has no time to heads.
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

/// The number of requests with these labels that ended, by every metric that counts all.
pub(crate) fn ended(snapshot: &Snapshot, labels: &[(&str, &str)]) -> Vec<(String, f64)> {
    let families = snapshot.families().filter(|family| {
        let others = ["_in_flight", "_active_requests", "_errors_total"];
        is_of_http(family.name()) && !others.iter().any(|end| family.name().ends_with(end))
    });
    let ended = families.map(|family| {
        let series = snapshot.select(family.name(), labels);
        let counts = series.map(|series| match series.value() {
            Value::Histogram(all) => all.count() as f64,
            _ => series.as_f64().unwrap(),
        });
        (family.name().to_owned(), counts.sum())
    });
    ended.collect()
}
