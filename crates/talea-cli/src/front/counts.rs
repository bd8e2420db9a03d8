//! What a front tells of itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::web::Web;

/// How many connections there are, and what became of those that went.
#[derive(Debug)]
pub struct Counts {
    open: AtomicU64,
    accepted: AtomicU64,
    ended: [AtomicU64; Reason::ALL.len()],
    accept_errors: AtomicU64,
    unauthorized: AtomicU64,
    web: Arc<Web>,
}

impl Counts {
    pub(super) fn new(web: Arc<Web>) -> Self {
        Self {
            open: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            ended: Default::default(),
            accept_errors: AtomicU64::new(0),
            unauthorized: AtomicU64::new(0),
            web,
        }
    }

    /// Connections that are open now.
    pub fn open(&self) -> u64 {
        self.open.load(Relaxed)
    }

    /// Connections that were ever accepted, those among them that were refused at once.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Relaxed)
    }

    /// Connections that were ended before their client wanted it, for one reason.
    pub fn ended(&self, reason: Reason) -> u64 {
        self.ended[reason as usize].load(Relaxed)
    }

    /// Times that the system gave no connection to somebody who came, as for want of
    /// descriptors.
    pub fn accept_errors(&self) -> u64 {
        self.accept_errors.load(Relaxed)
    }

    /// Requests that were not answered for want of the right user and password.
    pub fn unauthorized(&self) -> u64 {
        self.unauthorized.load(Relaxed)
    }

    /// Changes of the web configuration that could not be taken.
    pub fn bad_web_configurations(&self) -> u64 {
        self.web.bad_reloads()
    }

    pub(super) fn came(&self) {
        self.accepted.fetch_add(1, Relaxed);
    }

    pub(super) fn now_open(&self, connections: usize) {
        self.open.store(connections as u64, Relaxed);
    }

    pub(super) fn end(&self, reason: Reason) {
        self.ended[reason as usize].fetch_add(1, Relaxed);
    }

    pub(super) fn no_connection(&self) {
        self.accept_errors.fetch_add(1, Relaxed);
    }

    pub(super) fn not_admitted(&self) {
        self.unauthorized.fetch_add(1, Relaxed);
    }
}

/// Why a connection was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The TLS handshake failed, or took too long.
    Handshake,
    /// The head of a request, or a frame of HTTP/2, took too long.
    Head,
    /// No request came for too long.
    Idle,
    /// The client took nothing of an answer for too long.
    Unread,
    /// Another came, there was no room, and this one was quiet the longest.
    Room,
    /// It came when there was no room and all others were being answered.
    Refused,
}

impl Reason {
    /// All that there are.
    pub const ALL: [Self; 6] =
        [Self::Handshake, Self::Head, Self::Idle, Self::Unread, Self::Room, Self::Refused];

    /// A word for it, in the manner of a label.
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
