//! CPU time of a child made by `fork`.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};

use talea::Registry;
use talea_collectors::process;

/// The CPU time of this process in seconds.
fn own_seconds() -> f64 {
    let mut spent = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `spent` is a valid place for the result.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut spent) }, 0);
    spent.tv_sec as f64 + spent.tv_nsec as f64 * 1e-9
}

fn work_until(seconds: f64) {
    while own_seconds() < seconds {
        black_box((0..10_000).sum::<u64>());
    }
}

#[test]
fn the_time_of_a_child_counts_whole_beside_its_parents() {
    let registry = Registry::for_test().expect("a registry");
    process::register(&registry).expect("the process metrics");
    let shown = || registry.snapshot().value("process_cpu_seconds_total", &[]).expect("CPU time");
    work_until(0.02);
    let of_parent = shown();
    // SAFETY: no other thread of this program takes a lock that the child would need: this test is
    // its only one.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let claims = || {
            // More than its parent had spent, at its first snapshot.
            work_until(2.0 * of_parent);
            let own = own_seconds();
            let all = shown();
            assert!(all >= of_parent + own, "{all} of {of_parent} and {own}");
            work_until(own + 0.01);
            assert!(shown() >= all + 0.009);
        };
        let held = catch_unwind(AssertUnwindSafe(claims)).is_ok();
        // SAFETY: it ends the child, which has nothing to put away.
        unsafe { libc::_exit(i32::from(!held)) };
    }
    let mut status = 0;
    // SAFETY: the child is ours and not yet waited for.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert_eq!(status, 0);
    assert!(shown() >= 3.0 * of_parent);
}
