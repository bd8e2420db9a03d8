//! Claims about guards: a series that a thread looks at is not reclaimed, whatever fences the
//! system offers.
#![allow(unsafe_code)]

use std::path::Path;
use std::sync::Barrier;
use std::thread;

use crate::support::calls::refuse;
use crate::support::process::{arguments, line_of, output_of};
use crate::support::region::{self, family, open, records};
use crate::support::tmpfs::Shm;
use talea_region::{FamilySpec, Region};

/// Sweeps often enough to reclaim every series without a guard.
fn sweep(region: &'static Region) {
    region::sweep(region, 3);
}

#[test]
fn threads_hold_what_they_look_up_whether_their_guard_word_is_theirs_alone_or_not() {
    // A region of this size has four guard words a process.
    const THREADS: u64 = 9;
    let region = region::region(1 << 20);
    let family = family(region, "f", FamilySpec::default());
    let text = |n| format!("n=\"{n}\"").into_bytes();
    let (held, seen) = (Barrier::new(THREADS as usize + 1), Barrier::new(THREADS as usize + 1));
    thread::scope(|scope| {
        for n in 0..THREADS {
            let (held, seen) = (&held, &seen);
            scope.spawn(move || {
                family.series(&text(n)).unwrap().at(0).add(1);
                let looked = family.series(&text(n)).unwrap();
                held.wait();
                seen.wait();
                assert_eq!(looked.at(0).get(), 1, "another series counts here");
            });
        }
        held.wait();
        (0..THREADS).for_each(|n| assert!(family.remove(&text(n))));
        sweep(region);
        (100..100 + THREADS).for_each(|n| family.series(&text(n)).unwrap().at(0).add(7));
        assert_eq!(records(region), 2 * THREADS);
        seen.wait();
    });
    sweep(region);
    assert_eq!(records(region), THREADS, "it comes back when nobody looks any more");
}

#[test]
#[ignore = "a process that a test starts"]
fn removes_one_of_two_when_asked() {
    let Some([path, fences]) = arguments() else { return };
    if fences == "refused" {
        refuse(&[libc::SYS_membarrier]).unwrap();
        // SAFETY: a call with integers only.
        assert_eq!(unsafe { libc::syscall(libc::SYS_membarrier, 0, 0, 0) }, -1);
    }
    let region = open(path);
    let family = family(region, "f", FamilySpec::default());
    drop(["a", "b"].map(|text| family.series(text.as_bytes()).unwrap()));
    assert!(family.remove(b"a"));
    sweep(region);
    println!("\nthere are {}", records(region));
}

/// The records that are left of two after another process removed one.
fn left(path: &Path, fences: &str) -> u64 {
    let said = output_of(&mut again!("removes_one_of_two_when_asked", path, fences));
    line_of(&said, "there are ").parse().unwrap()
}

#[test]
fn a_process_without_fences_reuses_nothing_that_others_may_look_at() {
    if std::env::var("TALEA_TEST_RUNNER").is_ok() {
        // An emulator has calls of its own.
        return;
    }
    let shm = Shm::new("guards");
    let alone = |name: &str| shm.path().join(name);
    assert_eq!(left(&alone("granted"), "granted"), 1);
    assert_eq!(left(&alone("refused"), "refused"), 1, "nobody else is there");

    let path = alone("shared");
    let region = open(&path);
    assert_eq!(left(&path, "refused"), 2, "this process announces without a fence");
    sweep(region);
    assert_eq!(records(region), 1, "who can have them made frees what the other left");
    assert_eq!(left(&path, "granted"), 1);
}
