//! Memory that the system refused: it is not asked for as much again at once.
//!
//! On a full tmpfs every attempt to back a page fails. Each new label set, and each add on a CPU
//! that has no plane yet, would make such an attempt, of two system calls or more. So after a
//! refusal the process asks for as much memory again a second later, and until then only for less.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::clock::boot_nanos;

/// Nanoseconds in which the same is not asked for again.
const PAUSE: u64 = 1_000_000_000;

/// The last refusal that this process met in a region.
#[derive(Debug, Default)]
pub(crate) struct Refusal {
    /// Until when it counts, in nanoseconds by the boot clock; 0 if as much was had since.
    until: AtomicU64,
    /// How many bytes were asked for.
    len: AtomicU64,
}

impl Refusal {
    /// Whether the system refused as many bytes less than a second ago.
    pub(super) fn is_about(&self, len: u64) -> bool {
        let until = self.until.load(Relaxed);
        until != 0 && len >= self.len.load(Relaxed) && boot_nanos() < until
    }

    /// Two threads that are refused at once may leave the time of one and the length of the other;
    /// either is of a refusal just now.
    pub(super) fn note(&self, len: u64) {
        self.len.store(len, Relaxed);
        self.until.store(boot_nanos() + PAUSE, Relaxed);
    }

    /// Asks again at once.
    #[cfg(all(test, not(loom)))]
    pub(super) fn forget(&self) {
        self.until.store(0, Relaxed);
    }

    /// A success with less memory does not show that as much as was refused is available.
    pub(super) fn note_success(&self, len: u64) {
        if self.until.load(Relaxed) != 0 && len >= self.len.load(Relaxed) {
            self.until.store(0, Relaxed);
        }
    }
}

#[cfg(all(test, target_os = "linux", not(loom), not(miri)))]
mod tests;
