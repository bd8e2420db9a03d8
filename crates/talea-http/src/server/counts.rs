//! Counts of a server's connections.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of connections, and why connections were closed.
#[derive(Debug, Default)]
pub struct Counts {
    open: AtomicU64,
    pub(super) accepted: AtomicU64,
    closed: [AtomicU64; Reason::ALL.len()],
    pub(super) accept_errors: AtomicU64,
}

impl Counts {
    /// Connections that are open now.
    pub fn open(&self) -> u64 {
        self.open.load(Relaxed)
    }

    /// Connections that were accepted since the start, including those that were refused at once.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Relaxed)
    }

    /// Connections that the server closed before their client did, for one reason.
    pub fn closed(&self, reason: Reason) -> u64 {
        self.closed[reason as usize].load(Relaxed)
    }

    /// Times that the system could not give a connection to a client that was waiting, for
    /// example for lack of descriptors.
    pub fn accept_errors(&self) -> u64 {
        self.accept_errors.load(Relaxed)
    }

    pub(super) fn set_open(&self, connections: usize) {
        self.open.store(connections as u64, Relaxed);
    }

    pub(super) fn close(&self, reason: Reason) {
        self.closed[reason as usize].fetch_add(1, Relaxed);
    }
}

/// The reason for which the server closed a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The TLS handshake failed or took too long.
    Handshake,
    /// The head of a request, or a frame of HTTP/2, took too long.
    Head,
    /// No request came for too long.
    Idle,
    /// The client took nothing of a response for too long.
    Unread,
    /// A new connection needed the place of this one.
    Room,
    /// The connection was new, and every other one was busy with a response.
    Refused,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 6] =
        [Self::Handshake, Self::Head, Self::Idle, Self::Unread, Self::Room, Self::Refused];

    /// The reason as a label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Head => "head",
            Self::Idle => "idle",
            Self::Unread => "unread",
            Self::Room => "room",
            Self::Refused => "refused",
        }
    }
}
