//! What clients may take.

use std::time::Duration;

/// What clients may take before their connection is ended.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many may be connected at a time. One more takes the place of whoever was quiet the
    /// longest.
    pub connections: usize,
    /// How long the head of a request may take from its first byte on, and a TLS handshake.
    pub header_time: Duration,
    /// How long a connection may stay open without a request.
    pub idle_time: Duration,
    /// How long a client may take nothing of what it is being sent.
    pub patience: Duration,
}

/// A thousand connections, heads within 10 s, five minutes between requests, 30 s of patience.
impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            header_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(5 * 60),
            patience: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// How often connections are looked at, so that none outlives a limit by much.
    pub(super) fn tick(&self) -> Duration {
        let shortest = self.header_time.min(self.idle_time).min(self.patience);
        (shortest / 8).clamp(Duration::from_millis(10), Duration::from_secs(1))
    }
}
