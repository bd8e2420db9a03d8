//! Claims about processes to which the system refuses calls.

use std::os::unix::process::CommandExt;

use talea_region::Region;

use super::{adds, expected, segment, totals};
use crate::support::calls::{move_to, refuse};
use crate::support::process::{Process, arguments};
use crate::support::region;
use crate::support::tmpfs::Shm;

#[test]
fn a_process_without_restartable_sequences_or_fences_loses_nothing() {
    if std::env::var_os("TALEA_TEST_RUNNER").is_some() {
        // An emulator has calls of its own, and takes no filter of them.
        return;
    }
    let shm = Shm::new("refused");
    let region = region::open(shm.file());
    let refused: [&[i64]; 3] =
        [&[libc::SYS_rseq], &[libc::SYS_membarrier], &[libc::SYS_rseq, libc::SYS_membarrier]];
    let mut writers = refused.map(|calls| {
        let mut command = super::mover(&shm.file());
        // SAFETY: between fork and exec it makes two system calls. (It allocates, which glibc's and
        // musl's children may.)
        unsafe { command.pre_exec(move || refuse(calls)) };
        Process::start(&mut command)
    });
    let usual = Region::add_path().name();
    let found = writers.each_mut().map(|writer| writer.wait_for("added by "));
    assert_eq!(found, ["atomic", usual, "atomic"]);
    assert_eq!(totals(region), expected(3 * (adds() / 2 * 2)));
    writers.into_iter().for_each(Process::end);
}

#[test]
#[ignore = "a process that a test starts"]
fn counts_without_memory_when_asked() {
    let Some([path]) = arguments() else { return };
    let region = region::open(path);
    let (series, cell) = segment(region);
    assert!(move_to(0, 0) && cell.count(series.last(), 2));
    refuse(&[libc::SYS_fallocate]).unwrap();
    // The first CPU has a plane, or all have the shared one; another CPU gets none any more.
    let mut counted = 1;
    for n in 0..1_000 {
        move_to(n % 2, 0);
        match cell.count(series.last(), 2) {
            true => counted += 1,
            false => assert!(series.at(0).count(series.last(), 2)),
        }
    }
    assert_eq!((cell.get(), series.at(0).get()), (counted, 1_001 - counted));
    assert_eq!(series.last().get(), 2 * 1_001);
    println!("\nrefused {} of {}", 1_001 - counted, Region::add_path().name());
}

#[test]
fn a_count_that_the_system_has_no_memory_for_is_refused_and_counted_elsewhere() {
    if std::env::var_os("TALEA_TEST_RUNNER").is_some() {
        return;
    }
    for path in ["restartable", "atomic", "single"] {
        let shm = Shm::new("no-memory");
        let mut counter = again!("counts_without_memory_when_asked", &shm.file());
        let done = counter.env("TALEA_PLANES", path).output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("refused "), "{path}: {done:?}");
        // One plane, backed before, is enough for all.
        assert!(path != "single" || said.contains("refused 0 "), "{said}");
    }
}
