//! A convention as data: its metrics, their labels, and how label values are named.

use std::borrow::Cow;

use talea::HttpMethod;

use crate::labels::endpoint::{EndpointLabels, Methods, UNMATCHED};
use crate::labels::outcome::Outcome;
use crate::labels::status::{OTHER, Statuses};

#[derive(Clone, Copy, Debug)]
pub(crate) struct MetricSet {
    pub(crate) in_flight: MetricSpec,
    /// Counts requests once their status is known.
    pub(crate) requests: Option<MetricSpec>,
    /// Counts requests that failed, see [`HandlerError`](crate::HandlerError).
    pub(crate) errors: Option<MetricSpec>,
    /// Counts requests when they have ended.
    pub(crate) outcomes: Option<MetricSpec>,
    pub(crate) to_head: Option<MetricSpec>,
    /// Time to the end of the response's body.
    pub(crate) to_end: Option<MetricSpec>,
    pub(crate) request_size: Option<MetricSpec>,
    pub(crate) response_size: Option<MetricSpec>,
    pub(crate) calls: Option<CallSpecs>,
    /// On request, by [`Opts::costs`](crate::Opts::costs).
    pub(crate) costs: Option<CostSpecs>,
    /// Whether a request's size includes its line, headers and declared body, and is known
    /// when it arrives. Otherwise it is the number of bytes of its body that pass.
    pub(crate) declared_request_size: bool,
    pub(crate) statuses: Statuses,
    /// The outcome if the body of a response fails.
    pub(crate) body_failure: Outcome,
    pub(crate) method_names: MethodNames,
    pub(crate) route_names: RouteNames,
    /// The label of a listed host.
    pub(crate) host: &'static str,
    pub(crate) durations: &'static [f64],
}

impl MetricSet {
    /// The values of the fields that a convention leaves out.
    pub(super) const DEFAULT: Self = Self {
        in_flight: MetricSpec { name: "", help: "", labels: &[] },
        requests: None,
        errors: None,
        outcomes: None,
        to_head: None,
        to_end: None,
        request_size: None,
        response_size: None,
        calls: None,
        costs: None,
        declared_request_size: false,
        statuses: Statuses::Classes,
        body_failure: Outcome::Aborted,
        method_names: MethodNames::Declared { rest: OTHER },
        route_names: RouteNames::Templates { unmatched: UNMATCHED },
        host: "host",
        durations: OTEL_DURATIONS,
    };

    /// Whether a metric has no label of a response: a request in flight has none yet, and what it costs is
    /// known without one.
    pub(crate) fn is_before_response(&self, spec: MetricSpec) -> bool {
        let costs = self.costs.iter().flat_map(CostSpecs::all);
        costs.chain([self.in_flight]).any(|other| other.name == spec.name)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct MetricSpec {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) labels: &'static [(&'static str, LabelSource)],
}

/// Counters that only gRPC calls have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSpecs {
    pub(crate) started: MetricSpec,
    /// Messages from the other side, and to it.
    pub(crate) received: MetricSpec,
    pub(crate) sent: MetricSpec,
}

/// What requests cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CostSpecs {
    pub(crate) cpu: MetricSpec,
    pub(crate) polls: MetricSpec,
    pub(crate) waiting: MetricSpec,
    pub(crate) allocations: MetricSpec,
    pub(crate) allocated: MetricSpec,
}

impl CostSpecs {
    fn all(&self) -> [MetricSpec; 5] {
        [self.cpu, self.polls, self.waiting, self.allocations, self.allocated]
    }
}

/// The metrics of what requests cost, whose names begin with these words.
macro_rules! costs {
    ($name:literal, $labels:expr) => {
        $crate::convention::metric_set::CostSpecs {
            cpu: $crate::convention::metric_set::MetricSpec {
                name: concat!($name, "_cpu_seconds"),
                help: "CPU time of the polls of a request's handler, to the head of the response.",
                labels: $labels,
            },
            polls: $crate::convention::metric_set::MetricSpec {
                name: concat!($name, "_polls_total"),
                help: "Polls of handlers, of requests whose response's head is sent or that have ended.",
                labels: $labels,
            },
            waiting: $crate::convention::metric_set::MetricSpec {
                name: concat!($name, "_waiting_seconds"),
                help: "Time to the head of the response in which a request's handler was not polled.",
                labels: $labels,
            },
            allocations: $crate::convention::metric_set::MetricSpec {
                name: concat!($name, "_allocations_total"),
                help: "Allocations in polls of handlers, of the requests whose polls are counted.",
                labels: $labels,
            },
            allocated: $crate::convention::metric_set::MetricSpec {
                name: concat!($name, "_allocated_bytes_total"),
                help: "Bytes allocated in polls of handlers, of the requests whose polls are counted.",
                labels: $labels,
            },
        }
    };
}
pub(super) use costs;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LabelSource {
    // Of the endpoint's declaration, and of the service.
    Route,
    Handler,
    Server,
    /// Of an outgoing request's server.
    ServerAddress,
    ServerPort,
    /// Of a gRPC method: `grpc`; `shop.v1.Shop/Get`, and its two parts; whether messages are streamed.
    RpcSystem,
    RpcName,
    RpcService,
    RpcMethod,
    RpcType,
    /// The n-th constant label of the user.
    Constant(usize),
    // Of the request, when it arrives.
    Method,
    Scheme,
    Version,
    Host,
    /// The user's n-th label from a request's extensions.
    Request(usize),
    // Of its response.
    Status,
    /// The error of an outgoing request without a response.
    ErrorKind,
    /// The status of a gRPC call, if it is an error.
    RpcError,
    /// The user's n-th label from a response's extensions.
    Response(usize),
    // Of its end.
    ErrorType,
    ClientErrorType,
    Outcome,
}

