//! What a request asks for.

use std::time::Duration;

use ::http::header::{ACCEPT, ACCEPT_ENCODING, AsHeaderName};
use ::http::{HeaderMap, Method, Uri};
use talea::{Escaping, Format};

/// A scrape as it was asked for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) format: Format,
    pub(super) escaping: Escaping,
    pub(super) gzip: bool,
    /// The families that are wanted; all where none is named.
    pub(super) names: Vec<String>,
    /// How long the scraper waits, if it says so.
    pub(super) within: Option<Duration>,
}

/// Why a request gets no scrape.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refused {
    Method,
    Encoding,
}

impl Asked {
    pub(super) fn of(method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Self, Refused> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return Err(Refused::Method);
        }
        let (format, escaping) = Format::negotiate(&all(headers, ACCEPT));
        let gzip = gzip(&all(headers, ACCEPT_ENCODING)).ok_or(Refused::Encoding)?;
        let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let names = query.filter(|(key, _)| key == "name[]").map(|(_, name)| name.into_owned());
        let within = headers.get("x-prometheus-scrape-timeout-seconds");
        let within = within.and_then(|value| value.to_str().ok()?.trim().parse::<f64>().ok());
        let within = within.filter(|&seconds| seconds > 0.0);
        let within = within.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Ok(Self { format, escaping, gzip, names: names.collect(), within })
    }

    /// Whether a family is wanted.
    pub(super) fn wants(&self, family: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| name == family)
    }
}

/// A header's lines as one.
fn all(headers: &HeaderMap, name: impl AsHeaderName) -> String {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.collect::<Vec<_>>().join(",")
}

/// Whether an Accept-Encoding header wants gzip; `None` where it takes neither that nor
/// what is not compressed. Source: RFC 9110, 12.5.3.
fn gzip(accept: &str) -> Option<bool> {
    let (mut gzip, mut identity, mut others) = (None, None, None);
    for entry in accept.split(',') {
        let (coding, parameters) = entry.split_once(';').unwrap_or((entry, ""));
        let q = q(parameters);
        match coding.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => gzip = Some(q),
            "identity" => identity = Some(q),
            "*" => others = Some(q),
            _ => {}
        }
    }
    let gzip = gzip.or(others).unwrap_or(0.0);
    match identity {
        // What is not compressed is always taken, unless it is said not to be, but not
        // rather than what is named.
        None if gzip > 0.0 => Some(true),
        None => (others != Some(0.0)).then_some(false),
        Some(identity) if gzip > 0.0 && gzip >= identity => Some(true),
        Some(identity) => (identity > 0.0).then_some(false),
    }
}

/// The weight among an entry's parameters. One that is no weight refuses.
fn q(parameters: &str) -> f64 {
    let mut weights = parameters.split(';').filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim().parse().unwrap_or(0.0))
    });
    weights.next_back().unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_for_who_asks_for_it() {
        for (accept, expected) in [
            ("", Some(false)),
            ("gzip", Some(true)),
            ("GZip", Some(true)),
            ("x-gzip", Some(true)),
            ("deflate, gzip, br, zstd", Some(true)),
            ("deflate, br", Some(false)),
            ("gzip;q=0", Some(false)),
            ("gzip; Q=0.000", Some(false)),
            ("gzip;q=0.001", Some(true)),
            ("gzip;q=nonsense", Some(false)),
            ("gzip;q=0.5, identity", Some(false)),
            ("gzip;q=0.5, identity;q=0.5", Some(true)),
            ("gzip, identity;q=0", Some(true)),
            ("identity", Some(false)),
            ("*", Some(true)),
            ("*;q=0.3, identity;q=0.4", Some(false)),
            ("*;q=0, gzip", Some(true)),
            ("*, gzip;q=0", Some(false)),
            ("*;q=0, identity", Some(false)),
            ("*;q=0", None),
            ("identity;q=0", None),
            ("identity;q=0, br", None),
            ("gzip;q=0, identity;q=0", None),
        ] {
            assert_eq!(gzip(accept), expected, "{accept}");
        }
    }

    #[test]
    fn a_scrapers_patience_is_a_number_of_seconds() {
        for (said, expected) in [
            ("10", Some(10_000)),
            ("0.25", Some(250)),
            ("0", None),
            ("-1", None),
            ("NaN", None),
            ("1e300", None),
            ("soon", None),
        ] {
            let mut headers = HeaderMap::new();
            let value = ::http::HeaderValue::from_static(said);
            headers.insert("X-Prometheus-Scrape-Timeout-Seconds", value);
            let asked = Asked::of(&Method::GET, &Uri::from_static("/"), &headers).unwrap();
            assert_eq!(asked.within.map(|within| within.as_millis()), expected, "{said}");
        }
    }
}
