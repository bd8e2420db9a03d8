//! What a request says when it arrives, as a number.

use http::header::HOST;
use http::uri::{Authority, Scheme};
use http::{Extensions, HeaderMap, Method, Request, Uri, Version};
use talea::{Error, HttpMethod};

use crate::case::digit;
use crate::convention::{MethodNames, Set, Source};
use crate::opts::{FromExtensions, Opts};

/// The ways in which requests to one endpoint are told apart when they arrive. A
/// combination of them is a number from 0.
#[derive(Debug)]
pub(crate) struct Arrivals {
    scheme: bool,
    version: bool,
    https: bool,
    lower_case: bool,
    hosts: Vec<String>,
    labels: Vec<FromExtensions>,
}

/// Such a combination. What nobody tells has some value.
#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    pub(crate) method: HttpMethod,
    pub(crate) scheme: &'static str,
    pub(crate) version: &'static str,
    /// Which of the listed hosts; their number where it is none of them.
    pub(crate) host: usize,
    pub(crate) labels: Vec<usize>,
}

/// A request without its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
    pub(crate) version: Version,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) extensions: &'a Extensions,
}

impl<'a, B> From<&'a Request<B>> for Head<'a> {
    #[inline]
    fn from(request: &'a Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            version: request.version(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }
}

const SCHEMES: [&str; 2] = ["http", "https"];
const VERSIONS: [&str; 4] = ["1.1", "2", "1.0", "3"];

/// Each has a place in the tables of each endpoint.
const AT_MOST: usize = 1 << 14;

impl Arrivals {
    pub(crate) fn new(opts: &Opts, set: &Set) -> Result<Self, Error> {
        let metrics = [set.to_head, set.to_end, set.requests].into_iter().flatten();
        let told = |source| {
            let mut labels = metrics.clone().flat_map(|told| told.labels);
            labels.any(|&(_, label)| label == source)
        };
        let arrivals = Self {
            scheme: told(Source::Scheme),
            version: told(Source::Version),
            https: opts.https,
            lower_case: matches!(set.methods, MethodNames::Sent { query: false, .. }),
            hosts: opts.hosts.clone(),
            labels: opts.of_request.clone(),
        };
        let responses: usize = opts.of_response.iter().map(FromExtensions::count).product();
        for (whose, count) in [("a request", arrivals.count(true)), ("a response", responses)] {
            if count > AT_MOST {
                let reason = format!(
                    "what {whose} can say has {count} combinations, and {AT_MOST} is the most; \
                     leave out labels or hosts"
                );
                return Err(Error::Register { name: set.in_flight.name.to_owned(), reason });
            }
        }
        Ok(arrivals)
    }

    /// How many combinations there are, where methods are told apart and where not.
    pub(crate) fn count(&self, methods: bool) -> usize {
        let schemes = if self.scheme { SCHEMES.len() } else { 1 };
        let versions = if self.version { VERSIONS.len() } else { 1 };
        let labels: usize = self.labels.iter().map(FromExtensions::count).product();
        let methods = if methods { HttpMethod::ALL.len() } else { 1 };
        methods * schemes * versions * (self.hosts.len() + 1) * labels
    }

    /// Which of them a request is.
    pub(crate) fn place(&self, methods: bool, request: Head<'_>) -> usize {
        let mut place = if methods { self.method(request.method) as usize } else { 0 };
        if self.scheme {
            place = place * SCHEMES.len() + self.scheme(request.uri);
        }
        if self.version {
            place = place * VERSIONS.len() + version(request.version);
        }
        if !self.hosts.is_empty() {
            place = place * (self.hosts.len() + 1) + self.host(request);
        }
        for label in &self.labels {
            place = place * label.count() + label.place(request.extensions);
        }
        place
    }

    /// What the combination with this number says.
    pub(crate) fn nth(&self, methods: bool, place: usize) -> Arrived {
        let labels: usize = self.labels.iter().map(FromExtensions::count).product();
        let label = |n| digit(&self.labels, n, place % labels);
        let (rest, hosts) = (place / labels, self.hosts.len() + 1);
        let (rest, host) = (rest / hosts, rest % hosts);
        let mut rest = rest;
        let mut take = |taken: bool, values: usize, default: usize| {
            let digit = if taken { rest % values } else { default };
            rest = if taken { rest / values } else { rest };
            digit
        };
        let version = take(self.version, VERSIONS.len(), 0);
        let scheme = take(self.scheme, SCHEMES.len(), usize::from(self.https));
        let method = take(methods, HttpMethod::ALL.len(), 0);
        Arrived {
            method: HttpMethod::ALL[method],
            scheme: SCHEMES[scheme],
            version: VERSIONS[version],
            host,
            labels: (0..self.labels.len()).map(label).collect(),
        }
    }

