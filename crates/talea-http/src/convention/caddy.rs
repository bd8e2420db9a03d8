//! The metrics of Caddy.

use super::metric_set::LabelSource::{self, Handler, Method, Server, Status};
use super::metric_set::{GO_DURATIONS, MethodNames, MetricSet, MetricSpec};
use super::prometheus::COSTS;
use crate::labels::status::{OTHER, Statuses};

const BASIC: &[(&str, LabelSource)] = &[("server", Server), ("handler", Handler)];

const RESPONSE: &[(&str, LabelSource)] =
    &[("server", Server), ("handler", Handler), ("code", Status), ("method", Method)];

pub(super) const METRIC_SET: MetricSet = MetricSet {
    in_flight: MetricSpec {
        name: "caddy_http_requests_in_flight",
        help: "Number of requests currently handled by this server.",
        labels: BASIC,
    },
    requests: Some(MetricSpec {
        name: "caddy_http_requests_total",
        help: "Counter of HTTP(S) requests made.",
        labels: BASIC,
    }),
    errors: Some(MetricSpec {
        name: "caddy_http_request_errors_total",
        help: "Number of requests resulting in middleware errors.",
        labels: BASIC,
    }),
    to_head: Some(MetricSpec {
        name: "caddy_http_response_duration_seconds",
        help: "Histogram of times to first byte in response bodies.",
        labels: RESPONSE,
    }),
    to_end: Some(MetricSpec {
        name: "caddy_http_request_duration_seconds",
        help: "Histogram of round-trip request durations.",
        labels: RESPONSE,
    }),
    request_size: Some(MetricSpec {
        name: "caddy_http_request_size_bytes",
        help: "Total size of the request. Includes body",
        labels: RESPONSE,
    }),
    response_size: Some(MetricSpec {
        name: "caddy_http_response_size_bytes",
        help: "Size of the returned response.",
        labels: RESPONSE,
    }),
    declared_request_size: true,
    // The status that proxies log if the client closed the connection.
    statuses: Statuses::Codes { odd: OTHER, none: "499" },
    method_names: MethodNames::Sent { other: "OTHER", query: false },
    durations: GO_DURATIONS,
    costs: Some(COSTS),
    ..MetricSet::DEFAULT
};
