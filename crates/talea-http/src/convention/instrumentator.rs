//! The metrics of prometheus-fastapi-instrumentator 8, for Python's FastAPI and Starlette.

use super::metric_set::LabelSource::{self, Method, Route, Status};
use super::metric_set::{MethodNames, MetricSet, MetricSpec, RouteNames};
use super::prometheus::COSTS;

const HANDLER: &[(&str, LabelSource)] = &[("handler", Route)];

pub(super) const METRIC_SET: MetricSet = MetricSet {
    in_flight: MetricSpec {
        name: "http_requests_inprogress",
        help: "Number of HTTP requests in progress.",
        labels: &[("method", Method), ("handler", Route)],
    },
    requests: Some(MetricSpec {
        name: "http_requests_total",
        help: "Total number of requests by method, status and handler.",
        labels: &[("handler", Route), ("status", Status), ("method", Method)],
    }),
    to_head: Some(MetricSpec {
        name: "http_request_duration_highr_seconds",
        help: "Latency with many buckets, of all requests together.",
        labels: &[],
    }),
    to_end: Some(MetricSpec {
        name: "http_request_duration_seconds",
        help: "Latency of requests by handler and method.",
        labels: &[("handler", Route), ("method", Method)],
    }),
    request_size: Some(MetricSpec {
        name: "http_request_size_bytes",
        help: "Length of requests' bodies by handler.",
        labels: HANDLER,
    }),
    response_size: Some(MetricSpec {
        name: "http_response_size_bytes",
        help: "Length of responses' bodies by handler.",
        labels: HANDLER,
    }),
    method_names: MethodNames::Declared { rest: "OTHER" },
    route_names: RouteNames::Templates { unmatched: "none" },
    durations: DURATIONS,
    costs: Some(COSTS),
    ..MetricSet::DEFAULT
};

/// Those of its metric of high resolution.
const DURATIONS: &[f64] = &[
    0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0,
    7.5, 10.0, 30.0, 60.0,
];
