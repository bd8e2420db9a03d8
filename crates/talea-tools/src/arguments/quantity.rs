//! Numbers, times and addresses as arguments.

use std::net::SocketAddr;
use std::time::Duration;

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

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "expected an IP address and a port, such as 127.0.0.1:9465 or [::1]:9465".to_owned()
    })
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
