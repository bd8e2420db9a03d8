//! Claims about processes to which the system refuses calls.

use std::os::unix::process::CommandExt;

use talea_region::Region;

use super::{adds, expected, totals};
use crate::support::calls::refuse;
use crate::support::process::Process;
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
