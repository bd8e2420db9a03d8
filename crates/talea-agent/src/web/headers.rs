//! Headers that the file adds to each response: those that tell browsers to be careful.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, bail};
use hyper::header::{
    CONTENT_SECURITY_POLICY, HeaderMap, HeaderName, HeaderValue, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS, X_XSS_PROTECTION,
};

/// The headers that may be set, and their values where only some are allowed. Others could break
/// the answer itself.
const ALLOWED: [(&str, HeaderName, &[&str]); 5] = [
    ("Content-Security-Policy", CONTENT_SECURITY_POLICY, &[]),
    ("Strict-Transport-Security", STRICT_TRANSPORT_SECURITY, &[]),
    ("X-Content-Type-Options", X_CONTENT_TYPE_OPTIONS, &["nosniff"]),
    ("X-Frame-Options", X_FRAME_OPTIONS, &["deny", "sameorigin"]),
    ("X-XSS-Protection", X_XSS_PROTECTION, &[]),
];

pub(super) fn from(given: BTreeMap<String, Option<String>>) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let allowed = ALLOWED.iter().find(|(allowed, ..)| allowed.eq_ignore_ascii_case(&name));
        let (_, header, values) = allowed.ok_or_else(|| {
            let names = ALLOWED.map(|(name, ..)| name).join(", ");
            anyhow!("{name} cannot be set, expected one of {names}")
        })?;
        let value = value.unwrap_or_default();
        if value.is_empty() {
            continue;
        }
        if !values.is_empty() && !values.contains(&value.as_str()) {
            bail!("{name} is {value:?}, expected {}", values.join(" or "));
        }
        let value = HeaderValue::from_str(&value)
            .with_context(|| format!("{name} is {value:?}, expected visible characters"))?;
        headers.insert(header, value);
    }
    Ok(headers)
}
