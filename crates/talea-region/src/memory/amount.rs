//! Amounts: what an add puts into a cell.

use std::sync::atomic::Ordering::Relaxed;

use crate::primitive::AtomicU64;

/// What is added to a cell: a `u64` to one that holds a whole number, an `f64` to one that holds the
/// bits of a float.
pub(crate) trait Amount: Copy {
    /// The word after the add. Whole numbers wrap.
    fn added_to(self, word: u64) -> u64;

    fn add_atomically(self, word: &AtomicU64);
}

impl Amount for u64 {
    #[inline]
    fn added_to(self, word: u64) -> u64 {
        word.wrapping_add(self)
    }

    #[inline]
    fn add_atomically(self, word: &AtomicU64) {
        word.fetch_add(self, Relaxed);
    }
}

impl Amount for f64 {
    #[inline]
    fn added_to(self, word: u64) -> u64 {
        (f64::from_bits(word) + self).to_bits()
    }

    #[inline]
    fn add_atomically(self, word: &AtomicU64) {
        let mut seen = word.load(Relaxed);
        while let Err(now) = word.compare_exchange_weak(seen, self.added_to(seen), Relaxed, Relaxed)
        {
            seen = now;
        }
    }
}
