//! OpenTelemetry's semantic conventions for HTTP servers, version 1.

use std::borrow::Cow;

use super::{MethodNames, OTEL_DURATIONS, Paths, Set, Source, Told};
use crate::outcome::Outcome;
use crate::status::{OTHER, Statuses};

const ATTRIBUTES: &[(&str, Source)] = &[
    ("http_request_method", Source::Method),
    ("url_scheme", Source::Scheme),
    ("http_route", Source::Route),
    ("http_response_status_code", Source::Status),
    ("error_type", Source::ErrorType),
    ("network_protocol_version", Source::Version),
];

pub(super) const SET: Set = Set {
    in_flight: Told {
        name: "http_server_active_requests",
        help: "Number of active HTTP server requests.",
        labels: &[("http_request_method", Source::Method), ("url_scheme", Source::Scheme)],
    },
    requests: None,
    errors: None,
    outcomes: None,
    to_head: None,
    to_end: Some(Told {
        name: "http_server_request_duration_seconds",
        help: "Duration of HTTP server requests.",
        labels: ATTRIBUTES,
    }),
    request_size: Some(Told {
        name: "http_server_request_body_size_bytes",
        help: "Size of HTTP server request bodies.",
        labels: ATTRIBUTES,
    }),
    response_size: Some(Told {
        name: "http_server_response_body_size_bytes",
        help: "Size of HTTP server response bodies.",
        labels: ATTRIBUTES,
    }),
    declared_request_size: false,
    statuses: Statuses::Codes { odd: OTHER, none: "" },
    methods: MethodNames::Sent { other: OTHER, query: true },
    // The attribute is there if a route is available, and only then. An empty label is none.
    paths: Paths::Templates { unmatched: "" },
    host: "server_address",
    durations: OTEL_DURATIONS,
};

/// The attribute `error.type`: why a request failed, empty where it did not. For a
/// response that is its code, if it is a server's error.
pub(crate) fn error_type(outcome: Outcome, status: Cow<'static, str>) -> Cow<'static, str> {
    match outcome {
        Outcome::Panicked => "panic".into(),
        Outcome::TimedOut => "timeout".into(),
        Outcome::Aborted => "aborted".into(),
        Outcome::Complete if status.starts_with('5') => status,
        Outcome::Complete => "".into(),
    }
}
