//! Why nothing can be pushed.

use std::fmt;
use std::path::{Path, PathBuf};

/// The reason why nothing can be pushed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// This URL is not one of a receiver.
    Url(String),
    /// This name of a label cannot be used, or is there twice.
    Label(String),
    /// This rule cannot be used.
    Rule(String),
    /// This header has a name or a value that is not valid in HTTP.
    Header(String),
    /// A request has this header anyway.
    OwnHeader(String),
    /// Deltas cannot be sent by remote-write.
    Deltas,
    /// A file or a folder cannot be used.
    File(PathBuf, std::io::Error),
    /// A variable of the environment has a value that cannot be used.
    Environment(String),
    /// The TLS configuration cannot be made.
    Tls(String),
    /// The metrics about pushing cannot be registered.
    Metrics(talea::Error),
    /// No thread or runtime can be started.
    Thread(std::io::Error),
}

impl Error {
    pub(crate) fn file(path: &Path, error: std::io::Error) -> Self {
        Self::File(path.to_owned(), error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(found) => write!(
                f,
                "cannot push to {found:?}: expected a URL such as \
                 https://prometheus.example/api/v1/write, without a user and a password in it, and without a path for gRPC"
            ),
            Self::Label(name) => write!(
                f,
                "cannot add the label {name:?} to what is pushed: expected a name that is not empty, \
                 does not begin with \"__\" and is there once"
            ),
            Self::Rule(reason) => write!(f, "cannot relabel what is pushed: {reason}"),
            Self::Header(name) => {
                write!(
                    f,
                    "cannot send the header {name:?}: its name or its value is not valid in HTTP"
                )
            }
            Self::OwnHeader(name) => {
                write!(
                    f,
                    "cannot send the header {name:?}: the pusher sets it itself; leave it out"
                )
            }
            Self::Deltas => write!(
                f,
                "cannot push deltas by remote-write, which knows cumulative values alone; push by OTLP"
            ),
            Self::File(path, error) => write!(f, "cannot use {}: {error}", path.display()),
            Self::Environment(reason) => {
                write!(f, "cannot push as the environment describes it: {reason}")
            }
            Self::Tls(reason) => write!(f, "cannot set up TLS: {reason}"),
            Self::Metrics(error) => write!(f, "cannot register the metrics about pushing: {error}"),
            Self::Thread(error) => write!(f, "cannot start a thread to push from: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(_, error) | Self::Thread(error) => Some(error),
            Self::Metrics(error) => Some(error),
            _ => None,
        }
    }
}
