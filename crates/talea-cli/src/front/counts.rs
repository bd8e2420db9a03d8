//! What a front tells of itself.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many connections there are and what became of those that went.
#[derive(Debug, Default)]
pub struct Counts {
    /// Connections that are open now.
    pub open: AtomicU64,
    /// Connections that were ever taken.
    pub accepted: AtomicU64,
    /// Connections that were closed at once, as all others were being answered.
    pub refused: AtomicU64,
    /// Times that the system gave no connection, as for want of descriptors.
    pub accept_errors: AtomicU64,
    /// Connections that were ended, each for one reason.
    pub evicted: Evicted,
    /// Requests with credentials that are not right, and requests without any.
    pub auth_failures: AtomicU64,
    /// Requests beyond the rate that the web configuration allows.
    pub rate_limited: AtomicU64,
    /// Changes of the web configuration that took effect.
    pub reloads: AtomicU64,
    /// Changes of the web configuration that could not be taken.
    pub reload_failures: AtomicU64,
}

/// Connections that were ended, by the reason.
#[derive(Debug, Default)]
pub struct Evicted {
    /// The TLS handshake took too long.
    pub handshake: AtomicU64,
    /// The head of a request took too long.
    pub head: AtomicU64,
    /// No request came for too long.
    pub idle: AtomicU64,
    /// The client took nothing of an answer for too long.
    pub stalled: AtomicU64,
    /// Another came, and there was no room.
    pub room: AtomicU64,
}

impl Evicted {
    /// All of them, with a word for each reason.
    pub fn by_reason(&self) -> [(&'static str, u64); 5] {
        [
            ("handshake", self.handshake.load(Relaxed)),
            ("head", self.head.load(Relaxed)),
            ("idle", self.idle.load(Relaxed)),
            ("stalled", self.stalled.load(Relaxed)),
            ("room", self.room.load(Relaxed)),
        ]
    }

    pub(super) fn add(&self, reason: Reason) {
        let counter = match reason {
            Reason::Handshake => &self.handshake,
            Reason::Head => &self.head,
            Reason::Idle => &self.idle,
            Reason::Stalled => &self.stalled,
            Reason::Room => &self.room,
        };
        counter.fetch_add(1, Relaxed);
    }
}

/// Why a connection is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Handshake,
    Head,
    Idle,
    Stalled,
    Room,
}
