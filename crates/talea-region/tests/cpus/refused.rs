//! Claims about processes to which the system refuses calls.

use std::os::unix::process::CommandExt;

use talea_region::{Config, Region};

use super::{adds, expected, line_of, totals};
use crate::support::tmpfs::Shm;

/// Has the system refuse some of its calls to this process from now on, and to all programs that it
/// starts.
fn refuse(calls: &[i64]) -> std::io::Result<()> {
    const fn instruction(code: u32, jt: u8, k: u32) -> libc::sock_filter {
        libc::sock_filter { code: code as u16, jt, jf: 0, k }
    }
    // The number of the call; for each number, skip the next unless it is not it.
    let mut program = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for (n, call) in calls.iter().enumerate() {
        let to_refusal = (calls.len() - n) as u8;
        program.push(instruction(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            to_refusal,
            *call as u32,
        ));
    }
    program.push(instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW));
    let refusal = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    program.push(instruction(libc::BPF_RET | libc::BPF_K, 0, refusal));
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program is valid during the call.
    let results = unsafe {
        [
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program),
        ]
    };
    if results == [0, 0] { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[test]
fn a_process_without_restartable_sequences_or_fences_loses_nothing() {
    if std::env::var_os("TALEA_TEST_RUNNER").is_some() {
        // An emulator has calls of its own, and takes no filter of them.
        return;
    }
    let shm = Shm::new("refused");
    let region = Region::open(shm.file(), Config::with_len(1 << 20)).unwrap().region;
    let refused: [&[i64]; 3] =
        [&[libc::SYS_rseq], &[libc::SYS_membarrier], &[libc::SYS_rseq, libc::SYS_membarrier]];
    let mut writers = Vec::new();
    for calls in refused {
        let mut command = super::mover(&shm.file());
        // SAFETY: between fork and exec it makes two system calls. (It allocates, which glibc's and
        // musl's children may.)
        unsafe { command.pre_exec(move || refuse(calls)) };
        writers.push(command.spawn().unwrap());
    }
    let usual = Region::add_path().name();
    let found = writers.iter_mut().map(|writer| line_of(writer, "added by ")).collect::<Vec<_>>();
    assert_eq!(found, ["atomic", usual, "atomic"]);
    assert_eq!(totals(region), expected(3 * (adds() / 2 * 2)));
    for mut writer in writers {
        drop(writer.stdin.take());
        assert!(writer.wait().unwrap().success());
    }
}
