//! A reference that is set once, by the first thread. Unlike with a `OnceLock`, no thread waits for one
//! that was stopped, or for ever after a `fork`; and it is one word.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::{from_ref, null_mut};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

/// A place for a reference, which is filled once.
pub struct AtomicRef<T: 'static> {
    /// Null, or the pointer of a `&'static T`.
    at: AtomicPtr<T>,
    /// Shared between threads as the reference itself may be.
    of: PhantomData<&'static T>,
}

impl<T> AtomicRef<T> {
    /// An empty place.
    pub const fn new() -> Self {
        Self { at: AtomicPtr::new(null_mut()), of: PhantomData }
    }

    /// The reference, if one is set. Cost: a load.
    #[inline]
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: only `get_or_set` stores, it stores a reference that is valid for ever, and its
        // release pairs with this acquire.
        unsafe { self.at.load(Acquire).as_ref() }
    }

    /// Sets the reference unless one is set, and returns the one that is set then.
    pub fn get_or_set(&self, new: &'static T) -> &'static T {
        let at = from_ref(new).cast_mut();
        match self.at.compare_exchange(null_mut(), at, AcqRel, Acquire) {
            Ok(_) => new,
            // SAFETY: as in `get`; it is not null, as it was not the null that was compared.
            Err(at) => unsafe { &*at },
        }
    }
}

impl<T> Default for AtomicRef<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for AtomicRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AtomicRef").field(&self.get()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn of_threads_that_fill_it_at_once_all_get_what_the_first_brought() {
        static VALUES: [[u64; 2]; 4] = [[0, 0], [1, 1], [2, 2], [3, 3]];
        for _ in 0..if cfg!(miri) { 5 } else { 500 } {
            let place = AtomicRef::new();
            assert!(place.get().is_none());
            let got = thread::scope(|scope| {
                let threads =
                    VALUES.each_ref().map(|value| scope.spawn(|| place.get_or_set(value)));
                threads.map(|thread| thread.join().unwrap())
            });
            assert!(got.iter().all(|value| std::ptr::eq(*value, got[0]) && value[0] == value[1]));
            assert!(std::ptr::eq(place.get().unwrap(), got[0]));
        }
    }
}
