//! The CPU on which this thread was last seen, for atomic adds. A stale number costs time and never an
//! add, so it is refreshed only every 256 adds: to ask for it may take a system call.

#[cfg(not(loom))]
use std::cell::Cell;

use crate::threads::thread_number;

/// Adds between two refreshes.
#[cfg(not(loom))]
const EVERY: u64 = 256;

#[cfg(not(loom))]
thread_local! {
    // `cpu:32 | left:32`, the number of adds until the next refresh. It needs no destructor.
    static SEEN: Cell<u64> = const { Cell::new(0) };
}

/// The CPU on which this thread was last seen; any number if the system does not say, `None` if it is
/// time to ask.
#[cfg(not(loom))]
#[inline]
pub(super) fn known_cpu() -> Option<u64> {
    let seen = SEEN.get();
    if seen & 0xFFFF_FFFF == 0 {
        return None;
    }
    SEEN.set(seen - 1);
    Some(seen >> 32)
}

/// As [`known_cpu`]; it asks if it is time.
#[cfg(not(loom))]
pub(super) fn current_cpu() -> u64 {
    known_cpu().unwrap_or_else(|| {
        let cpu = ask();
        SEEN.set(cpu << 32 | EVERY);
        cpu
    })
}

#[cfg(all(target_os = "linux", not(loom)))]
fn ask() -> u64 {
    // SAFETY: a call without arguments that returns a number.
    let cpu = unsafe { libc::sched_getcpu() };
    // Threads with different numbers are likely to run on different CPUs.
    u32::try_from(cpu).map_or_else(|_| thread_number(), u64::from)
}

#[cfg(not(any(target_os = "linux", loom)))]
fn ask() -> u64 {
    thread_number()
}

/// Under the model checker, threads run on two CPUs.
#[cfg(loom)]
pub(super) fn current_cpu() -> u64 {
    thread_number() % 2
}

#[cfg(loom)]
pub(super) fn known_cpu() -> Option<u64> {
    Some(current_cpu())
}
