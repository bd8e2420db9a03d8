//! Redirects that a client follows.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use hyper::{Method, Request, StatusCode, Uri};

use crate::scenario::{Scenario, Step};
use crate::session::Answer;
use crate::target::Target;

/// Why a redirect is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoRedirect {
    /// It leads to another server, which gets no load.
    Elsewhere,
    /// As many as may be were followed.
    TooMany,
    /// Its location is no URL.
    Malformed,
}

/// Whether an answer leads to another URL.
fn leads_on(answer: &Answer) -> bool {
    const STATUSES: [StatusCode; 5] = [
        StatusCode::MOVED_PERMANENTLY,
        StatusCode::FOUND,
        StatusCode::SEE_OTHER,
        StatusCode::TEMPORARY_REDIRECT,
        StatusCode::PERMANENT_REDIRECT,
    ];
    STATUSES.contains(&answer.status) && answer.headers.contains_key(LOCATION)
}

impl Scenario {
    /// Whether an answer is a redirect that is followed. One that the step expects is not.
    pub(super) fn follows(&self, step: &Step, answer: &Answer) -> bool {
        self.redirects > 0 && !step.expected.includes(answer.status) && leads_on(answer)
    }

    /// The request after so many redirects, this one included.
    pub(super) fn next_request(
        &self,
        request: Request<Full<Bytes>>,
        answer: &Answer,
        target: &Target,
        redirects: u32,
    ) -> Result<Request<Full<Bytes>>, NoRedirect> {
        if redirects > self.redirects {
            return Err(NoRedirect::TooMany);
        }
        next(request, answer, target)
    }
}

/// The request that follows one whose answer leads on.
fn next(
    mut request: Request<Full<Bytes>>,
    answer: &Answer,
    target: &Target,
) -> Result<Request<Full<Bytes>>, NoRedirect> {
    let location = answer.headers.get(LOCATION).and_then(|location| location.to_str().ok());
    let path = location.ok_or(NoRedirect::Malformed)?;
    let path = resolved(path, request.uri(), target)?;
    // Over HTTP/2 the URI has the authority.
    let before = if request.uri().authority().is_some() { target.origin() } else { String::new() };
    let uri = format!("{before}{path}").parse().map_err(|_| NoRedirect::Malformed)?;
    *request.uri_mut() = uri;
    // As browsers do: only 307 and 308 keep the method and the body (RFC 9110, 15.4).
    let keeps = [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT];
    let is_safe = [Method::GET, Method::HEAD].contains(request.method());
    if !keeps.contains(&answer.status) && !is_safe {
        *request.method_mut() = Method::GET;
        *request.body_mut() = Full::default();
        for header in [CONTENT_TYPE, CONTENT_LENGTH] {
            request.headers_mut().remove(header);
        }
    }
    Ok(request)
}

/// The path and query that a location means, seen from a URI of the target.
fn resolved(location: &str, from: &Uri, target: &Target) -> Result<String, NoRedirect> {
    let location = location.split('#').next().unwrap_or_default();
    let scheme = if target.is_https() { "https:" } else { "http:" };
    let absolute = match location.strip_prefix("//") {
        Some(_) => format!("{scheme}{location}"),
        None => location.to_owned(),
    };
    if absolute.contains("://") {
        let uri: Target = Target::page(&absolute).map_err(|_| NoRedirect::Malformed)?;
        if uri.origin() != target.origin() {
            return Err(NoRedirect::Elsewhere);
        }
        return Ok(uri.path().to_string());
    }
    if location.starts_with('/') {
        return Ok(location.to_owned());
    }
    let path = from.path();
    if location.is_empty() || location.starts_with('?') {
        return Ok(format!("{path}{location}"));
    }
    let folder = path.rfind('/').map_or("", |at| &path[..at]);
    Ok(format!("{folder}/{location}"))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use hyper::header::{HeaderMap, HeaderValue};

    use super::*;

    fn answer(status: u16, location: &str) -> Answer {
        let location = (LOCATION, HeaderValue::from_str(location).unwrap());
        Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::from_iter([location]),
            trailers: HeaderMap::new(),
            body: Bytes::new(),
            bytes: 0,
            head: Duration::ZERO,
            took: Duration::ZERO,
            at: Instant::now(),
        }
    }

    #[test]
    fn a_redirect_leads_to_a_path_of_the_same_server_or_nowhere() {
        let target: Target = "http://h:81/a".parse().unwrap();
        for (location, uri) in [
            ("/b?c=1", Ok("/b?c=1")),
            ("b", Ok("/x/b")),
            ("?q=1", Ok("/x/y?q=1")),
            ("http://h:81/b#part", Ok("/b")),
            ("//h:81/b", Ok("/b")),
            ("http://h/b", Err(NoRedirect::Elsewhere)),
            ("https://h:81/b", Err(NoRedirect::Elsewhere)),
            ("//evil.example/b", Err(NoRedirect::Elsewhere)),
            ("ftp://h:81/b", Err(NoRedirect::Malformed)),
            ("/a b", Err(NoRedirect::Malformed)),
        ] {
            for before in ["", "http://h:81"] {
                let request = Request::get(format!("{before}/x/y?z=1"));
                let request = request.body(Full::default()).unwrap();
                let found = next(request, &answer(302, location), &target);
                let found = found.map(|request| request.uri().to_string());
                assert_eq!(found, uri.map(|uri| format!("{before}{uri}")), "{location}");
            }
        }
    }

    #[test]
    fn only_some_redirects_keep_the_method_and_the_body() {
        let target: Target = "http://h/".parse().unwrap();
        for (status, method, after) in [
            (301, "POST", "GET"),
            (302, "PUT", "GET"),
            (303, "DELETE", "GET"),
            (303, "HEAD", "HEAD"),
            (307, "POST", "POST"),
            (308, "PUT", "PUT"),
        ] {
            let request = Request::builder().method(method).uri("/").header(CONTENT_TYPE, "x/y");
            let request = request.body(Full::default()).unwrap();
            let next = next(request, &answer(status, "/b"), &target).unwrap();
            assert_eq!(next.method(), after, "{status}");
            let keeps = method == after && method != "HEAD";
            assert_eq!(
                next.headers().contains_key(CONTENT_TYPE),
                keeps || method == "HEAD",
                "{status}"
            );
        }
    }
}
