//! Clocks.
//!
//! The wall clock can be set, also back. So it gives only times that are shown. Ages and orders are
//! never computed from it, but from the boot clock, which cannot be set and which continues while
//! the machine sleeps.

use std::sync::OnceLock;

#[cfg(target_os = "linux")]
pub use linux::boot_nanos;
#[cfg(target_os = "linux")]
pub(crate) use linux::{unix_nanos, unix_nanos_about};
#[cfg(not(target_os = "linux"))]
pub use portable::boot_nanos;
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::{unix_nanos, unix_nanos as unix_nanos_about};

/// Converts a time of the boot clock to the wall clock as it is now. Unless the wall clock is set,
/// the result is never earlier than the wall clock's time at that instant.
#[cfg(all(target_os = "linux", not(loom), feature = "outside"))]
pub(crate) fn unix_nanos_of(boot: u64) -> u64 {
    let age = boot_nanos().saturating_sub(boot);
    unix_nanos().saturating_sub(age)
}

#[cfg(target_os = "linux")]
mod linux {
    use libc::{CLOCK_BOOTTIME, CLOCK_REALTIME, CLOCK_REALTIME_COARSE};

    /// Nanoseconds since 1970 by the wall clock.
    pub(crate) fn unix_nanos() -> u64 {
        read(CLOCK_REALTIME)
    }

    /// Nanoseconds since 1970, exact to a tick of the kernel (1 to 10 ms), at a quarter of the
    /// cost. This is exact enough for the creation of a series.
    pub(crate) fn unix_nanos_about() -> u64 {
        read(CLOCK_REALTIME_COARSE)
    }

    /// Nanoseconds since the machine was booted; all processes of a time namespace read the same.
    pub fn boot_nanos() -> u64 {
        read(CLOCK_BOOTTIME)
    }

    fn read(clock: libc::clockid_t) -> u64 {
        // The model checker wants every run to be the same.
        if cfg!(loom) {
            return 1_000_000_000;
        }
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the result is ours to write; the clock is one that Linux has.
        unsafe { libc::clock_gettime(clock, &mut now) };
        let nanos = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        #[cfg(all(test, not(loom)))]
        let nanos = nanos.wrapping_add_signed(super::set::ahead(clock == CLOCK_BOOTTIME));
        nanos
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::sync::OnceLock;
    use std::time::{Instant, SystemTime, UNIX_EPOCH};

    /// Nanoseconds since 1970 by the wall clock.
    pub(crate) fn unix_nanos() -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
    }

    /// Nanoseconds since this was first called: regions are one process's alone.
    pub fn boot_nanos() -> u64 {
        static BEGAN: OnceLock<Instant> = OnceLock::new();
        BEGAN.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// The CPU time of this thread in nanoseconds, for differences of two readings. A system call.
#[cfg(unix)]
pub fn thread_cpu_nanos() -> u64 {
    let mut used = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the result is ours to write; POSIX has the clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut used) };
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}

/// The machine's boot, so that a file that outlived it is known as stale. `None` if the system does
/// not say: `/proc` may show processes alone, or no descriptor may be left. Once it is known, it is
/// not asked for again.
pub(crate) fn boot_id() -> Option<[u64; 2]> {
    static KNOWN: OnceLock<[u64; 2]> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Some(*known);
    }
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let half = |range| digits.get(range).and_then(|half| u64::from_str_radix(half, 16).ok());
    let found = [half(0..16)?, half(16..32)?];
    Some(*KNOWN.get_or_init(|| found))
}

/// Clocks that a test sets, for its own thread.
#[cfg(all(test, target_os = "linux", not(loom)))]
pub(crate) mod set {
    use std::cell::Cell;

    thread_local! {
        static WALL: Cell<i64> = const { Cell::new(0) };
        static BOOT: Cell<i64> = const { Cell::new(0) };
    }

    /// How far a clock is ahead of the machine's, in nanoseconds.
    pub(super) fn ahead(is_boot: bool) -> i64 {
        if is_boot { BOOT.get() } else { WALL.get() }
    }

    /// Sets the wall clock alone, as an operator or a time server does.
    pub(crate) fn step_wall(seconds: i64) {
        WALL.set(WALL.get() + seconds * 1_000_000_000);
    }

    /// Lets so much time pass, by both clocks.
    pub(crate) fn pass(seconds: i64) {
        step_wall(seconds);
        BOOT.set(BOOT.get() + seconds * 1_000_000_000);
    }
}

#[cfg(all(test, target_os = "linux", not(loom), not(miri)))]
mod tests;
