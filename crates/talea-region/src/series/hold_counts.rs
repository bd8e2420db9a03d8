//! How many holds of this process each series has: see `holds.rs`.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many holds of this process each series has, by the number of its record.
#[derive(Default)]
pub(crate) struct Holds {
    counts: Mutex<HashMap<u32, u64>>,
    /// Whether this process ever held a series. One that only keeps them takes no lock.
    any: AtomicBool,
}

impl Holds {
    /// The counts, for the first hold of a series or another one.
    pub(crate) fn begin(&self) -> MutexGuard<'_, HashMap<u32, u64>> {
        self.any.store(true, SeqCst);
        self.counts()
    }

    pub(crate) fn counts(&self) -> MutexGuard<'_, HashMap<u32, u64>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this process holds a series, and does not keep it for ever.
    pub(crate) fn holds(&self, id: u32) -> bool {
        self.any.load(SeqCst) && self.counts().contains_key(&id)
    }

    /// Notes that this process keeps a series until it ends. Its note is there already.
    pub(crate) fn keep_for_ever(&self, id: u32) {
        if self.any.load(SeqCst) {
            self.counts().remove(&id);
        }
    }
}
