//! Errors of making a recorder.

use std::fmt;

/// An error of making or installing a recorder. Recording never fails.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The recorder's own metrics could not be registered.
    Talea(talea::Error),
    /// Buckets that no histogram can have.
    Buckets {
        /// The fault: the value found and the value expected.
        reason: String,
    },
    /// There is a global recorder already; a program has one.
    Installed,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Talea(error) => error.fmt(f),
            Self::Buckets { reason } => f.write_str(reason),
            Self::Installed => f.write_str(
                "cannot install the recorder: the program has a global one already; install one, \
                 or use `metrics::with_local_recorder`",
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Talea(error) => error.source(),
            Self::Buckets { .. } | Self::Installed => None,
        }
    }
}

impl From<talea::Error> for Error {
    fn from(error: talea::Error) -> Self {
        Self::Talea(error)
    }
}
