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
    pub(super) coding: Coding,
    /// The families that are wanted, by their names or those of their samples; all where none is
    /// named.
    pub(super) names: Vec<String>,
    /// How long the scraper waits, if it says so.
    pub(super) within: Option<Duration>,
}

/// How a response is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// Not at all.
    Identity,
    #[cfg(feature = "gzip")]
    Gzip,
    #[cfg(feature = "zstd")]
    Zstd,
}

impl Coding {
    /// All of them; of several that a scraper names with the same weight, the last is chosen.
    const ALL: &[Self] = &[
        Self::Identity,
        #[cfg(feature = "gzip")]
        Self::Gzip,
        #[cfg(feature = "zstd")]
        Self::Zstd,
    ];

    /// Its name in headers.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            #[cfg(feature = "gzip")]
            Self::Gzip => "gzip",
            #[cfg(feature = "zstd")]
            Self::Zstd => "zstd",
        }
    }

    fn is(self, name: &str) -> bool {
        let is = |own: &str| name.eq_ignore_ascii_case(own);
        is(self.as_str()) || self.as_str() == "gzip" && is("x-gzip")
    }

    /// The one that an Accept-Encoding header asks for: that of the greatest weight. `None` if it
    /// takes none of them. Source: RFC 9110, 12.5.3.
    ///
    /// What is not compressed is always taken, unless it or all else is refused, but not rather
    /// than what the header names. Of codings with the same weight, one that is named goes before
    /// one that `*` covers, zstd before gzip where both are named, and gzip where neither is,
    /// since more clients read it.
    fn negotiate(accept: &str) -> Option<Self> {
        let mut others = None;
        let mut named = [None; Self::ALL.len()];
        for entry in accept.split(',') {
            let (name, parameters) = entry.split_once(';').unwrap_or((entry, ""));
            let (name, q) = (name.trim(), q(parameters));
            if name == "*" {
                others = Some(q);
            }
            for (weight, _) in named.iter_mut().zip(Self::ALL).filter(|(_, own)| own.is(name)) {
                *weight = Some(q);
            }
        }
        let weighed = Self::ALL.iter().zip(named).filter_map(|(&coding, named)| {
            // Not refused, and after all that is asked for.
            let unsaid =
                (coding == Self::Identity && others != Some(0.0)).then_some(f64::MIN_POSITIVE);
            let is_identity = coding == Self::Identity;
            let weight = named.or(if is_identity { unsaid } else { others });
            let rank = match named {
                None if coding.as_str() == "gzip" => 2,
                None => 1,
                Some(_) if is_identity => 0,
                Some(_) => 3,
            };
            Some((weight.filter(|&weight| weight > 0.0)?, rank, coding))
        });
        let best = weighed.max_by(|(one, rank, _), (other, other_rank, _)| {
            one.total_cmp(other).then(rank.cmp(other_rank))
        });
        best.map(|(.., coding)| coding)
    }
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
        let coding = Coding::negotiate(&all(headers, ACCEPT_ENCODING)).ok_or(Refused::Encoding)?;
        let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let names = query.filter(|(key, _)| key == "name[]").map(|(_, name)| name.into_owned());
        let within = headers.get("x-prometheus-scrape-timeout-seconds");
        let within = within.and_then(|value| value.to_str().ok()?.trim().parse::<f64>().ok());
        let within = within.filter(|&seconds| seconds > 0.0);
        let within = within.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Ok(Self { format, escaping, coding, names: names.collect(), within })
    }
}

/// A header's lines as one.
fn all(headers: &HeaderMap, name: impl AsHeaderName) -> String {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.collect::<Vec<_>>().join(",")
}

/// The weight among an entry's parameters. One that is no weight refuses.
fn q(parameters: &str) -> f64 {
    let mut weights = parameters.split(';').filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let weight = || value.trim().parse().ok().filter(|q: &f64| q.is_finite());
        name.trim().eq_ignore_ascii_case("q").then(|| weight().map_or(0.0, |q| q.clamp(0.0, 1.0)))
    });
    weights.next_back().unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "gzip")]
    use Coding::{Gzip, Identity};

    /// The coding for a scraper that names both: zstd if it is built in.
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
            // A header of many entries is read once.
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
