//! The file as it is written: its sections and their fields.
//!
//! The names are those of Prometheus' web configuration. An optional key may also be
//! empty.

use std::collections::BTreeMap;

use anyhow::{Context, Error, Result};
use serde::Deserialize;
use serde_saphyr::UserMessageFormatter;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "sections by their names")]
pub(super) struct WebFile {
    pub(super) tls_server_config: Option<TlsSection>,
    pub(super) http_server_config: Option<HttpSection>,
    /// Names with their bcrypt hashes.
    pub(super) basic_auth_users: Option<BTreeMap<String, String>>,
    pub(super) rate_limit: Option<RateSection>,
}

#[derive(Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "fields by their names")]
pub(super) struct TlsSection {
    pub(super) cert: Option<String>,
    pub(super) cert_file: Option<String>,
    pub(super) key: Option<String>,
    pub(super) key_file: Option<String>,
    pub(super) client_auth_type: Option<String>,
    pub(super) client_ca: Option<String>,
    pub(super) client_ca_file: Option<String>,
    pub(super) client_allowed_sans: Option<Vec<String>>,
    pub(super) min_version: Option<String>,
    pub(super) max_version: Option<String>,
    pub(super) cipher_suites: Option<Vec<String>>,
    pub(super) prefer_server_cipher_suites: Option<bool>,
    pub(super) curve_preferences: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "fields by their names")]
pub(super) struct HttpSection {
    pub(super) http2: Option<bool>,
    pub(super) headers: Option<BTreeMap<String, Option<String>>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "fields by their names")]
pub(super) struct RateSection {
    pub(super) interval: Option<Interval>,
    pub(super) burst: Option<u32>,
}

/// A duration, as `1s`, or so many nanoseconds.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a duration such as 1s")]
pub(super) enum Interval {
    Nanoseconds(u64),
    Text(String),
}

impl WebFile {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(bytes).context("it is not UTF-8, expected YAML")?;
        // An empty file says nothing, as an empty section does.
        // The line is enough for a log.
        let options = serde_saphyr::options! { with_snippet: false };
        let file = serde_saphyr::from_str_with_options::<Option<Self>>(text, options)
            .map_err(|error| Error::msg(error.render_with_formatter(&UserMessageFormatter)))?;
        Ok(file.unwrap_or_default())
    }
}
