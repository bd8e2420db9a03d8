//! The errors of outgoing requests that have no response, by kind.

use super::outcome::Outcome;

/// The kind of the error for which an outgoing request has no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The name of the server was not resolved: `resolve`.
    Resolve,
    /// There was no connection: `connect`.
    Connect,
    /// The TLS handshake failed: `tls`.
    Tls,
    /// A limit of time passed: `timeout`.
    Timeout,
    /// The body of the request failed: `body`.
    Body,
    /// There were too many redirects, or one that is not allowed: `redirect`.
    Redirect,
    /// The caller dropped the request: `cancelled`.
    Cancelled,
    /// Any other error, such as a connection that was lost: `other`.
    Other,
}

impl ErrorKind {
    pub(crate) const ALL: [Self; 8] = [
        Self::Resolve,
        Self::Connect,
        Self::Tls,
        Self::Timeout,
        Self::Body,
        Self::Redirect,
        Self::Cancelled,
        Self::Other,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Body => "body",
            Self::Redirect => "redirect",
            Self::Cancelled => "cancelled",
            Self::Other => "other",
        }
    }

    pub(crate) fn outcome(self) -> Outcome {
        match self {
            Self::Timeout => Outcome::TimedOut,
            Self::Cancelled => Outcome::Aborted,
            _ => Outcome::Failed,
        }
    }
}
