//! The attributes of a request that are known when it arrives, as a number.

use http::header::HOST;
use http::uri::{Authority, Scheme};
use http::{Extensions, HeaderMap, Method, Request, Uri, Version};
use talea::{Error, HttpMethod};

use crate::convention::metric_set::{LabelSource, MethodNames, MetricSet};
use crate::labels::extension::{ExtensionLabel, combinations, nth_value};
use crate::opts::Opts;

/// Numbers the combinations of attributes from 0: a mixed-radix number with a digit for each
/// attribute that is a label.
#[derive(Debug)]
pub(crate) struct AttributeIndex {
    scheme: bool,
    version: bool,
    https: bool,
    lower_case: bool,
    hosts: Vec<String>,
    /// Those that the user named.
    methods: Vec<String>,
    labels: Vec<ExtensionLabel>,
}

/// The attributes of a request. Those that are no label have an arbitrary value.
#[derive(Clone, Debug)]
pub(super) struct RequestAttributes {
    pub(super) method: HttpMethod,
    /// The index of the method in the list of those that the user named; the length of the list for
    /// any other.
    pub(super) named_method: usize,
    pub(super) scheme: &'static str,
    pub(super) version: &'static str,
    /// The index of the host in the list of hosts; the length of the list for any other.
    pub(super) host: usize,
    pub(super) labels: Vec<usize>,
}

/// A request without its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestHead<'a> {
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
    pub(crate) version: Version,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) extensions: &'a Extensions,
}

impl<'a, B> From<&'a Request<B>> for RequestHead<'a> {
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

/// The most combinations: each has a pointer in the tables of each endpoint.
const AT_MOST: usize = 1 << 14;

impl AttributeIndex {
    pub(super) fn new(opts: &Opts, set: &MetricSet) -> Result<Self, Error> {
        let metrics = [set.to_head, set.to_end, set.requests].into_iter().flatten();
        let is_label = |source| {
            let mut labels = metrics.clone().flat_map(|metric| metric.labels);
            labels.any(|&(_, label)| label == source)
        };
        let index = Self {
            scheme: is_label(LabelSource::Scheme),
            version: is_label(LabelSource::Version),
            https: opts.https,
            lower_case: matches!(set.method_names, MethodNames::Sent { query: false, .. }),
            hosts: opts.hosts.clone(),
            methods: opts.methods.clone(),
            labels: opts.request_labels.clone(),
        };
        match index.fault(opts) {
            Some(reason) => Err(Error::Register { name: set.in_flight.name.to_owned(), reason }),
            None => Ok(index),
        }
    }

    /// The reason for which the options cannot be used, if there is one.
    fn fault(&self, opts: &Opts) -> Option<String> {
        if let Some(host) = self.hosts.iter().find(|host| !is_host(host)) {
            return Some(format!(
                "{host:?} is not a valid host; expected a name or an address without a port, such as \
                 \"example.org\" or \"[::1]\""
            ));
        }
        if let Some(method) = self.methods.iter().find(|method| method.parse::<Method>().is_err()) {
            return Some(format!(
                "{method:?} is not a valid method; expected a name without spaces, such as \
                 \"PROPFIND\""
            ));
        }
        let responses = combinations(&opts.response_labels);
        for (whose, count) in [("a request", self.count(true)), ("a response", responses)] {
            if count > AT_MOST {
                return Some(format!(
                    "the labels of {whose} have {count} combinations of values; the maximum is \
                     {AT_MOST}; leave out labels or hosts"
                ));
            }
        }
        None
    }

    /// The number of combinations, with the method as an attribute or without.
    pub(super) fn count(&self, by_method: bool) -> usize {
        let schemes = if self.scheme { SCHEMES.len() } else { 1 };
        let versions = if self.version { VERSIONS.len() } else { 1 };
        let methods = if by_method { HttpMethod::ALL.len() + self.methods.len() } else { 1 };
        let fixed = methods * schemes * versions * (self.hosts.len() + 1);
        combinations(&self.labels).saturating_mul(fixed)
    }

