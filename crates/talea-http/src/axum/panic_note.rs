//! Notes panics that are caught between a handler and its meter.
//!
//! A layer that catches panics turns them into responses. The meter outside of it cannot see the
//! panic, so the handler's own frame notes it for the thread, and the meter reads that note at the
//! end of the same call or poll.

use std::cell::Cell;

use crate::exchange::request::Exchange;

thread_local! {
    static PANICKED: Cell<bool> = const { Cell::new(false) };
}

/// The note of the enclosing meter, kept while a meter inside watches.
pub(super) struct OuterNote(bool);

#[inline]
pub(super) fn watch() -> OuterNote {
    OuterNote(PANICKED.replace(false))
}

impl OuterNote {
    /// Ends the watch. A panic that was noted belongs to the exchange, or, if that is closed, to
    /// the enclosing meter.
    #[inline]
    pub(super) fn end(&self, exchange: &mut Exchange) {
        if PANICKED.replace(self.0) && !exchange.note_caught_panic() {
            PANICKED.set(true);
        }
    }
}

#[inline]
pub(super) fn note_panic<T>(call: impl FnOnce() -> T) -> T {
    struct NoteOnUnwind;
    impl Drop for NoteOnUnwind {
        fn drop(&mut self) {
            PANICKED.set(true);
        }
    }
    let note = NoteOnUnwind;
    let returned = call();
    std::mem::forget(note);
    returned
}
