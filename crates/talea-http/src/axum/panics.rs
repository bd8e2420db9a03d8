//! What is caught between a handler and its meter.
//!
//! A layer that catches panics makes them into responses. The meter outside of it cannot
//! see that, so the handler's own frame tells it, within the one call or poll in which both
//! run.

use std::cell::Cell;

use crate::exchange::Exchange;

thread_local! {
    static PANICKED: Cell<bool> = const { Cell::new(false) };
}

/// What was told further out before a meter began to watch.
pub(super) struct Outside(bool);

/// Begins to watch what runs inside.
#[inline]
pub(super) fn watch() -> Outside {
    Outside(PANICKED.replace(false))
}

impl Outside {
    /// It has run. If something panicked there and was caught, that is the exchange's, or
    /// where that is closed is left to who watches further out.
    #[inline]
    pub(super) fn end(&self, exchange: &mut Exchange) {
        if PANICKED.replace(self.0) && !exchange.panicked_inside() {
            PANICKED.set(true);
        }
    }
}

/// Runs what may panic.
#[inline]
pub(super) fn tell<T>(inside: impl FnOnce() -> T) -> T {
    struct Unwinding;
    impl Drop for Unwinding {
        fn drop(&mut self) {
            PANICKED.set(true);
        }
    }
    let unwinding = Unwinding;
    let done = inside();
    std::mem::forget(unwinding);
    done
}
