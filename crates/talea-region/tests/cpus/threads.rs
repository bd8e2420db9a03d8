//! Claims about threads that begin and end while they add, and about other users of restartable
//! sequences in the process. Where the C library registers no areas, these test Talea's own.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use talea_region::Number;

use super::cells;
use crate::support::calls::{handle, own_thread, signal_thread};
use crate::support::region::region;

#[test]
fn threads_that_begin_and_end_all_the_time_lose_nothing() {
    const EACH: u64 = 100;
    let threads = super::adds() / 1_000;
    let cell = cells(region(1 << 20), Number::Integer).at(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..threads / 4 {
                    // Its memory is unmapped, or used by the next thread, as soon as it has ended.
                    thread::spawn(move || (0..EACH).for_each(|_| cell.add(1))).join().unwrap();
                }
            });
        }
    });
    assert_eq!(cell.get(), threads / 4 * 4 * EACH);
}

#[test]
fn a_thread_whose_area_is_another_librarys_adds_atomically() {
    #[repr(C, align(32))]
    struct Area([u32; 8]);
    const LEN: usize = size_of::<Area>();
    const SIGNATURE: usize = 0x1234_5678;
    let cell = cells(region(1 << 20), Number::Integer).at(0);
    let rseq = |area: &mut Area, flags: usize| {
        // SAFETY: the area is aligned, and is registered only as long as it lives.
        unsafe { libc::syscall(libc::SYS_rseq, std::ptr::from_mut(area), LEN, flags, SIGNATURE) }
    };
    // Another library comes first, or after this thread's first add.
    for comes_first in [true, false] {
        thread::spawn(move || {
            let mut area = Area([0, u32::MAX, 0, 0, 0, 0, 0, 0]);
            if !comes_first {
                cell.add(1);
            }
            let is_registered = rseq(&mut area, 0) == 0;
            let more = if comes_first { 1_000 } else { 999 };
            (0..more).for_each(|_| cell.add(1));
            if is_registered {
                assert_eq!(rseq(&mut area, 1), 0);
            }
        })
        .join()
        .unwrap();
    }
    assert_eq!(cell.get(), 2_000);
}

static ADDED_BY_HANDLERS: AtomicU64 = AtomicU64::new(0);
static CELL: std::sync::OnceLock<talea_region::Cell> = std::sync::OnceLock::new();

extern "C" fn add_twice(_: libc::c_int) {
    if let Some(cell) = CELL.get() {
        (0..2).for_each(|_| cell.add(1));
        ADDED_BY_HANDLERS.fetch_add(2, Relaxed);
    }
}

#[test]
fn a_signal_handler_may_interrupt_a_threads_first_add() {
    let cell = *CELL.get_or_init(|| cells(region(1 << 20), Number::Integer).at(0));
    // SAFETY: the handler adds to cells and to an atomic, which any handler may.
    unsafe { handle(libc::SIGUSR2, add_twice) };
    let threads = super::adds() / 1_000;
    for _ in 0..threads {
        // The number of the thread once it has begun; then whether it is done.
        let (begun, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                begun.store(own_thread() as u64, Relaxed);
                cell.add(1);
                cell.add(1);
                while !is_done.load(Relaxed) {
                    thread::yield_now();
                }
            });
            while begun.load(Relaxed) == 0 {
                thread::yield_now();
            }
            // The thread waits until it is done.
            signal_thread(begun.load(Relaxed) as libc::pid_t, libc::SIGUSR2);
            is_done.store(true, Relaxed);
        });
    }
    assert_eq!(cell.get(), 2 * threads + ADDED_BY_HANDLERS.load(Relaxed));
}
