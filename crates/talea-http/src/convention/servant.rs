//! The metrics of servant-prometheus 0.2.0.0, with its names, help and thresholds.

use super::{MethodNames, Paths, Set, Source, Told};
use crate::status::Statuses;

const ENDPOINT: &[(&str, Source)] = &[("path", Source::Route), ("method", Source::Method)];

pub(super) const SET: Set = Set {
    in_flight: Told {
        name: "http_requests_in_flight",
        help: "Total http requests in flight.",
        labels: ENDPOINT,
    },
    requests: Some(Told {
        name: "http_responses_total",
        help: "Total number of http responses by their statuses.",
        labels: &[("path", Source::Route), ("method", Source::Method), ("status", Source::Status)],
    }),
    errors: None,
    outcomes: None,
    to_head: None,
    to_end: Some(Told {
        name: "http_request_duration_seconds",
        help: "Request latency in seconds",
        labels: ENDPOINT,
    }),
    request_size: None,
    response_size: None,
    declared_request_size: false,
    statuses: Statuses::Servant,
    methods: MethodNames::Declared { rest: "" },
    paths: Paths::Servant,
    host: "host",
    durations: DURATIONS,
};

/// `defaultBuckets` of its module `Servant.Prometheus.Internal.Latency`.
const DURATIONS: &[f64] = &[
    0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1, 0.125, 0.15, 0.175, 0.2,
    0.225, 0.25, 0.275, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 2.0, 3.0, 4.0, 5.0,
];
