//! The default convention.

use super::metric_set::LabelSource::{self, Method, Outcome, Route, Status};
use super::metric_set::{CostSpecs, MetricSet, MetricSpec, costs};

const ENDPOINT: &[(&str, LabelSource)] = &[("method", Method), ("route", Route)];

/// Other conventions for servers have no names for these.
pub(super) const COSTS: CostSpecs = costs!("http_request", ENDPOINT);

pub(super) const METRIC_SET: MetricSet = MetricSet {
    in_flight: MetricSpec {
        name: "http_requests_in_flight",
        help: "Requests in flight.",
        labels: ENDPOINT,
    },
    requests: Some(MetricSpec {
        name: "http_requests_total",
        help: "Requests by the status of their response.",
        labels: &[("method", Method), ("route", Route), ("status", Status)],
    }),
    outcomes: Some(MetricSpec {
        name: "http_request_outcomes_total",
        help: "Requests that have ended, by how: complete, aborted, panicked or timed_out.",
        labels: &[("method", Method), ("route", Route), ("outcome", Outcome)],
    }),
    to_head: Some(MetricSpec {
        name: "http_request_duration_seconds",
        help: "Time from a request's arrival at its route to the head of the response.",
        labels: ENDPOINT,
    }),
    to_end: Some(MetricSpec {
        name: "http_exchange_duration_seconds",
        help: "Time from a request's arrival at its route to the end of the response's body.",
        labels: ENDPOINT,
    }),
    request_size: Some(MetricSpec {
        name: "http_request_body_size_bytes",
        help: "Bytes of a request's body that were read.",
        labels: ENDPOINT,
    }),
    response_size: Some(MetricSpec {
        name: "http_response_body_size_bytes",
        help: "Bytes of a response's body that were sent.",
        labels: ENDPOINT,
    }),
    costs: Some(COSTS),
    ..MetricSet::DEFAULT
};
