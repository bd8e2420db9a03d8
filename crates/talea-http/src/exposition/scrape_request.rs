//! The options of a scrape, read from its request.

use std::time::Duration;

use ::http::header::{ACCEPT, ACCEPT_ENCODING, AsHeaderName};
use ::http::{HeaderMap, Method, Uri};
use talea::{Escaping, Format};

#[derive(Clone, Debug)]
pub(super) struct ScrapeRequest {
    pub(super) format: Format,
    pub(super) escaping: Escaping,
    pub(super) coding: Coding,
    /// The families to show, by their names or the names of their samples; all if the list is empty.
    pub(super) names: Vec<String>,
    /// The time that the scraper waits, if it states one.
    pub(super) timeout: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Identity,
    #[cfg(feature = "gzip")]
    Gzip,
    #[cfg(feature = "zstd")]
    Zstd,
}

impl Coding {
    /// All codings; of several that a scraper names with the same weight, the last is chosen.
    const ALL: &[Self] = &[
        Self::Identity,
        #[cfg(feature = "gzip")]
        Self::Gzip,
        #[cfg(feature = "zstd")]
        Self::Zstd,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            #[cfg(feature = "gzip")]
            Self::Gzip => "gzip",
            #[cfg(feature = "zstd")]
            Self::Zstd => "zstd",
        }
    }

    fn negotiate(accept: &str) -> Option<Self> {
        let names: Vec<&str> = Self::ALL.iter().map(|coding| coding.as_str()).collect();
        Self::ALL.get(best_coding(accept, &names)?).copied()
    }
}

/// Whether a scrape of this Accept-Encoding header is to be compressed by gzip, if there is no other
/// compression.
#[doc(hidden)]
pub fn accepts_gzip(accept: &str) -> bool {
    best_coding(accept, &["identity", "gzip"]) == Some(1)
}

/// The place of the coding with the greatest weight in an Accept-Encoding header. `None` if the header
/// refuses all. Source: RFC 9110, 12.5.3.
///
/// Identity is accepted unless the header refuses it or everything else, but with less weight
/// than codings that the header names. Of codings with the same weight, a named one is
/// preferred to one that `*` covers, the last if several are named, and gzip if no coding is named,
/// since more clients read it.
fn best_coding(accept: &str, offered: &[&str]) -> Option<usize> {
    let mut others = None;
    let mut named = vec![None; offered.len()];
    for entry in accept.split(',') {
        let (name, parameters) = entry.split_once(';').unwrap_or((entry, ""));
        let (name, q) = (name.trim(), weight(parameters));
        if name == "*" {
            others = Some(q);
        }
        for (weight, own) in named.iter_mut().zip(offered) {
            if name.eq_ignore_ascii_case(own)
                || *own == "gzip" && name.eq_ignore_ascii_case("x-gzip")
            {
                *weight = Some(q);
            }
        }
    }
    let candidates = offered.iter().zip(named).enumerate().filter_map(|(n, (&coding, named))| {
        let is_identity = coding == "identity";
        // The least weight that is no refusal.
        let implied = (others != Some(0.0)).then_some(f64::MIN_POSITIVE);
        let weight = named.or(if is_identity { implied } else { others });
        let rank = match named {
            None if coding == "gzip" => 2,
            None => 1,
            Some(_) if is_identity => 0,
            Some(_) => 3,
        };
        Some((weight.filter(|&weight| weight > 0.0)?, rank, n))
    });
    let best = candidates.max_by(|(one, rank, _), (other, other_rank, _)| {
        one.total_cmp(other).then(rank.cmp(other_rank))
    });
    best.map(|(.., n)| n)
}

/// The reason for which a request gets no scrape.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refusal {
    Method,
    Encoding,
}

impl ScrapeRequest {
    pub(super) fn parse(method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Self, Refusal> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return Err(Refusal::Method);
        }
        let (format, escaping) = Format::negotiate(&joined(headers, ACCEPT));
        let coding = Coding::negotiate(&joined(headers, ACCEPT_ENCODING));
        let coding = coding.ok_or(Refusal::Encoding)?;
        let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let names = query.filter(|(key, _)| key == "name[]").map(|(_, name)| name.into_owned());
        let timeout = headers.get("x-prometheus-scrape-timeout-seconds");
        let timeout = timeout.and_then(|value| value.to_str().ok()?.trim().parse::<f64>().ok());
        let timeout = timeout.filter(|&seconds| seconds > 0.0);
        let timeout = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Ok(Self { format, escaping, coding, names: names.collect(), timeout })
    }
}

