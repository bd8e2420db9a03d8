//! Children made by `fork`.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a function in a child, which ends with 0 if all of its claims hold; returns its id. No other thread may hold
/// a lock that the child needs.
pub(crate) fn fork(claims: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the other threads hold no lock that the child needs, as the caller promises.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let held = catch_unwind(AssertUnwindSafe(claims)).is_ok();
        // SAFETY: it ends the child, which has nothing to put away.
        unsafe { libc::_exit(i32::from(!held)) };
    }
    pid
}

/// Waits for a child; whether its claims held.
pub(crate) fn held(child: libc::pid_t) -> bool {
    let mut status = 0;
    // SAFETY: the child is ours and not yet waited for.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status == 0
}
