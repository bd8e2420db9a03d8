//! The metrics of gRPC calls: those of go-grpc-middleware, and OpenTelemetry's.

use super::metric_set::LabelSource::{
    self, Outcome, RpcError, RpcMethod, RpcName, RpcService, RpcSystem, RpcType, Status,
};
use super::metric_set::{CallSpecs, GO_DURATIONS, MetricSet, MetricSpec, costs};
use super::{Convention, Side};
use crate::labels::status::{RpcCodes, Statuses};

const METHOD: &[(&str, LabelSource)] =
    &[("grpc_type", RpcType), ("grpc_service", RpcService), ("grpc_method", RpcMethod)];

const HANDLED: &[(&str, LabelSource)] = &[
    ("grpc_type", RpcType),
    ("grpc_service", RpcService),
    ("grpc_method", RpcMethod),
    ("grpc_code", Status),
];

const OUTCOME: &[(&str, LabelSource)] = &[
    ("grpc_type", RpcType),
    ("grpc_service", RpcService),
    ("grpc_method", RpcMethod),
    ("outcome", Outcome),
];

const ATTRIBUTES: &[(&str, LabelSource)] = &[
    ("rpc_system_name", RpcSystem),
    ("rpc_method", RpcName),
    ("rpc_response_status_code", Status),
    ("error_type", RpcError),
];

/// The metrics of a convention, if it has any for gRPC.
pub(crate) fn metric_set(convention: Convention, side: Side) -> Option<MetricSet> {
    match (convention, side) {
        (Convention::Prometheus, Side::Server) => Some(MIDDLEWARE_SERVER),
        (Convention::Prometheus, Side::Client) => Some(MIDDLEWARE_CLIENT),
        (Convention::OpenTelemetry, Side::Server) => Some(OPENTELEMETRY_SERVER),
        (Convention::OpenTelemetry, Side::Client) => Some(OPENTELEMETRY_CLIENT),
        _ => None,
    }
}

/// The metrics of go-grpc-middleware's provider for Prometheus, with its names and help, and three of
/// this crate: calls in flight, outcomes, bytes.
macro_rules! middleware {
    ($side:literal, $on:literal, $of:literal) => {
        MetricSet {
            in_flight: MetricSpec {
                name: concat!("grpc_", $side, "_in_flight"),
                help: concat!("Number of RPCs in flight on the ", $side, "."),
                labels: METHOD,
            },
            requests: Some(MetricSpec {
                name: concat!("grpc_", $side, "_handled_total"),
                help: concat!(
                    "Total number of RPCs completed ",
                    $on,
                    ", regardless of success or failure."
                ),
                labels: HANDLED,
            }),
            outcomes: Some(MetricSpec {
                name: concat!("grpc_", $side, "_outcomes_total"),
                help: "RPCs that have ended, by how: complete, aborted, panicked or timed_out.",
                labels: OUTCOME,
            }),
            to_end: Some(MetricSpec {
                name: concat!("grpc_", $side, "_handling_seconds"),
                help: concat!("Histogram of response latency (seconds) of ", $of, "."),
                labels: METHOD,
            }),
            request_size: Some(MetricSpec {
                name: concat!("grpc_", $side, "_request_size_bytes"),
                help: "Bytes of a call's request messages, with their prefixes.",
                labels: METHOD,
            }),
            response_size: Some(MetricSpec {
                name: concat!("grpc_", $side, "_response_size_bytes"),
                help: "Bytes of a call's response messages, with their prefixes.",
                labels: METHOD,
            }),
            calls: Some(CallSpecs {
                started: MetricSpec {
                    name: concat!("grpc_", $side, "_started_total"),
                    help: concat!("Total number of RPCs started on the ", $side, "."),
                    labels: METHOD,
                },
                received: MetricSpec {
                    name: concat!("grpc_", $side, "_msg_received_total"),
                    help: concat!("Total number of RPC stream messages received ", $on, "."),
                    labels: METHOD,
                },
                sent: MetricSpec {
                    name: concat!("grpc_", $side, "_msg_sent_total"),
                    help: concat!("Total number of gRPC stream messages sent by the ", $side, "."),
                    labels: METHOD,
                },
            }),
            statuses: Statuses::Rpc(RpcCodes::MIDDLEWARE),
            durations: GO_DURATIONS,
            ..MetricSet::DEFAULT
        }
    };
}

const MIDDLEWARE_SERVER: MetricSet = MetricSet {
    costs: Some(costs!("grpc_server", METHOD)),
    ..middleware!(
        "server",
        "on the server",
        "gRPC that had been application-level handled by the server"
    )
};
const MIDDLEWARE_CLIENT: MetricSet =
    middleware!("client", "by the client", "the gRPC until it is finished by the application");

const OPENTELEMETRY_SERVER: MetricSet = MetricSet {
    in_flight: MetricSpec {
        name: "rpc_server_active_calls",
        help: "Number of incoming Remote Procedure Calls (RPC) in flight.",
        labels: &[("rpc_system_name", RpcSystem), ("rpc_method", RpcName)],
    },
    to_end: Some(MetricSpec {
        name: "rpc_server_call_duration_seconds",
        help: "Measures the duration of an incoming Remote Procedure Call (RPC).",
        labels: ATTRIBUTES,
    }),
    costs: Some(costs!(
        "rpc_server_call",
        &[("rpc_system_name", RpcSystem), ("rpc_method", RpcName)]
    )),
    statuses: Statuses::Rpc(RpcCodes::OPENTELEMETRY_SERVER),
    ..MetricSet::DEFAULT
};

const OPENTELEMETRY_CLIENT: MetricSet = MetricSet {
    in_flight: MetricSpec {
        name: "rpc_client_active_calls",
        help: "Number of outgoing Remote Procedure Calls (RPC) in flight.",
        labels: &[("rpc_system_name", RpcSystem), ("rpc_method", RpcName)],
    },
    to_end: Some(MetricSpec {
        name: "rpc_client_call_duration_seconds",
        help: "Measures the duration of an outgoing Remote Procedure Call (RPC).",
        labels: ATTRIBUTES,
    }),
    statuses: Statuses::Rpc(RpcCodes::OPENTELEMETRY_CLIENT),
    host: "server_address",
    ..MetricSet::DEFAULT
};
