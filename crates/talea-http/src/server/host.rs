//! Whether a request names its host as RFC 9112, section 3.2, demands. hyper leaves that to the server.

use std::net::Ipv6Addr;

use ::http::header::HOST;
use ::http::{HeaderMap, Version};

/// The fault of a request's `Host`, if there is one: the response is a 400.
pub(super) fn fault_of_host(version: Version, headers: &HeaderMap) -> Option<&'static str> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if version == Version::HTTP_11 => {
            Some("the request has no Host header; send the name of the host in one")
        }
        (None, _) => None,
        (Some(_), Some(_)) => Some("the request has several Host headers; send one"),
        (Some(host), None) if is_host(host.as_bytes()) => None,
        (Some(_), None) => {
            Some("the Host header is no host; send a name or an address, and :PORT if it has one")
        }
    }
}

/// Whether it is a host with or without a port (RFC 3986, section 3.2). It has a name: the host of an
/// `http` address is never empty (RFC 9110, section 4.2.1).
fn is_host(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    if let Some(bracketed) = host.strip_prefix('[') {
        let Some((address, port)) = bracketed.split_once(']') else { return false };
        let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
        return is_port && address.parse::<Ipv6Addr>().is_ok();
    }
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    !name.is_empty() && name.bytes().all(is_of_name) && is_port(port)
}

fn is_port(port: &str) -> bool {
    port.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_and_a_port_or_none() {
        for host in ["shop", "shop.example:80", "127.0.0.1", "[::1]:9464", "[::1]", "a_b", "shop:"]
        {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for host in [
            "",
            ":80",
            "a b",
            " shop",
            "a,b c",
            "shop/x",
            "me@shop",
            "shop:80:80",
            "shop:x",
            "::1",
            "[::1",
            "[shop]",
            "[::1]80",
            "[]",
            "http://shop",
            "sh\u{f6}p",
            "shop\"",
            "<shop>",
        ] {
            assert!(!is_host(host.as_bytes()), "{host}");
        }
    }
}
