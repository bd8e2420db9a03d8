//! The size of a request: as its head declares it, or as the bytes of its body that pass.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, Version};
use talea::{Bytes, Histogram};

use super::attributes::RequestHead;

#[derive(Debug)]
pub(super) enum RequestSize {
    /// The body counts its bytes and records them.
    RecordedByBody,
    /// It was known when the request arrived.
    Known(u64),
    /// The body counts its bytes, and the exchange records them.
    Shared(Arc<AtomicU64>),
}

#[derive(Debug)]
pub(crate) enum RequestBytes {
    /// Records them when the body is dropped.
    Recorded { bytes: u64, histogram: &'static Histogram<Bytes> },
    /// Shares them with the exchange.
    Shared(Arc<AtomicU64>),
    /// Counts nothing: the size is not recorded, or was known when the request arrived. The
    /// body may still end with an error.
    Ignored,
}

impl RequestBytes {
    #[inline]
    pub(super) fn add(&mut self, passed: u64) {
        match self {
            Self::Recorded { bytes, .. } => *bytes += passed,
            Self::Shared(bytes) => {
                bytes.fetch_add(passed, Relaxed);
            }
            Self::Ignored => {}
        }
    }
}

impl Drop for RequestBytes {
    fn drop(&mut self) {
        if let Self::Recorded { bytes, histogram } = self {
            histogram.observe(*bytes);
        }
    }
}

/// The approximate size of a request, without its body if that declares no length: method, target,
/// version, headers, body. Prometheus' client for Go computes it in the same way.
pub(super) fn declared_size(request: RequestHead<'_>) -> u64 {
    let RequestHead { method, uri, version, headers, .. } = request;
    let line = method.as_str().len() + target_len(uri) + version_len(version);
    let size = line
        + headers
            .iter()
            .map(|(name, value): (&HeaderName, &HeaderValue)| {
                name.as_str().len() + value.as_bytes().len()
            })
            .sum::<usize>();
    // A head may declare any length.
    content_length(headers).unwrap_or(0).saturating_add(size as u64)
}

fn target_len(uri: &Uri) -> usize {
    let path = uri.path_and_query().map_or(0, |path| path.as_str().len());
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
    path + authority
}

fn version_len(version: Version) -> usize {
    match version {
        Version::HTTP_2 => "HTTP/2.0".len(),
        Version::HTTP_3 => "HTTP/3.0".len(),
        _ => "HTTP/1.1".len(),
    }
}

pub(super) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}
