//! Where a server listens.

use std::fmt;
use std::net::SocketAddr;
#[cfg(unix)]
use std::path::PathBuf;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Address {
    /// An IP address and a port; port 0 picks a free one.
    Tcp(SocketAddr),
    /// A Unix socket, for clients of this machine.
    #[cfg(unix)]
    Unix(UnixAddress),
}

/// A Unix socket in the file system, and who may connect to it.
#[cfg(unix)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixAddress {
    /// The path. A socket that a dead process left there is replaced; one of a living process, or a file that is no
    /// socket, is an error.
    pub path: PathBuf,
    /// The mode. Who may write to it may connect.
    pub mode: u32,
    /// The number of its group; `None` for the group of the process.
    pub group: Option<u32>,
}

#[cfg(unix)]
impl UnixAddress {
    /// A socket that its owner may connect to.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), mode: 0o600, group: None }
    }

    /// Lets the group with this number connect too.
    #[must_use]
    pub fn group(self, group: u32) -> Self {
        Self { mode: self.mode | 0o060, group: Some(group), ..self }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

#[cfg(unix)]
impl From<UnixAddress> for Address {
    fn from(address: UnixAddress) -> Self {
        Self::Unix(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            #[cfg(unix)]
            Self::Unix(address) => write!(f, "unix:{}", address.path.display()),
        }
    }
}
