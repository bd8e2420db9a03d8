//! The metrics of servant-prometheus 0.2.0.0, with its names, help and thresholds.

use super::metric_set::LabelSource::{self, Method, Route, Status};
use super::metric_set::{MethodNames, MetricSet, MetricSpec, RouteNames};
use super::prometheus::COSTS;
use crate::labels::status::Statuses;

const ENDPOINT: &[(&str, LabelSource)] = &[("path", Route), ("method", Method)];

pub(super) const METRIC_SET: MetricSet = MetricSet {
    in_flight: MetricSpec {
        name: "http_requests_in_flight",
        help: "Total http requests in flight.",
        labels: ENDPOINT,
    },
    requests: Some(MetricSpec {
        name: "http_responses_total",
        help: "Total number of http responses by their statuses.",
        labels: &[("path", Route), ("method", Method), ("status", Status)],
    }),
    to_end: Some(MetricSpec {
        name: "http_request_duration_seconds",
        help: "Request latency in seconds",
        labels: ENDPOINT,
    }),
    statuses: Statuses::Servant,
    method_names: MethodNames::Declared { rest: "" },
    route_names: RouteNames::Servant,
    durations: DURATIONS,
    costs: Some(COSTS),
    ..MetricSet::DEFAULT
};

/// `defaultBuckets` of its module `Servant.Prometheus.Internal.Latency`.
const DURATIONS: &[f64] = &[
    0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1, 0.125, 0.15, 0.175, 0.2,
    0.225, 0.25, 0.275, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 2.0, 3.0, 4.0, 5.0,
];
