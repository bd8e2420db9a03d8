//! OpenTelemetry's protocol, OTLP 1.11, over HTTP or gRPC.

mod collector;
#[cfg(target_os = "linux")]
mod context;
mod deltas;
mod environment;
#[cfg(feature = "grpc")]
pub(crate) mod grpc;
pub(crate) mod message;
mod verdict;

pub(crate) use self::collector::Collector;
pub(crate) use self::deltas::Deltas;
pub(crate) use self::verdict::verdict;

pub(crate) const CONTENT_TYPE: &str = "application/x-protobuf";
