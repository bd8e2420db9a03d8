//! What is caught between a handler and its meter.
//!
//! A layer that catches panics makes them into responses. The meter outside of it cannot
//! see that, so the handler's own frame tells it, within the one call or poll in which both
//! run.

use std::cell::Cell;

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
    /// It has run. Whether something panicked there and was caught.
    #[inline]
    pub(super) fn end(self) -> bool {
        PANICKED.replace(self.0)
    }
}

/// Leaves it to who watches further out.
#[cold]
pub(super) fn pass_on() {
    PANICKED.set(true);
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
