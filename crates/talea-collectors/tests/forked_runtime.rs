//! Metrics of runtimes in a child made by `fork`.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use talea::Registry;
use talea_collectors::tokio::register;
use tokio::runtime::Builder;

/// Runs `claims` in a child, and waits; false where one of them does not hold.
fn hold_in_a_child(claims: impl FnOnce()) -> bool {
    // SAFETY: no other thread of this program takes a lock that the child would need:
    // this test is its only one, and the runtime's workers sleep.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let held = catch_unwind(AssertUnwindSafe(claims)).is_ok();
        // SAFETY: it ends the child, which has nothing to put away.
        unsafe { libc::_exit(i32::from(!held)) };
    }
    let mut status = 0;
    // SAFETY: the child is ours and not yet waited for.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    status == 0
}

#[test]
fn a_child_shows_its_own_runtime_and_not_its_parents_a_second_time() {
    let registry = Registry::for_test().expect("a registry");
    let runtime = Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    register(&registry, "main", runtime.handle().clone()).expect("the metrics");
    let workers = || registry.snapshot().value("tokio_workers", &[("runtime", "main")]);
    assert_eq!(workers(), Some(2.0));

    assert!(hold_in_a_child(|| {
        assert_eq!(workers(), Some(2.0));
        let own = Builder::new_current_thread().build().expect("a runtime");
        register(&registry, "main", own.handle().clone()).expect("the name is free in the child");
        assert_eq!(workers(), Some(3.0));
    }));
    assert_eq!(workers(), Some(2.0));
}
