//! The default.

use super::{MethodNames, OTEL_DURATIONS, Paths, Set, Source, Told};
use crate::endpoints::UNMATCHED;
use crate::status::{OTHER, Statuses};

const ENDPOINT: &[(&str, Source)] = &[("method", Source::Method), ("route", Source::Route)];

pub(super) const SET: Set = Set {
    in_flight: Told {
        name: "http_requests_in_flight",
        help: "Requests that are being answered.",
        labels: ENDPOINT,
    },
    requests: Some(Told {
        name: "http_requests_total",
        help: "Requests answered, by the status of the response.",
        labels: &[("method", Source::Method), ("route", Source::Route), ("status", Source::Status)],
    }),
    errors: None,
    outcomes: Some(Told {
        name: "http_request_outcomes_total",
        help: "Requests that have ended, by how: complete, aborted, panicked or timed_out.",
        labels: &[
            ("method", Source::Method),
            ("route", Source::Route),
            ("outcome", Source::Outcome),
        ],
    }),
    to_head: Some(Told {
        name: "http_request_duration_seconds",
        help: "Time from a request's arrival at its route to the head of the response.",
        labels: ENDPOINT,
    }),
    to_end: Some(Told {
        name: "http_exchange_duration_seconds",
        help: "Time from a request's arrival at its route to the end of the response's body.",
        labels: ENDPOINT,
    }),
    request_size: Some(Told {
        name: "http_request_body_size_bytes",
        help: "Bytes of a request's body that were read.",
        labels: ENDPOINT,
    }),
    response_size: Some(Told {
        name: "http_response_body_size_bytes",
        help: "Bytes of a response's body that were sent.",
        labels: ENDPOINT,
    }),
    declared_request_size: false,
    statuses: Statuses::Classes,
    methods: MethodNames::Declared { rest: OTHER },
    paths: Paths::Templates { unmatched: UNMATCHED },
    host: "host",
    durations: OTEL_DURATIONS,
};
