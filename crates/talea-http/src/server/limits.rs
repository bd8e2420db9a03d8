//! Limits on what clients may take.

use std::time::Duration;

/// Limits on what clients may take before their connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of connections that are open at once. A further one takes the place of the
    /// connection that was idle the longest, among the connections of the client address that has the
    /// most. Default: 64.
    pub connections: usize,
    /// The time from the first to the last byte of a request's head, and for a TLS handshake.
    /// Default: 10 s.
    pub header_time: Duration,
    /// The time that a connection may stay open without a request. Default: 5 min.
    pub idle_time: Duration,
    /// The time for which a client may accept no bytes of a response, and the time without
    /// progress for which a client that has closed its half of the connection gets its response: it may
    /// be gone. Default: 30 s.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            header_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(5 * 60),
            patience: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// The time between two checks of the connections, so that no connection exceeds a limit by much.
    pub(super) fn tick(&self) -> Duration {
        let shortest = self.header_time.min(self.idle_time).min(self.patience);
        (shortest / 8).clamp(Duration::from_millis(10), Duration::from_secs(1))
    }
}
