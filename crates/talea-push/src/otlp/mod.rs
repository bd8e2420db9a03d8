//! OpenTelemetry's protocol, OTLP 1.11, over HTTP.

mod collector;
mod environment;
pub(crate) mod message;
mod verdict;

pub(crate) use self::collector::Collector;
pub(crate) use self::verdict::verdict;

pub(crate) const CONTENT_TYPE: &str = "application/x-protobuf";
