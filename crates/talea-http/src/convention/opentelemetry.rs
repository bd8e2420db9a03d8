//! OpenTelemetry's semantic conventions for HTTP servers, version 1.

use std::borrow::Cow;

use super::metric_set::LabelSource::{self, ErrorType, Method, Route, Scheme, Status, Version};
use super::metric_set::{MethodNames, MetricSet, MetricSpec, RouteNames, costs};
use crate::labels::outcome::Outcome;
use crate::labels::status::{OTHER, Statuses};

const ATTRIBUTES: &[(&str, LabelSource)] = &[
    ("http_request_method", Method),
    ("url_scheme", Scheme),
    ("http_route", Route),
    ("http_response_status_code", Status),
    ("error_type", ErrorType),
    ("network_protocol_version", Version),
];

pub(super) const METRIC_SET: MetricSet = MetricSet {
    in_flight: MetricSpec {
        name: "http_server_active_requests",
        help: "Number of active HTTP server requests.",
        labels: &[("http_request_method", Method), ("url_scheme", Scheme)],
    },
    to_end: Some(MetricSpec {
        name: "http_server_request_duration_seconds",
        help: "Duration of HTTP server requests.",
        labels: ATTRIBUTES,
    }),
    request_size: Some(MetricSpec {
        name: "http_server_request_body_size_bytes",
        help: "Size of HTTP server request bodies.",
        labels: ATTRIBUTES,
    }),
    response_size: Some(MetricSpec {
        name: "http_server_response_body_size_bytes",
        help: "Size of HTTP server response bodies.",
        labels: ATTRIBUTES,
    }),
    costs: Some(costs!(
        "http_server_request",
        &[("http_request_method", Method), ("http_route", Route)]
    )),
    statuses: Statuses::Codes { odd: OTHER, none: "" },
    method_names: MethodNames::Sent { other: OTHER, query: true },
    // The attribute exists only if a route is available. An empty label is an absent one.
    route_names: RouteNames::Templates { unmatched: "" },
    host: "server_address",
    ..MetricSet::DEFAULT
};

/// The attribute `error.type`: the reason for a failure, or empty. For a complete response it is
/// the status code, if that is a 5xx.
pub(crate) fn error_type(outcome: Outcome, status: Cow<'static, str>) -> Cow<'static, str> {
    match outcome {
        Outcome::Panicked => "panic".into(),
        Outcome::TimedOut => "timeout".into(),
        Outcome::Aborted | Outcome::Failed => "aborted".into(),
        Outcome::Complete if status.starts_with('5') => status,
        Outcome::Complete => "".into(),
    }
}

/// The attribute `error.type` of an outgoing request: the reason for which it has no response or no whole
/// one, or the status code of a 4xx or a 5xx.
pub(crate) fn client_error_type(
    outcome: Outcome,
    error: &'static str,
    status: Cow<'static, str>,
) -> Cow<'static, str> {
    match outcome {
        _ if !error.is_empty() => error.into(),
        Outcome::Failed => "body".into(),
        Outcome::Panicked => "panic".into(),
        _ if status.starts_with(['4', '5']) => status,
        Outcome::TimedOut => "timeout".into(),
        // A caller need not read the body.
        Outcome::Complete | Outcome::Aborted => "".into(),
    }
}
