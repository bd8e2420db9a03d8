//! How far a request has come.

use std::time::{Duration, Instant};

/// How far a request has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Since when a connection is being opened for it.
    pub(super) connecting_since: Option<Instant>,
    /// When it went out.
    pub(super) sent_at: Option<Instant>,
    /// How long after that the head of its answer came.
    pub(super) head: Option<Duration>,
}
