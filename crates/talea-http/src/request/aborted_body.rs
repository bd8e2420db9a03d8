//! Notes that a request's body ended with an error while the service read it.
//!
//! The meter of a request does not hold its body, and state that both share would cost an
//! allocation. But a service mostly reads the body within its own poll. So the body notes an error
//! for the thread, and the meter reads that note after the poll.

use std::cell::Cell;

thread_local! {
    static ABORTED: Cell<bool> = const { Cell::new(false) };
}

/// Clears the note, before the service runs for a request.
#[inline]
pub(super) fn clear() {
    ABORTED.set(false);
}

#[cold]
pub(super) fn note() {
    ABORTED.set(true);
}

/// Whether a body ended with an error since [`clear`].
#[inline]
pub(super) fn is_noted() -> bool {
    ABORTED.get()
}
