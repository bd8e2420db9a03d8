//! What is caught between a handler and its meter.
//!
//! A layer that catches panics makes them into responses. The meter outside of it cannot
//! see that, so the handler's own frame tells it, within the one call or poll in which both
//! run.

use std::cell::Cell;

thread_local! {
    static PANICKED: Cell<bool> = const { Cell::new(false) };
}

/// Runs what is inside, and says whether something panicked there and was caught.
#[inline]
pub(super) fn watch<T>(inside: impl FnOnce() -> T) -> (T, bool) {
    let outside = PANICKED.replace(false);
    let done = inside();
    (done, PANICKED.replace(outside))
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
