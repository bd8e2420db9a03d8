//! The limit of open descriptors: each connection takes one.

/// Raises the soft limit of open descriptors to the hard limit. Where that is not
/// allowed the limit stays, and connections above it wait until others end.
#[cfg(unix)]
pub fn raise_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    // Some systems refuse an unlimited number; then the limit stays.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// There is no such limit here.
#[cfg(not(unix))]
pub fn raise_limit() {}
