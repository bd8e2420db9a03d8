//! Thread numbers: no two living threads have the same one.
//!
//! The lowest numbers are reused when their threads have ended, because the number of guard words
//! is limited. A thread writes its system id beside its number into a table, and does nothing when
//! it ends: a new thread first asks the system whether threads with these ids live. So no code runs
//! at the end of a thread, nothing is allocated, and the number of a killed thread is reused too.

use std::cell::Cell;
#[cfg(not(loom))]
use std::sync::atomic::AtomicU64;
#[cfg(not(loom))]
use std::sync::atomic::Ordering::Relaxed;

/// How many numbers are used again.
pub(crate) const REUSED: u64 = 64;

/// The next of those that are not.
#[cfg(not(loom))]
static NEXT: AtomicU64 = AtomicU64::new(REUSED);

#[cfg(loom)]
loom::thread_local! {
    /// Under the model checker all threads are one system thread, so each sets its own number.
    pub(crate) static MODEL_THREAD: Cell<u64> = Cell::new(0);
}

#[cfg(loom)]
pub(crate) fn thread_number() -> u64 {
    MODEL_THREAD.with(Cell::get)
}

#[cfg(not(loom))]
const NONE: u64 = u64::MAX;

#[cfg(not(loom))]
thread_local! {
    // It needs no destructor, so it is there until the thread has ended.
    static NUMBER: Cell<u64> = const { Cell::new(NONE) };
}

#[cfg(not(loom))]
#[inline]
pub(crate) fn thread_number() -> u64 {
    match NUMBER.get() {
        NONE => take_number(),
        number => number,
    }
}

#[cfg(not(loom))]
#[cold]
fn take_number() -> u64 {
    let number = owners::take().unwrap_or_else(|| NEXT.fetch_add(1, Relaxed));
    NUMBER.set(number);
    number
}

/// In the child of a fork, this is the only thread, and its id is another.
#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) fn after_fork() {
    owners::reset(NUMBER.get());
}

/// The threads that have the numbers that are reused.
#[cfg(all(target_os = "linux", not(loom), not(miri)))]
mod owners {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

    use super::REUSED;

    /// `turn:32 | id:32`: how many threads had the number before, and the owner's id; 0 if it is free.
    static OWNERS: [AtomicU64; REUSED as usize] = [const { AtomicU64::new(0) }; REUSED as usize];
    /// The owner to ask about next.
    static CURSOR: AtomicU64 = AtomicU64::new(0);
    /// How many owners a new thread asks about: it must not wait for long if sixty-four
    /// others live. Numbers stay as low as there are threads at a time, and a few more.
    const ASKED: u64 = 8;

    /// A number for this thread, one that was there before if there is one to be had; `None`
    /// where all are taken.
    pub(super) fn take() -> Option<u64> {
        let own = own_id();
        let used = (0..REUSED).find(|&n| owner(n).load(Relaxed) == 0).unwrap_or(REUSED);
        // An owner of our own id has ended: no two threads that live have one.
        let of_own_id = (0..used).find(|&n| inherit(n, own, |id| id == own));
        let asked = (0..ASKED.min(used)).map(|_| CURSOR.fetch_add(1, Relaxed) % used);
        of_own_id
            .or_else(|| asked.into_iter().find(|&n| inherit(n, own, |id| !lives(id))))
            .or_else(|| (used..REUSED).find(|&n| replace(n, 0, own)))
    }

    /// Takes a number whose thread has ended.
    fn inherit(number: u64, own: u32, has_ended: impl FnOnce(u32) -> bool) -> bool {
        let seen = owner(number).load(Acquire);
        has_ended(id(seen)) && replace(number, seen, own)
    }

    /// Only this thread has a number, if it has one.
    pub(super) fn reset(number: u64) {
        for other in 0..REUSED {
            let own = if other == number { u64::from(own_id()) } else { 0 };
            owner(other).store(own, Release);
        }
    }

    fn owner(number: u64) -> &'static AtomicU64 {
        &OWNERS[(number % REUSED) as usize]
    }

    fn id(owner: u64) -> u32 {
        owner as u32
    }

    /// The turn sees to it that an owner is taken for ended by one thread alone, even if its
    /// id is used again at this instant.
    fn replace(number: u64, seen: u64, own: u32) -> bool {
        let turn = (seen >> 32).wrapping_add(1) << 32;
        owner(number).compare_exchange(seen, turn | u64::from(own), AcqRel, Relaxed).is_ok()
    }

    fn own_id() -> u32 {
        // SAFETY: a call without arguments that only returns a number.
        unsafe { libc::syscall(libc::SYS_gettid) as u32 }
    }

    /// Whether this process has such a thread; also where the system does not say.
    fn lives(id: u32) -> bool {
        // SAFETY: no signal is sent, signal 0 only asks.
        let answer = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), id, 0) };
        answer == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
    }
}

/// Where the ids of threads are not asked for, no number is used again.
#[cfg(any(not(target_os = "linux"), loom, miri))]
mod owners {
    #[cfg(not(loom))]
    pub(super) fn take() -> Option<u64> {
        None
    }

    #[cfg(all(target_os = "linux", not(loom)))]
    pub(super) fn reset(_: u64) {}
}

#[cfg(all(test, target_os = "linux", not(loom), not(miri)))]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn threads_have_numbers_of_their_own_and_low_ones_where_they_are_few() {
        // Other tests of this process have a few.
        for _ in 0..20 * REUSED {
            let number = thread::spawn(thread_number).join().unwrap();
            assert!(number < REUSED / 4, "{number} for one thread after the other");
        }
        const THREADS: usize = 3 * REUSED as usize;
        let all_there = Barrier::new(THREADS);
        let numbers: Vec<u64> = thread::scope(|scope| {
            let number = || {
                let number = thread_number();
                all_there.wait();
                assert_eq!(number, thread_number());
                number
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(number)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(numbers.iter().collect::<HashSet<_>>().len(), THREADS, "{numbers:?}");
        let again = (0..20 * REUSED).map(|_| thread::spawn(thread_number).join().unwrap());
        let reused = again.filter(|&number| number < REUSED).count() as u64;
        assert!(reused > 15 * REUSED, "{reused} of {} came again", 20 * REUSED);
    }
}
