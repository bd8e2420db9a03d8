//! Fences that one thread makes for all: membarrier(2).
//!
//! A thread that looks a series up announces that first. Other threads must see this store before
//! the thread reads on, which takes a full fence, and that costs as much as the rest of a look-up.
//! A thread that reclaims memory runs seldom. So it makes the fence for all: the system runs one on
//! each CPU on which a thread of a registered process runs.
//!
//! Source: <https://man7.org/linux/man-pages/man2/membarrier.2.html>; since Linux 4.16.

/// Has fences made by others count for this process; false where the system has none. To
/// be called before the process relies on it, also in children of `fork`. Cost: some
/// microseconds, the first time up to some milliseconds in a process with threads.
pub(crate) fn register() -> bool {
    call(REGISTER_GLOBAL_EXPEDITED)
}

/// Makes a full fence on behalf of every thread of every process that registered; false
/// where the system does not. Cost: some microseconds.
pub(crate) fn fence_everywhere() -> bool {
    // The model checker's threads make theirs themselves.
    cfg!(loom) || call(GLOBAL_EXPEDITED)
}

const GLOBAL_EXPEDITED: i32 = 1 << 1;
const REGISTER_GLOBAL_EXPEDITED: i32 = 1 << 2;

#[cfg(all(target_os = "linux", not(loom), not(miri)))]
fn call(command: i32) -> bool {
    // SAFETY: neither command touches memory of the process.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

#[cfg(any(not(target_os = "linux"), loom, miri))]
fn call(_: i32) -> bool {
    cfg!(loom)
}

#[cfg(all(test, target_os = "linux", not(loom), not(miri)))]
mod tests {
    use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
    use std::sync::atomic::{AtomicBool, AtomicU64, compiler_fence};
    use std::thread;

    use super::*;

    static ONE_WANTS: AtomicBool = AtomicBool::new(false);
    static OTHER_WANTS: AtomicBool = AtomicBool::new(false);
    static COUNT: AtomicU64 = AtomicU64::new(0);

    /// Counts by a load and a store, so that one of two counts at once is lost.
    fn count() {
        let count = COUNT.load(Relaxed);
        (0..20).for_each(|_| std::hint::spin_loop());
        COUNT.store(count + 1, Relaxed);
    }

    /// Each thread announces that it wants to count, and counts if the other has not announced it.
    /// Without fences, both may find that the other has not.
    #[test]
    fn of_two_that_announce_themselves_one_sees_the_other_though_one_makes_no_fence() {
        const TURNS: u64 = 100_000;
        if !register() {
            eprintln!("this system makes no fences");
            return;
        }
        static DONE: AtomicBool = AtomicBool::new(false);
        let one = thread::spawn(|| {
            let mut counted = 0;
            while !DONE.load(Relaxed) {
                ONE_WANTS.store(true, Relaxed);
                compiler_fence(SeqCst);
                if !OTHER_WANTS.load(Acquire) {
                    count();
                    counted += 1;
                }
                ONE_WANTS.store(false, Release);
            }
            counted
        });
        let mut counted = 0;
        for _ in 0..TURNS {
            OTHER_WANTS.store(true, Relaxed);
            assert!(fence_everywhere());
            if !ONE_WANTS.load(Acquire) {
                count();
                counted += 1;
            }
            OTHER_WANTS.store(false, Release);
        }
        DONE.store(true, Relaxed);
        let counted = counted + one.join().unwrap();
        assert_eq!(COUNT.load(Relaxed), counted, "two counted at once");
    }
}
