//! Counts of requests in a registry, by the names of `Convention::Prometheus`.

use std::collections::BTreeSet;

use talea::{Registry, Snapshot};

pub(crate) fn registry() -> Registry {
    Registry::for_test().unwrap()
}

/// The requests with these labels, if there is such a series.
pub(crate) fn requests(
    registry: &Registry,
    method: &str,
    route: &str,
    status: &str,
) -> Option<f64> {
    let labels = [("method", method), ("route", route), ("status", status)];
    registry.snapshot().value("http_requests_total", &labels)
}

/// The requests of all endpoints, which all metrics have recorded and of which none is in flight.
pub(crate) fn recorded(registry: &Registry) -> u64 {
    let snapshot = registry.snapshot();
    let total = |name| snapshot.total(name, &[]).unwrap() as u64;
    assert_eq!(total("http_requests_in_flight"), 0);
    let requests = total("http_requests_total");
    assert_eq!(total("http_request_outcomes_total"), requests);
    let durations = snapshot.histogram("http_request_duration_seconds", &[]).unwrap();
    assert_eq!(durations.count(), requests);
    requests
}

/// The lines of a snapshot, without comments, buckets, sums of durations, and Talea's own metrics.
pub(crate) fn lines(snapshot: &Snapshot) -> BTreeSet<String> {
    let text = snapshot.to_text();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.starts_with("talea_"));
    let lines = lines.filter(|line| !line.contains("_bucket{") && !line.contains("seconds_sum{"));
    lines.map(str::to_owned).collect()
}
