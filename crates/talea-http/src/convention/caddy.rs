//! The metrics of Caddy, which meters each route once.

use super::{GO_DURATIONS, MethodNames, Paths, Set, Source, Told};
use crate::endpoints::UNMATCHED;
use crate::status::{OTHER, Statuses};

const BASIC: &[(&str, Source)] = &[("server", Source::Server), ("handler", Source::Handler)];

const ANSWERED: &[(&str, Source)] = &[
    ("server", Source::Server),
    ("handler", Source::Handler),
    ("code", Source::Status),
    ("method", Source::Method),
];

pub(super) const SET: Set = Set {
    in_flight: Told {
        name: "caddy_http_requests_in_flight",
        help: "Number of requests currently handled by this server.",
        labels: BASIC,
    },
    requests: Some(Told {
        name: "caddy_http_requests_total",
        help: "Counter of HTTP(S) requests made.",
        labels: BASIC,
    }),
    errors: Some(Told {
        name: "caddy_http_request_errors_total",
        help: "Number of requests resulting in middleware errors.",
        labels: BASIC,
    }),
    outcomes: None,
    to_head: Some(Told {
        name: "caddy_http_response_duration_seconds",
        help: "Histogram of times to first byte in response bodies.",
        labels: ANSWERED,
    }),
    to_end: Some(Told {
        name: "caddy_http_request_duration_seconds",
        help: "Histogram of round-trip request durations.",
        labels: ANSWERED,
    }),
    request_size: Some(Told {
        name: "caddy_http_request_size_bytes",
        help: "Total size of the request. Includes body",
        labels: ANSWERED,
    }),
    response_size: Some(Told {
        name: "caddy_http_response_size_bytes",
        help: "Size of the returned response.",
        labels: ANSWERED,
    }),
    declared_request_size: true,
    // What a proxy says of a client that went away.
    statuses: Statuses::Codes { odd: OTHER, none: "499" },
    methods: MethodNames::Sent { other: "OTHER", query: false },
    paths: Paths::Templates { unmatched: UNMATCHED },
    host: "host",
    durations: GO_DURATIONS,
};
