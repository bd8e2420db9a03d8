//! What a receiver responded.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

/// A response, with the beginning of its body.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    #[cfg_attr(not(feature = "grpc"), allow(dead_code))]
    pub(crate) trailers: HeaderMap,
    /// Whether the body did not end early.
    pub(crate) is_whole: bool,
}
