//! The port that a URL names.

use hyper::http::uri::Authority;

/// The port of a URL's authority, or that of its scheme if it names none.
///
/// # Errors
/// The text behind the host is no port. `Authority::port_u16` knows none then, as if there were no
/// such text, and a connection to the port of the scheme would reach another service.
pub(crate) fn port(authority: &Authority, is_https: bool) -> Result<u16, String> {
    let behind_user = authority.as_str().rsplit('@').next().unwrap_or_default();
    let text = behind_user.strip_prefix(authority.host()).unwrap_or_default();
    match text.strip_prefix(':') {
        None | Some("") => Ok(if is_https { 443 } else { 80 }),
        Some(digits) => digits
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(|| format!("found the port {digits:?}, expected 1 to 65535")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_that_of_the_url_or_of_the_scheme_and_never_another() {
        let of = |text: &str| port(&text.parse().unwrap(), false);
        for (text, expected) in [
            ("h", 80),
            ("h:", 80),
            ("h:1", 1),
            ("h:65535", 65535),
            ("[::1]", 80),
            ("[::1]:81", 81),
            ("u:7@h", 80),
            ("u@h:82", 82),
        ] {
            assert_eq!(of(text), Ok(expected), "{text}");
        }
        assert_eq!(port(&"h".parse().unwrap(), true), Ok(443));
        for text in ["h:0", "h:65536", "h:99999", "h:1000000000000", "[::1]:440000"] {
            assert!(of(text).unwrap_err().contains("expected 1 to 65535"), "{text}");
        }
    }
}