/// The stage of a request at which a label's value is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Declaration,
    Arrival,
    Response,
    End,
}

impl LabelSource {
    pub(crate) fn stage(self) -> Stage {
        match self {
            Self::Route
            | Self::Handler
            | Self::Server
            | Self::ServerAddress
            | Self::ServerPort
            | Self::RpcSystem
            | Self::RpcName
            | Self::RpcService
            | Self::RpcMethod
            | Self::RpcType
            | Self::Constant(_) => Stage::Declaration,
            Self::Method | Self::Scheme | Self::Version | Self::Host | Self::Request(_) => {
                Stage::Arrival
            }
            Self::Status | Self::ErrorKind | Self::RpcError | Self::Response(_) => Stage::Response,
            Self::ErrorType | Self::ClientErrorType | Self::Outcome => Stage::End,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum MethodNames {
    /// As they are declared: a `HEAD` that a `GET` endpoint answers is a `GET`.
    Declared {
        /// The name of the methods that a route does not declare.
        rest: &'static str,
    },
    /// As they are sent; unknown ones have one name.
    Sent { other: &'static str, query: bool },
}

impl MethodNames {
    /// Whether an endpoint has meters for each method that is sent.
    pub(crate) fn are_separate(self, methods: Methods) -> bool {
        matches!((self, methods), (Self::Sent { .. }, _) | (_, Methods::Each))
    }

    pub(crate) fn name(self, methods: Methods, sent: HttpMethod) -> &'static str {
        match (self, methods) {
            (Self::Declared { .. }, Methods::One(method)) => method.as_str(),
            (Self::Declared { .. }, Methods::Each) => sent.as_str(),
            (Self::Declared { rest }, Methods::Rest) => rest,
            (Self::Sent { other, query }, _) => match sent {
                HttpMethod::Other => other,
                HttpMethod::Query if !query => other,
                method => method.as_str(),
            },
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum RouteNames {
    /// `/items/{id}`
    Templates {
        /// The name if no route matched.
        unmatched: &'static str,
    },
    /// As servant-prometheus names them: `items/:id`, without `CaptureAll`, and empty for
    /// requests that no endpoint answers.
    Servant,
}

impl RouteNames {
    pub(crate) fn name(self, endpoint: &EndpointLabels) -> Cow<'static, str> {
        let EndpointLabels { route, methods, .. } = *endpoint;
        match self {
            Self::Templates { unmatched } if route == UNMATCHED => unmatched.into(),
            Self::Templates { .. } => route.into(),
            Self::Servant if methods == Methods::Rest => "".into(),
            Self::Servant => {
                let segments = route.strip_prefix('/').unwrap_or(route).split('/');
                segments.filter_map(servant_segment).collect::<Vec<_>>().join("/").into()
            }
        }
    }
}

/// A template's segment as servant-prometheus names it, if it does.
fn servant_segment(segment: &str) -> Option<Cow<'_, str>> {
    let capture = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    match capture {
        // Doubled braces stand for one.
        Some(name) if name.starts_with('{') => {}
        Some(name) if name.starts_with('*') => return None,
        Some(name) => return Some(format!(":{name}").into()),
        None => {}
    }
    Some(segment.replace("{{", "{").replace("}}", "}").into())
}

/// The thresholds of CPU times.
pub(crate) const CPU_TIMES: &[f64] = &[0.000_01, 0.000_1, 0.001, 0.01, 0.1, 1.0];

/// The thresholds of Prometheus' client for Go, and of Caddy.
pub(super) const GO_DURATIONS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The thresholds of OpenTelemetry's semantic conventions, and of Python's official client.
pub(super) const OTEL_DURATIONS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servants_route_names_are_those_of_servant_prometheus() {
        let one = Methods::One(HttpMethod::Get);
        for (methods, route, path) in [
            (one, "/profile/{username}", "profile/:username"),
            (one, "/items/{id}/x/{*rest}", "items/:id/x"),
            (Methods::Each, "/items/{{id}}", "items/{id}"),
            (one, "/", ""),
            (Methods::Rest, "/items", ""),
            (Methods::Rest, UNMATCHED, ""),
        ] {
            let endpoint = EndpointLabels { methods, route, handler: "" };
            assert_eq!(RouteNames::Servant.name(&endpoint), path);
            let unmatched = if route == UNMATCHED { "none" } else { route };
            assert_eq!(RouteNames::Templates { unmatched: "none" }.name(&endpoint), unmatched);
        }
    }
}