    /// Whether a combination is one that a service will likely meet.
    pub(crate) fn is_likely(&self, arrived: &Arrived) -> bool {
        arrived.scheme == SCHEMES[usize::from(self.https)] && arrived.version == VERSIONS[0]
    }

    #[inline]
    pub(crate) fn method(&self, method: &Method) -> HttpMethod {
        match HttpMethod::of(method.as_str()) {
            HttpMethod::Other if self.lower_case => of_lower_case(method.as_str()),
            method => method,
        }
    }

    fn scheme(&self, uri: &Uri) -> usize {
        match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => 0,
            Some(scheme) if *scheme == Scheme::HTTPS => 1,
            _ => usize::from(self.https),
        }
    }

    fn host(&self, request: Head<'_>) -> usize {
        let named = || {
            let header = request.headers.get(HOST)?.to_str().ok()?;
            Some(without_port(header))
        };
        let host = request.uri.authority().map(Authority::host).or_else(named).unwrap_or_default();
        let listed = self.hosts.iter().position(|listed| listed.eq_ignore_ascii_case(host));
        listed.unwrap_or(self.hosts.len())
    }
}

fn of_lower_case(method: &str) -> HttpMethod {
    let known = HttpMethod::ALL.iter().find(|known| known.as_str().eq_ignore_ascii_case(method));
    let is_lower = method.bytes().all(|byte| byte.is_ascii_lowercase());
    known.copied().filter(|_| is_lower).unwrap_or(HttpMethod::Other)
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The colons of an IPv6 address stand in brackets.
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[inline]
fn version(version: Version) -> usize {
    match version {
        Version::HTTP_2 => 1,
        Version::HTTP_09 | Version::HTTP_10 => 2,
        Version::HTTP_3 => 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Convention;

    fn arrivals(convention: Convention, hosts: &[&str]) -> Arrivals {
        let opts = Opts::new().convention(convention).hosts(hosts).request_label::<bool>("b");
        Arrivals::new(&opts, &convention.set()).unwrap()
    }

    #[test]
    fn a_number_says_what_the_request_said() {
        for methods in [false, true] {
            let arrivals = arrivals(Convention::OpenTelemetry, &["a.example", "b.example"]);
            let mut met = vec![false; arrivals.count(methods)];
            let all = HttpMethod::ALL.iter().filter(|&&method| method != HttpMethod::Other);
            for method in all.map(|method| method.as_str()).chain(["ODD"]) {
                for scheme in SCHEMES {
                    for (n, version) in
                        [Version::HTTP_11, Version::HTTP_2, Version::HTTP_10, Version::HTTP_3]
                            .into_iter()
                            .enumerate()
                    {
                        for (host, name) in ["A.example:80", "b.example", "c"].iter().enumerate() {
                            for label in [None, Some(false), Some(true)] {
                                let mut request = Request::builder()
                                    .method(method)
                                    .uri(format!("{scheme}://{name}/x"))
                                    .version(version)
                                    .body(())
                                    .unwrap();
                                if let Some(label) = label {
                                    request.extensions_mut().insert(label);
                                }
                                let place = arrivals.place(methods, Head::from(&request));
                                met[place] = true;
                                let arrived = arrivals.nth(methods, place);
                                if methods {
                                    assert_eq!(arrived.method, HttpMethod::of(method));
                                }
                                assert_eq!(arrived.scheme, scheme);
                                assert_eq!(arrived.version, VERSIONS[n]);
                                assert_eq!(arrived.host, host);
                                let label = label.map_or(0, |label| 1 + usize::from(label));
                                assert_eq!(arrived.labels, [label]);
                            }
                        }
                    }
                }
            }
            assert!(met.iter().all(|&met| met), "every number is some request's");
        }
    }

    #[test]
    fn a_host_is_known_by_its_name_alone() {
        let arrivals = arrivals(Convention::Prometheus, &["Shop.example", "[::1]"]);
        for (header, expected) in [
            ("shop.example", 0),
            ("SHOP.EXAMPLE:8080", 0),
            ("[::1]:80", 1),
            ("[::1]", 1),
            ("shop.example.", 2),
            ("evil.example", 2),
            ("", 2),
        ] {
            let request = Request::builder().uri("/").header(HOST, header).body(()).unwrap();
            assert_eq!(arrivals.host(Head::from(&request)), expected, "{header}");
        }
        let bare = Request::builder().uri("/").body(()).unwrap();
        assert_eq!(arrivals.host(Head::from(&bare)), 2);
    }

    #[test]
    fn caddy_knows_methods_in_small_letters() {
        for (convention, expected) in
            [(Convention::Caddy, HttpMethod::Get), (Convention::OpenTelemetry, HttpMethod::Other)]
        {
            let arrivals = arrivals(convention, &[]);
            let method =
                |name: &str| arrivals.method(&Method::from_bytes(name.as_bytes()).unwrap());
            assert_eq!(method("get"), expected);
            assert_eq!(method("Get"), HttpMethod::Other);
        }
    }
}
