//! The metrics of starlette_exporter 0.23, for Python's FastAPI and Starlette.

use super::metric_set::LabelSource::{self, Method, Route, Status};
use super::metric_set::{MethodNames, MetricSet, MetricSpec};
use super::prometheus::COSTS;
use crate::labels::status::{OTHER, Statuses};

const RESPONSE: &[(&str, LabelSource)] =
    &[("method", Method), ("path", Route), ("status_code", Status)];

pub(super) const METRIC_SET: MetricSet = MetricSet {
    in_flight: MetricSpec {
        name: "starlette_requests_in_progress",
        help: "Total HTTP requests currently in progress",
        labels: &[("method", Method)],
    },
    requests: Some(MetricSpec {
        name: "starlette_requests_total",
        help: "Total HTTP requests",
        labels: RESPONSE,
    }),
    to_end: Some(MetricSpec {
        name: "starlette_request_duration_seconds",
        help: "HTTP request duration, in seconds",
        labels: RESPONSE,
    }),
    // It records a request that has no response as a 500.
    statuses: Statuses::Codes { odd: OTHER, none: "500" },
    method_names: MethodNames::Sent { other: OTHER, query: true },
    costs: Some(COSTS),
    ..MetricSet::DEFAULT
};
