//! A file beside the path that was asked for.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::clock::boot_nanos;

/// In nanoseconds.
const MINUTE: u64 = 60_000_000_000;

/// A region that was opened beside the path that was asked for.
#[derive(Debug)]
pub(crate) struct Beside {
    pub(crate) path: PathBuf,
    pub(crate) sibling: PathBuf,
    pub(crate) users: Vec<u32>,
    /// Whether no process used the file at the path when this process last looked.
    pub(crate) was_unused: AtomicBool,
    /// Whether there is nothing left to do.
    pub(crate) is_over: AtomicBool,
    /// When this process last looked, by the boot clock.
    pub(crate) looked_at: AtomicU64,
}

impl Beside {
    /// Whether the last look was a minute ago or more; of threads that ask at once, one gets true.
    pub(crate) fn is_due(&self) -> bool {
        let (now, before) = (boot_nanos(), self.looked_at.load(Relaxed));
        now.saturating_sub(before) >= MINUTE
            && self.looked_at.compare_exchange(before, now, Relaxed, Relaxed).is_ok()
    }
}
