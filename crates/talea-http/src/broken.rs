//! A request's body that breaks off while it is read.
//!
//! The meter of a request does not hold its body, and what they share would cost an
//! allocation. But a service mostly reads it within its own poll, so the body tells the
//! thread, and the meter looks there after the poll.

use std::cell::Cell;

thread_local! {
    static BROKEN: Cell<bool> = const { Cell::new(false) };
}

/// Code begins to run on a request's behalf.
#[inline]
pub(crate) fn watch() {
    BROKEN.set(false);
}

/// A body broke off.
#[cold]
pub(crate) fn tell() {
    BROKEN.set(true);
}

/// Whether one did since then.
#[inline]
pub(crate) fn is_told() -> bool {
    BROKEN.get()
}
