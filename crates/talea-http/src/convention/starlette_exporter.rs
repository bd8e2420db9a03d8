//! The metrics of starlette_exporter 0.23, for Python's FastAPI and Starlette.

use super::metric_set::{LabelSource, MethodNames, MetricSet, MetricSpec, RouteNames};
use crate::labels::endpoint::UNMATCHED;
use crate::labels::status::{OTHER, Statuses};

const ANSWERED: &[(&str, LabelSource)] = &[
    ("method", LabelSource::Method),
    ("path", LabelSource::Route),
    ("status_code", LabelSource::Status),
];

pub(super) const METRIC_SET: MetricSet = MetricSet {
    in_flight: MetricSpec {
        name: "starlette_requests_in_progress",
        help: "Total HTTP requests currently in progress",
        labels: &[("method", LabelSource::Method)],
    },
    requests: Some(MetricSpec {
        name: "starlette_requests_total",
        help: "Total HTTP requests",
        labels: ANSWERED,
    }),
    errors: None,
    outcomes: None,
    to_head: None,
    to_end: Some(MetricSpec {
        name: "starlette_request_duration_seconds",
        help: "HTTP request duration, in seconds",
        labels: ANSWERED,
    }),
    request_size: None,
    response_size: None,
    declared_request_size: false,
    // It records a request that has no response as a 500.
    statuses: Statuses::Codes { odd: OTHER, none: "500" },
    method_names: MethodNames::Sent { other: OTHER, query: true },
    route_names: RouteNames::Templates { unmatched: UNMATCHED },
    host: "host",
    durations: DURATIONS,
};

/// Those of Python's official client.
const DURATIONS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
