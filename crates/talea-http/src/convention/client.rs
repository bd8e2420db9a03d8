//! The metrics of outgoing requests.

use super::Convention;
use super::metric_set::LabelSource::{
    self, ClientErrorType, ErrorKind, Handler, Method, Outcome as OutcomeLabel, Route,
    ServerAddress, ServerPort, Status,
};
use super::metric_set::{MethodNames, MetricSet, MetricSpec, RouteNames};
use crate::labels::outcome::Outcome;
use crate::labels::status::{OTHER, Statuses};

const ENDPOINT: &[(&str, LabelSource)] =
    &[("method", Method), ("server", Handler), ("route", Route)];

const ATTRIBUTES: &[(&str, LabelSource)] = &[
    ("http_request_method", Method),
    ("server_address", ServerAddress),
    ("server_port", ServerPort),
    ("url_template", Route),
    ("http_response_status_code", Status),
    ("error_type", ClientErrorType),
];

/// What an error at registration is about.
pub(crate) const NAME: &str = "http_client_requests";

/// The metrics of a convention, if it has any for clients.
pub(crate) fn metric_set(convention: Convention) -> Option<MetricSet> {
    match convention {
        Convention::Prometheus => Some(PROMETHEUS),
        Convention::OpenTelemetry => Some(OPENTELEMETRY),
        _ => None,
    }
}

const PROMETHEUS: MetricSet = MetricSet {
    in_flight: MetricSpec {
        name: "http_client_requests_in_flight",
        help: "Requests that were sent and have not ended yet.",
        labels: ENDPOINT,
    },
    requests: Some(MetricSpec {
        name: "http_client_requests_total",
        help: "Requests by the status of their response, or by the error if there was no response.",
        labels: &[
            ("method", Method),
            ("server", Handler),
            ("route", Route),
            ("status", Status),
            ("error", ErrorKind),
        ],
    }),
    outcomes: Some(MetricSpec {
        name: "http_client_request_outcomes_total",
        help: "Requests that have ended, by how: complete, aborted, failed, panicked or timed_out.",
        labels: &[
            ("method", Method),
            ("server", Handler),
            ("route", Route),
            ("outcome", OutcomeLabel),
        ],
    }),
    to_head: Some(MetricSpec {
        name: "http_client_request_duration_seconds",
        help: "Time from the call of the client to the head of the response.",
        labels: ENDPOINT,
    }),
    to_end: Some(MetricSpec {
        name: "http_client_exchange_duration_seconds",
        help: "Time from the call of the client to the end of the response's body.",
        labels: ENDPOINT,
    }),
    request_size: Some(MetricSpec {
        name: "http_client_request_body_size_bytes",
        help: "Bytes of a request's body that were sent.",
        labels: ENDPOINT,
    }),
    response_size: Some(MetricSpec {
        name: "http_client_response_body_size_bytes",
        help: "Bytes of a response's body that were read.",
        labels: ENDPOINT,
    }),
    statuses: Statuses::Client { by_code: false },
    body_failure: Outcome::Failed,
    ..MetricSet::DEFAULT
};

const OPENTELEMETRY: MetricSet = MetricSet {
    in_flight: MetricSpec {
        name: "http_client_active_requests",
        help: "Number of active HTTP requests.",
        labels: &[
            ("http_request_method", Method),
            ("server_address", ServerAddress),
            ("server_port", ServerPort),
            ("url_template", Route),
        ],
    },
    to_end: Some(MetricSpec {
        name: "http_client_request_duration_seconds",
        help: "Duration of HTTP client requests.",
        labels: ATTRIBUTES,
    }),
    request_size: Some(MetricSpec {
        name: "http_client_request_body_size_bytes",
        help: "Size of HTTP client request bodies.",
        labels: ATTRIBUTES,
    }),
    response_size: Some(MetricSpec {
        name: "http_client_response_body_size_bytes",
        help: "Size of HTTP client response bodies.",
        labels: ATTRIBUTES,
    }),
    statuses: Statuses::Client { by_code: true },
    body_failure: Outcome::Failed,
    method_names: MethodNames::Sent { other: OTHER, query: true },
    route_names: RouteNames::Templates { unmatched: "" },
    ..MetricSet::DEFAULT
};