    pub(super) fn index(&self, by_method: bool, request: RequestHead<'_>) -> usize {
        let mut index = if by_method { self.method(request.method) } else { 0 };
        if self.scheme {
            index = index * SCHEMES.len() + self.scheme(request.uri);
        }
        if self.version {
            index = index * VERSIONS.len() + version(request.version);
        }
        if !self.hosts.is_empty() {
            index = index * (self.hosts.len() + 1) + self.host(request);
        }
        for label in &self.labels {
            index = index * label.count() + label.value(request.extensions);
        }
        index
    }

    pub(super) fn nth(&self, by_method: bool, index: usize) -> RequestAttributes {
        let labels = combinations(&self.labels);
        let (rest, hosts) = (index / labels, self.hosts.len() + 1);
        let (mut rest, host) = (rest / hosts, rest % hosts);
        let mut take = |is_attribute: bool, values: usize, default: usize| {
            let digit = if is_attribute { rest % values } else { default };
            rest = if is_attribute { rest / values } else { rest };
            digit
        };
        let version = take(self.version, VERSIONS.len(), 0);
        let scheme = take(self.scheme, SCHEMES.len(), usize::from(self.https));
        // It is the last: the rest is its number.
        let method = if by_method { rest } else { 0 };
        let named_method = method.checked_sub(HttpMethod::ALL.len()).unwrap_or(self.methods.len());
        RequestAttributes {
            method: HttpMethod::ALL.get(method).copied().unwrap_or(HttpMethod::Other),
            named_method,
            scheme: SCHEMES[scheme],
            version: VERSIONS[version],
            host,
            labels: (0..self.labels.len())
                .map(|n| nth_value(&self.labels, n, index % labels))
                .collect(),
        }
    }

    /// Whether a service is likely to receive requests with these attributes.
    pub(super) fn is_likely(&self, attributes: &RequestAttributes) -> bool {
        attributes.scheme == SCHEMES[usize::from(self.https)] && attributes.version == VERSIONS[0]
    }

    /// The number of a method.
    #[inline]
    fn method(&self, method: &Method) -> usize {
        match known_method(method) {
            known if self.methods.is_empty() && known != HttpMethod::Other => known as usize,
            known => self.named_method(method.as_str(), known),
        }
    }

    /// The number of a method, if the user may have named it: named methods come after the others. Out
    /// of line, as most users name no methods.
    #[inline(never)]
    fn named_method(&self, method: &str, known: HttpMethod) -> usize {
        match (self.methods.iter().position(|named| named == method), known) {
            (Some(named), _) => HttpMethod::ALL.len() + named,
            (None, HttpMethod::Other) if self.lower_case => lower_case_method(method) as usize,
            (None, known) => known as usize,
        }
    }

    fn scheme(&self, uri: &Uri) -> usize {
        match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => 0,
            Some(scheme) if *scheme == Scheme::HTTPS => 1,
            _ => usize::from(self.https),
        }
    }

    fn host(&self, request: RequestHead<'_>) -> usize {
        let host = request
            .uri
            .authority()
            .map(Authority::host)
            .or_else(|| Some(without_port(request.headers.get(HOST)?.to_str().ok()?)))
            .unwrap_or_default();
        let listed = self.hosts.iter().position(|listed| listed.eq_ignore_ascii_case(host));
        listed.unwrap_or(self.hosts.len())
    }
}

fn is_host(host: &str) -> bool {
    host.parse::<Authority>().is_ok_and(|authority| authority.host() == host)
}

#[inline]
pub(crate) fn known_method(method: &Method) -> HttpMethod {
    // Most requests are GET.
    match *method == Method::GET {
        true => HttpMethod::Get,
        false => other_method(method),
    }
}

/// Out of line: together with the test for GET, the compiler turns it into a jump table, which has
/// to be loaded.
#[cold]
#[inline(never)]
fn other_method(method: &Method) -> HttpMethod {
    HttpMethod::of(method.as_str())
}

