//! Numbers, times and addresses as arguments.

use std::net::SocketAddr;
use std::time::Duration;

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
