//! The page's own files. `scripts/web build` makes them from the folder `web`.

use std::io::Write;
use std::sync::OnceLock;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// A file, which is the same as long as the program runs.
#[derive(Debug)]
pub(super) struct Asset {
    content_type: &'static str,
    content: &'static [u8],
    /// Compressed, and the tag of this version.
    made: OnceLock<(Bytes, HeaderValue)>,
}

macro_rules! asset {
    ($content_type:literal, $path:literal) => {
        Asset {
            content_type: $content_type,
            content: include_bytes!(concat!("../../page/", $path)),
            made: OnceLock::new(),
        }
    };
}

pub(super) static HTML: Asset = asset!("text/html; charset=utf-8", "index.html");
pub(super) static SCRIPT: Asset = asset!("text/javascript; charset=utf-8", "page.js");
pub(super) static STYLE: Asset = asset!("text/css; charset=utf-8", "page.css");

/// The page asks nobody but its server, runs no script and takes no style but its own, and no other page shows
/// it. Labels are the work of strangers.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const SAFETY: [(HeaderName, HeaderValue); 5] = [
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

/// Adds the headers of each answer, where it has no other.
pub fn add_safety(headers: &mut HeaderMap) {
    for (name, value) in SAFETY {
        headers.entry(name).or_insert(value);
    }
}

impl Asset {
    pub(super) fn answer(&'static self, asked: &HeaderMap) -> Response {
        let (compressed, tag) = self.made.get_or_init(|| (gzip(self.content), tag(self.content)));
        let mut headers = HeaderMap::new();
        headers.insert(header::ETAG, tag.clone());
        // It is asked each time whether it changed.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if asked.get(header::IF_NONE_MATCH) == Some(tag) {
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        if !takes_gzip(asked) {
            return (headers, self.content).into_response();
        }
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        (headers, compressed.clone()).into_response()
    }
}

fn tag(content: &[u8]) -> HeaderValue {
    let tag = format!("\"{:08x}-{:x}\"", crc32fast::hash(content), content.len());
    HeaderValue::try_from(tag).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Whether a client takes gzip; a client that takes it reluctantly is sent no gzip.
pub(super) fn takes_gzip(asked: &HeaderMap) -> bool {
    let names = asked.get_all(header::ACCEPT_ENCODING).into_iter();
    let names = names.filter_map(|names| names.to_str().ok()).flat_map(|names| names.split(','));
    names.map(str::trim).any(|name| name.eq_ignore_ascii_case("gzip"))
}

pub(super) fn gzip(content: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Memory takes all that is written to it.
    let _ = encoder.write_all(content);
    encoder.finish().unwrap_or_default().into()
}
