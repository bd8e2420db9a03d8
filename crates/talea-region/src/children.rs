//! What children of this process used, which the standard library does not say.

use std::time::Duration;

/// What the children that this process waited for have used, with the children that they waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildrenUsage {
    /// Processor time, of user and system.
    pub cpu: Duration,
    /// The most memory that one of them had at once, in bytes.
    pub peak_memory: u64,
}

/// What the children that this process waited for have used.
pub fn children_usage() -> ChildrenUsage {
    // SAFETY: rusage is plain integers, for which zero is a valid value.
    let mut found: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the result is ours to write. The call fails for another constant only.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut found) };
    // Linux counts KiB, macOS bytes.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    ChildrenUsage {
        cpu: duration(found.ru_utime) + duration(found.ru_stime),
        peak_memory: found.ru_maxrss.try_into().unwrap_or(0_u64).saturating_mul(unit),
    }
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = Duration::from_secs(time.tv_sec.try_into().unwrap_or(0));
    seconds + Duration::from_micros(time.tv_usec.try_into().unwrap_or(0))
}

// Miri has no processes.
#[cfg(all(test, not(miri)))]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_that_works_counts_once_it_was_waited_for() {
        let before = children_usage();
        let loop_of_shell = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        assert!(Command::new("sh").args(["-c", loop_of_shell]).status().unwrap().success());
        let after = children_usage();
        assert!(after.cpu > before.cpu, "{before:?} {after:?}");
        assert!(after.peak_memory > 100_000, "{after:?}");
    }
}
