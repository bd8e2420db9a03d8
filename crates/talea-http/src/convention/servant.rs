//! What servant-prometheus tells.

use super::{GO_DURATIONS, MethodNames, Paths, Set, Source, Told};
use crate::status::Statuses;

const ENDPOINT: &[(&str, Source)] = &[("path", Source::Route), ("method", Source::Method)];

pub(super) const SET: Set = Set {
    in_flight: Told {
        name: "http_requests_in_flight",
        help: "Requests that are being answered.",
        labels: ENDPOINT,
    },
    requests: Some(Told {
        name: "http_responses_total",
        help: "Responses, by the class of their status.",
        labels: &[("path", Source::Route), ("method", Source::Method), ("status", Source::Status)],
    }),
    errors: None,
    outcomes: None,
    to_head: None,
    to_end: Some(Told {
        name: "http_request_duration_seconds",
        help: "Time from a request's arrival at its endpoint to the end of its response.",
        labels: ENDPOINT,
    }),
    request_size: None,
    response_size: None,
    declared_request_size: false,
    statuses: Statuses::Servant,
    methods: MethodNames::Declared,
    paths: Paths::Captures,
    host: "host",
    durations: GO_DURATIONS,
};