fn joined(headers: &HeaderMap, name: impl AsHeaderName) -> String {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.collect::<Vec<_>>().join(",")
}

/// The weight among the parameters of an entry. An invalid weight is a refusal.
fn weight(parameters: &str) -> f64 {
    let mut weights = parameters.split(';').filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| {
            let weight = value.trim().parse().ok().filter(|q: &f64| q.is_finite());
            weight.map_or(0.0, |q| q.clamp(0.0, 1.0))
        })
    });
    weights.next_back().unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "gzip")]
    use Coding::{Gzip, Identity};

    /// The coding if a scraper names both: zstd if it is built in.
    #[cfg(all(feature = "gzip", not(feature = "zstd")))]
    const ZSTD: Coding = Gzip;
    #[cfg(all(feature = "gzip", feature = "zstd"))]
    const ZSTD: Coding = Coding::Zstd;

    #[cfg(feature = "gzip")]
    #[test]
    fn a_scrape_is_compressed_as_the_scraper_prefers() {
        for (accept, expected) in [
            ("", Some(Identity)),
            ("gzip", Some(Gzip)),
            ("GZip", Some(Gzip)),
            ("x-gzip", Some(Gzip)),
            ("deflate, gzip, br", Some(Gzip)),
            ("deflate, gzip, br, zstd", Some(ZSTD)),
            ("deflate, br", Some(Identity)),
            ("gzip;q=0", Some(Identity)),
            ("gzip; Q=0.000", Some(Identity)),
            ("gzip;q=0.001", Some(Gzip)),
            ("gzip;q=nonsense", Some(Identity)),
            ("gzip;q=NaN", Some(Identity)),
            ("gzip;q=-1", Some(Identity)),
            ("gzip;q=0.5, identity", Some(Identity)),
            ("gzip;q=0.5, identity;q=0.5", Some(Gzip)),
            ("gzip;q=2, identity", Some(Gzip)),
            ("gzip, identity;q=0", Some(Gzip)),
            ("identity", Some(Identity)),
            ("*", Some(Gzip)),
            ("*;q=0.3, identity;q=0.4", Some(Identity)),
            ("*;q=0, gzip", Some(Gzip)),
            ("*;q=0, identity", Some(Identity)),
            ("*, identity;q=0", Some(Gzip)),
            ("*;q=0", None),
            ("identity;q=0", None),
            ("identity;q=0, br", None),
            ("gzip;q=0, identity;q=0", None),
            ("*;q=0, br", None),
            // The time is linear in the number of entries.
            (&"br;q=0.1,".repeat(100_000), Some(Identity)),
        ] {
            assert_eq!(Coding::negotiate(accept), expected, "{accept:.80}");
        }
    }

    #[cfg(all(feature = "gzip", feature = "zstd"))]
    #[test]
    fn zstd_is_chosen_only_if_it_is_named() {
        for (accept, expected) in [
            ("zstd", Some(ZSTD)),
            ("ZSTD;q=0.3", Some(ZSTD)),
            ("zstd;q=0.3, gzip;q=0.4", Some(Gzip)),
            ("zstd;q=0.4, gzip;q=0.3", Some(ZSTD)),
            ("gzip;q=0.4, zstd;q=0.4", Some(ZSTD)),
            ("zstd;q=0, *", Some(Gzip)),
            ("gzip, *", Some(Gzip)),
            ("gzip;q=0, *", Some(ZSTD)),
            ("gzip;q=0, identity;q=0, *;q=0.1", Some(ZSTD)),
            ("zstd;q=0, gzip;q=0, *", Some(Identity)),
            ("zstd;q=0, gzip;q=0, identity;q=0, *", None),
            ("*;q=0, zstd", Some(ZSTD)),
            ("identity, zstd;q=0.9", Some(Identity)),
        ] {
            assert_eq!(Coding::negotiate(accept), expected, "{accept}");
        }
    }

    #[test]
    fn the_timeout_is_a_positive_number_of_seconds() {
        for (text, expected) in [
            ("10", Some(10_000)),
            ("0.25", Some(250)),
            ("0", None),
            ("-1", None),
            ("NaN", None),
            ("1e300", None),
            ("soon", None),
        ] {
            let mut headers = HeaderMap::new();
            let value = ::http::HeaderValue::from_static(text);
            headers.insert("X-Prometheus-Scrape-Timeout-Seconds", value);
            let uri = Uri::from_static("/");
            let scrape = ScrapeRequest::parse(&Method::GET, &uri, &headers).unwrap();
            assert_eq!(scrape.timeout.map(|timeout| timeout.as_millis()), expected, "{text}");
        }
    }
}
