//! Claims about guards: a series that a thread looks at is not reclaimed, whatever fences the
//! system offers.
#![allow(unsafe_code)]

use std::process::Stdio;
use std::sync::Barrier;
use std::thread;

use crate::support::tmpfs::Shm;
use talea_region::{Config, Family, FamilySpec, Region};

fn family(region: &'static Region) -> Family {
    region.family(FamilySpec { name: b"f", limit: 2000, ..FamilySpec::default() }).unwrap().family
}

fn records(region: &'static Region) -> u64 {
    let usage = region.usage();
    usage.records.taken / usage.record_len
}

/// Sweeps often enough to reclaim every series without a guard.
fn sweep(region: &'static Region) {
    (0..3).for_each(|_| region.sweep());
}

#[test]
fn threads_hold_what_they_look_up_whether_their_guard_word_is_theirs_alone_or_not() {
    // A region of this size has four guard words a process.
    const THREADS: u64 = 9;
    let region = Region::anonymous(Config::with_len(1 << 20)).unwrap();
    let family = family(region);
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

/// From here on the system refuses to make fences for this process and its children.
fn refuse_fences() {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut steps = [
        // The number of the call, which is the first word.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, libc::SYS_membarrier as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: plain numbers, and a filter that lives as long as the calls.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter, 0, 0), 0);
        assert_eq!(libc::syscall(libc::SYS_membarrier, 0, 0, 0), -1);
    }
}

/// The body of a process that a test starts, not a claim of its own.
#[test]
fn removes_one_of_two_when_asked() {
    let Ok(path) = std::env::var("TALEA_TEST_GUARDS") else { return };
    if std::env::var("TALEA_TEST_FENCES").as_deref() == Ok("refused") {
        refuse_fences();
    }
    let region = Region::open(path, Config::with_len(1 << 20)).unwrap().region;
    let family = family(region);
    drop(["a", "b"].map(|text| family.series(text.as_bytes()).unwrap()));
    assert!(family.remove(b"a"));
    sweep(region);
    println!("\nthere are {}", records(region));
}

/// The records that are left of two after another process removed one.
fn left(path: &std::path::Path, fences: &str) -> u64 {
    let mut other = again!("removes_one_of_two_when_asked");
    other.env("TALEA_TEST_GUARDS", path).env("TALEA_TEST_FENCES", fences);
    let output = other.stderr(Stdio::inherit()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let line = said.lines().find_map(|line| line.strip_prefix("there are "));
    line.unwrap_or_else(|| panic!("it said {said:?}")).parse().unwrap()
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
    let region = Region::open(&path, Config::with_len(1 << 20)).unwrap().region;
    assert_eq!(left(&path, "refused"), 2, "this process announces without a fence");
    sweep(region);
    assert_eq!(records(region), 1, "who can have them made frees what the other left");
    assert_eq!(left(&path, "granted"), 1);
}
