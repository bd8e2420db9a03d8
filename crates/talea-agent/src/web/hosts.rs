//! The hosts that requests may name.
//!
//! A browser lets a page read what the host of the page serves. By DNS rebinding, the host of a stranger's page gets
//! the address 127.0.0.1, and the page reads servers that listen for this machine alone. Such a request names the
//! stranger's host.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::uri::Authority;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Web;
use talea_view::printable;

/// The hosts that a server answers for. Clones share it.
#[derive(Clone, Debug)]
pub struct Hosts {
    names: Arc<[String]>,
    /// Whether only this machine reaches the server.
    is_loopback: bool,
    /// A client that has to know a password, or a browser that checks a certificate, is not deceived.
    web: Option<Arc<Web>>,
}

impl Hosts {
    /// Of a server at an address: any host, unless that is a loopback address or there are `names`. Else these names,
    /// `localhost` and loopback addresses, and any other address if the server has one.
    pub fn new(server: SocketAddr, names: Vec<String>, web: Option<Arc<Web>>) -> Self {
        Self { names: names.into(), is_loopback: is_loopback(server.ip()), web }
    }

    fn are_checked(&self) -> bool {
        let is_protected = self.web.as_ref().is_some_and(|web| {
            let rules = web.current();
            rules.tls.is_some() || rules.passwords.is_some()
        });
        !is_protected && (self.is_loopback || !self.names.is_empty())
    }

    fn has(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if let Ok(address) = address.unwrap_or(host).parse()
            && (is_loopback(address) || !self.is_loopback)
        {
            return true;
        }
        let lower = host.to_ascii_lowercase();
        let is_local = lower == "localhost" || lower.ends_with(".localhost");
        is_local || self.names.iter().any(|name| name.eq_ignore_ascii_case(host))
    }

    /// A host that a request names and that is not one of these. A request without any is no browser's.
    fn refused_of(&self, request: &Request) -> Option<String> {
        let named = request.headers().get_all(HOST).iter();
        let named = named.map(|host| String::from_utf8_lossy(host.as_bytes()).into_owned());
        // HTTP/2 has it there, and so has a request to a proxy.
        let authority = request.uri().authority().map(ToString::to_string);
        named.chain(authority).find(|named| {
            let host = named.parse::<Authority>();
            !host.is_ok_and(|host| self.has(host.host()))
        })
    }
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Answers with 421 if a request names another host.
pub async fn check_host(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    if hosts.are_checked()
        && let Some(host) = hosts.refused_of(&request)
    {
        return refusal(&host);
    }
    next.run(request).await
}

fn refusal(host: &str) -> Response {
    let text = format!(
        "found the host {:?}, expected localhost, a loopback address, or a name that --host gives: a page of another \
         host must not read this server\n",
        printable(host)
    );
    let kind = [(CONTENT_TYPE, "text/plain; charset=utf-8")];
    (StatusCode::MISDIRECTED_REQUEST, kind, text).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn refused(server: &str, names: &[&str], hosts: &[&str], uri: &str) -> Option<String> {
        let names = names.iter().map(ToString::to_string).collect();
        let server = Hosts::new(server.parse().unwrap(), names, None);
        assert!(server.are_checked());
        let mut request = Request::builder().uri(uri);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        server.refused_of(&request.body(Body::empty()).unwrap())
    }

    #[test]
    fn a_loopback_server_answers_for_loopback_and_the_names_that_it_is_given() {
        for host in [
            "localhost",
            "LocalHost:9465",
            "localhost.:9465",
            "a.localhost",
            "127.0.0.1:9465",
            "127.8.9.10",
            "[::1]:9465",
            "[::ffff:127.0.0.1]",
            "metrics.example:80",
            "METRICS.example.",
        ] {
            assert_eq!(refused("127.0.0.1:1", &["metrics.example"], &[host], "/"), None, "{host}");
            assert_eq!(refused("[::1]:1", &["metrics.example"], &[host], "/"), None, "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:9465",
            "localhost.evil.example",
            "evillocalhost",
            "127.0.0.1.evil.example",
            "metrics.example.evil",
            "192.168.1.7:9465",
            "0.0.0.0",
            "[2001:db8::1]",
            "user@evil.example",
            "localhost@evil.example",
            "",
            " ",
            "\u{e9}",
            "localhost, evil.example",
        ] {
            let found = refused("127.0.0.1:1", &["metrics.example"], &[host], "/");
            assert_eq!(found.as_deref(), Some(host), "{host}");
        }
        // All that a request names, and HTTP/2 has it elsewhere.
        let refused = |hosts: &[&str], uri| refused("127.0.0.1:1", &[], hosts, uri).is_some();
        assert!(refused(&["localhost", "evil.example"], "/"));
        assert!(refused(&["localhost"], "http://evil.example/"));
        assert!(refused(&[], "http://evil.example/"));
        assert!(!refused(&["localhost"], "http://localhost/"));
        assert!(!refused(&[], "/"), "no browser sends that");
    }

    #[test]
    fn a_server_for_a_network_checks_names_if_it_is_given_some_and_addresses_never() {
        let any = Hosts::new("0.0.0.0:1".parse().unwrap(), Vec::new(), None);
        assert!(!any.are_checked());
        for host in ["metrics.example", "192.168.1.7:9465", "[2001:db8::1]", "localhost"] {
            assert_eq!(refused("0.0.0.0:1", &["metrics.example"], &[host], "/"), None, "{host}");
        }
        assert!(refused("0.0.0.0:1", &["metrics.example"], &["evil.example"], "/").is_some());
    }
}
