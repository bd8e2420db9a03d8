//! Numbers, times and addresses as arguments.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::{Duration, SystemTime};

#[cfg(target_os = "linux")]
use talea_http::server::{Address, UnixAddress};
use talea_load::parse_duration;

pub(super) fn at_least_one(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("found 0, expected at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("expected a whole number, at least 1".to_owned()),
    }
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(Duration::ZERO) => Err("found 0, expected a time above 0, such as 30s".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(format!("{error}; expected a duration such as 500ms, 30s or 2m")),
    }
}

/// A time: RFC 3339, or seconds since 1970.
pub(super) fn instant(text: &str) -> Result<SystemTime, String> {
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.into()));
    }
    humantime::parse_rfc3339_weak(text).map_err(|error| {
        format!("{error}; expected a time such as 2026-01-31T12:00:00Z, or seconds since 1970")
    })
}

/// An address to listen on. `:9465` is each address of the machine; of a name an address of IPv4 is preferred.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    const EXPECTED: &str = "expected an address and a port, such as 127.0.0.1:9465, [::1]:9465, localhost:9465, or \
        :9465 for each address of the machine";
    if let Some(port) = text.strip_prefix(':') {
        let port: u16 = port.parse().map_err(|_| EXPECTED.to_owned())?;
        let all = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        // A machine may have no IPv6.
        let has_ipv6 = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok();
        return Ok(if has_ipv6 { all } else { (Ipv4Addr::UNSPECIFIED, port).into() });
    }
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let named = text.rsplit_once(':').and_then(|(name, port)| Some((name, port.parse().ok()?)));
    let (name, port): (&str, u16) = named.ok_or_else(|| EXPECTED.to_owned())?;
    let found = (name, port).to_socket_addrs();
    let found: Vec<_> = found.map_err(|error| format!("{name}: {error}; {EXPECTED}"))?.collect();
    let preferred = found.iter().find(|address| address.is_ipv4()).or(found.first());
    preferred.copied().ok_or_else(|| format!("{name} has no address; {EXPECTED}"))
}

/// An address, or a Unix socket with its default mode.
#[cfg(target_os = "linux")]
pub(super) fn listen_address(text: &str) -> Result<Address, String> {
    match text.strip_prefix("unix:") {
        Some("") => Err("expected a path, such as unix:/run/talea/metrics.sock".to_owned()),
        Some(path) => Ok(UnixAddress::new(path).into()),
        None => address(text)
            .map(Address::from)
            .map_err(|error| format!("{error}, or unix:/run/talea/metrics.sock")),
    }
}

/// The mode of a file, in octal.
#[cfg(target_os = "linux")]
pub(super) fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "expected a mode in octal, such as 660".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_to_listen_on_may_be_a_name_or_a_port_alone() {
        for (text, expected) in
            [("127.0.0.1:1", "127.0.0.1:1"), ("[::1]:2", "[::1]:2"), ("localhost:3", "127.0.0.1:3")]
        {
            assert_eq!(address(text).unwrap().to_string(), expected);
        }
        let all = address(":4").unwrap();
        assert!(all.ip().is_unspecified() && all.port() == 4, "{all}");
        for text in ["", "9465", ":", ":70000", "localhost", "localhost:", "localhost:x", "::1"] {
            assert!(
                address(text).unwrap_err().contains("expected an address and a port"),
                "{text}"
            );
        }
    }
}
