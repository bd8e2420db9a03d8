//! CPU time, which other programs on the machine do not lengthen.

use std::time::Duration;

/// The CPU time of this thread.
pub(crate) fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the result is ours to write; the clock is one that every system with POSIX threads has.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