fn lower_case_method(method: &str) -> HttpMethod {
    let known = HttpMethod::ALL.iter().find(|known| known.as_str().eq_ignore_ascii_case(method));
    let is_lower = method.bytes().all(|byte| byte.is_ascii_lowercase());
    known.copied().filter(|_| is_lower).unwrap_or(HttpMethod::Other)
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The colons of an IPv6 address are in brackets.
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

    const NAMED: &[&str] = &["PROPFIND", "MKCOL"];

    fn index(convention: Convention, hosts: &[&str], methods: &[&str]) -> AttributeIndex {
        let opts = Opts::new().convention(convention).hosts(hosts).request_label::<bool>("b");
        let opts = opts.methods(methods);
        AttributeIndex::new(&opts, &convention.metric_set()).unwrap()
    }

    #[test]
    fn the_index_of_a_request_gives_back_its_attributes() {
        let versions = [Version::HTTP_11, Version::HTTP_2, Version::HTTP_10, Version::HTTP_3];
        for (by_method, names) in [(false, NAMED), (true, NAMED), (true, &[])] {
            let index = index(Convention::OpenTelemetry, &["a.example", "b.example"], names);
            let mut found = vec![false; index.count(by_method)];
            for all in 0..(HttpMethod::ALL.len() + names.len()) * 2 * 4 * 3 * 3 {
                let mut rest = all;
                let mut take = |values: usize| {
                    let digit = rest % values;
                    rest /= values;
                    digit
                };
                let (label, host, version, scheme) = (take(3), take(3), take(4), SCHEMES[take(2)]);
                let known = HttpMethod::ALL.iter().map(|&one| (one, names.len(), one.as_str()));
                let named = names.iter().enumerate().map(|(n, &name)| (HttpMethod::Other, n, name));
                let (method, named_method, sent) = known.chain(named).nth(rest).unwrap();
                let name = ["A.example:80", "b.example", "c"][host];
                let mut request = Request::builder()
                    .method(sent)
                    .uri(format!("{scheme}://{name}/x"))
                    .version(versions[version])
                    .body(())
                    .unwrap();
                if label > 0 {
                    request.extensions_mut().insert(label > 1);
                }
                let n = index.index(by_method, RequestHead::from(&request));
                found[n] = true;
                let attributes = index.nth(by_method, n);
                if by_method {
                    let found = (attributes.method, attributes.named_method);
                    assert_eq!(found, (method, named_method), "{sent}");
                }
                assert_eq!(attributes.scheme, scheme);
                assert_eq!(attributes.version, VERSIONS[version]);
                assert_eq!((attributes.host, &attributes.labels[..]), (host, &[label][..]));
            }
            assert!(found.iter().all(|&found| found), "every index belongs to a request");
        }
    }

    #[test]
    fn a_host_is_matched_by_its_name_alone() {
        let index = index(Convention::Prometheus, &["Shop.example", "[::1]"], &[]);
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
            assert_eq!(index.host(RequestHead::from(&request)), expected, "{header}");
        }
        let bare = Request::builder().uri("/").body(()).unwrap();
        assert_eq!(index.host(RequestHead::from(&bare)), 2);
    }

    #[test]
    fn a_host_that_no_request_can_name_is_refused() {
        for host in
            ["shop.example:80", "[::1]:80", "http://shop.example", "a@shop.example", "a b", ""]
        {
            let opts = Opts::new().hosts(&["b.example", host]);
            let refused = AttributeIndex::new(&opts, &Convention::Prometheus.metric_set());
            let message = refused.err().unwrap().to_string();
            assert!(message.contains(&format!("{host:?} is not a valid host")), "{message}");
        }
    }

    #[test]
    fn caddy_accepts_methods_in_lower_case() {
        for (convention, expected) in
            [(Convention::Caddy, HttpMethod::Get), (Convention::OpenTelemetry, HttpMethod::Other)]
        {
            let index = index(convention, &[], NAMED);
            let method = |name: &str| index.method(&Method::from_bytes(name.as_bytes()).unwrap());
            assert_eq!(method("get"), expected as usize);
            assert_eq!(method("Get"), HttpMethod::Other as usize);
            assert_eq!(method("propfind"), HttpMethod::Other as usize, "named as it is sent");
        }
    }
}
