//! Prometheus remote-write, 2.0 and 1.0.

mod collector;
pub(crate) mod message;
mod request;
mod spans;
mod verdict;

pub(crate) use self::collector::{Collector, millis};
pub(crate) use self::request::downgraded;
pub(crate) use self::verdict::verdict;

/// The version of the protocol that a receiver understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// With symbols, metadata and start timestamps.
    V2,
    V1,
}

impl Version {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::V2 => "application/x-protobuf;proto=io.prometheus.write.v2.Request",
            Self::V1 => "application/x-protobuf",
        }
    }

    /// The value of the header `X-Prometheus-Remote-Write-Version`.
    pub(crate) fn header(self) -> &'static str {
        match self {
            Self::V2 => "2.0.0",
            Self::V1 => "0.1.0",
        }
    }
}
