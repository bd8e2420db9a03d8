//! The kind of an error, from the errors that it stems from.

use std::error::Error;
use std::io;

use hyper_util::client::legacy;

use super::ErrorKind;

/// The kind of an error of hyper-util's client, or of one that stems from such an error.
#[cold]
pub(super) fn kind_of(error: &(dyn Error + 'static)) -> ErrorKind {
    kind_within(error, ErrorKind::Other)
}

/// The kind of an error of a connector.
#[cold]
pub(super) fn kind_of_connect(error: &(dyn Error + 'static)) -> ErrorKind {
    kind_within(error, ErrorKind::Connect)
}

fn kind_within(error: &(dyn Error + 'static), kind: ErrorKind) -> ErrorKind {
    let mut found = kind;
    let mut next = Some(error);
    while let Some(cause) = next {
        // The causes further down say more.
        found = own_kind(cause, found);
        next = match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => cause.source(),
        };
    }
    found
}

/// The kind of an error, if it stems from an error of this kind further up.
fn own_kind(error: &(dyn Error + 'static), above: ErrorKind) -> ErrorKind {
    if error.is::<tokio::time::error::Elapsed>() {
        return ErrorKind::Timeout;
    }
    if error.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect) {
        return ErrorKind::Connect;
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return match error.kind() {
            io::ErrorKind::TimedOut => ErrorKind::Timeout,
            // Implementations of TLS report what they got instead of a handshake.
            io::ErrorKind::InvalidData if above == ErrorKind::Connect => ErrorKind::Tls,
            _ => above,
        };
    }
    // The others have types that cannot be named.
    let text = error.to_string().to_ascii_lowercase();
    if text == "dns error" {
        ErrorKind::Resolve
    } else if above == ErrorKind::Connect
        && ["tls", "ssl", "certificate"].iter().any(|word| text.contains(word))
    {
        ErrorKind::Tls
    } else if text.contains("timed out") {
        ErrorKind::Timeout
    } else if text.contains("user's body") {
        ErrorKind::Body
    } else {
        above
    }
}
