//! Claims about adds that are interrupted at each of their instructions. The debugger's breakpoints do
//! it: a thread that stops at one leaves its sequence, so that the kernel starts it over.

use std::ops::Range;

use talea_region::{AddPath, Region};

use super::{All, expected};
use crate::support::calls::move_to;
use crate::support::region;

/// A sequence, as the kernel reads it from the section of them all.
#[repr(C, align(32))]
struct Sequence {
    version: u32,
    flags: u32,
    start: usize,
    len: usize,
    abort: usize,
}

/// All sequences of this program.
fn sequences() -> &'static [Sequence] {
    unsafe extern "C" {
        // The linker makes them.
        static __start___talea_rseq_cs: Sequence;
        static __stop___talea_rseq_cs: Sequence;
    }
    // SAFETY: they are the beginning and the end of a section that consists of such entries.
    unsafe {
        let Range { start, end } =
            (&raw const __start___talea_rseq_cs)..(&raw const __stop___talea_rseq_cs);
        std::slice::from_raw_parts(start, end.offset_from(start) as usize)
    }
}

/// A child of a fork that this process debugs. It stops before each time that it adds.
struct Child(libc::pid_t);

impl Child {
    fn new(all: &All) -> Self {
        // SAFETY: the child adds to cells and stops itself, which needs no lock that another thread
        // may hold.
        unsafe {
            match libc::fork() {
                0 => {
                    libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
                    loop {
                        libc::raise(libc::SIGSTOP);
                        all.add();
                    }
                }
                child => Self(child),
            }
        }
    }

    /// The signal by which it stops next.
    fn next_stop(&self) -> i32 {
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        assert_eq!(unsafe { libc::waitpid(self.0, &raw mut status, 0) }, self.0);
        assert!(libc::WIFSTOPPED(status), "it ended: {status:#x}");
        libc::WSTOPSIG(status)
    }

    fn go_on(&self) {
        // SAFETY: the child is stopped; nothing is read or written.
        assert_eq!(unsafe { libc::ptrace(libc::PTRACE_CONT, self.0, 0, 0) }, 0);
    }

    /// Sets or removes the one breakpoint, in a register of the processor, so that nothing happens if
    /// the place is inside of an instruction.
    #[cfg(target_arch = "x86_64")]
    fn break_at(&mut self, place: Option<usize>) {
        let at = std::mem::offset_of!(libc::user, u_debugreg);
        let poke = |register: usize, value: usize| {
            // SAFETY: the child is stopped, and the place is that of one of its debug registers.
            let result = unsafe {
                libc::ptrace(
                    libc::PTRACE_POKEUSER,
                    self.0,
                    at + register * size_of::<usize>(),
                    value,
                )
            };
            assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
        };
        poke(7, 0);
        if let Some(place) = place {
            poke(0, place);
            poke(7, 1);
        }
    }

    /// Sets or removes the one breakpoint, in the child's copy of the code.
    #[cfg(target_arch = "aarch64")]
    fn break_at(&mut self, place: Option<usize>) {
        use std::cell::Cell;
        const BREAK: usize = 0xd420_0000;
        thread_local! {
            static REPLACED: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
        }
        let poke = |at: usize, word: usize| {
            // SAFETY: the child is stopped, and `at` is in its code. Its pages are its own.
            assert_eq!(unsafe { libc::ptrace(libc::PTRACE_POKETEXT, self.0, at, word) }, 0);
        };
        if let Some((at, word)) = REPLACED.take() {
            poke(at, word);
        }
        if let Some(place) = place {
            let at = place & !7;
            // SAFETY: the child's code is this process's code.
            let word = unsafe { std::ptr::with_exposed_provenance::<usize>(at).read() };
            let shift = (place & 4) * 8;
            poke(at, word & !(0xffff_ffff << shift) | BREAK << shift);
            REPLACED.set(Some((at, word)));
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: the child is this process's.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

/// The places at which an instruction may begin.
fn places(sequence: &Sequence) -> impl Iterator<Item = usize> {
    let each = if cfg!(target_arch = "aarch64") { 4 } else { 1 };
    (sequence.start..sequence.start + sequence.len).step_by(each)
}

#[test]
fn adds_that_are_interrupted_at_each_instruction_lose_nothing_and_count_once() {
    let region = region::region(1 << 20);
    if Region::add_path() != AddPath::Restartable {
        eprintln!("no restartable sequences here");
        return;
    }
    std::thread::spawn(move || {
        // On one CPU, so that the adds of both processes go to one copy of each cell.
        assert!(move_to(0, 0));
        let all = All::of(region);
        // Both processes have the plane of this CPU before the child is interrupted.
        all.add();
        let mut child = Child::new(&all);
        assert_eq!(child.next_stop(), libc::SIGSTOP);
        let (mut rounds, mut interrupted) = (1_u64, 0);
        for sequence in sequences() {
            assert_eq!((sequence.version, sequence.flags), (0, 0));
            for place in places(sequence) {
                child.break_at(Some(place));
                child.go_on();
                let stop = child.next_stop();
                if stop == libc::SIGTRAP {
                    // If the child went on where it was, these adds would be lost.
                    all.add();
                    rounds += 1;
                    interrupted += 1;
                    child.break_at(None);
                    child.go_on();
                    assert_eq!(child.next_stop(), libc::SIGSTOP);
                } else {
                    assert_eq!(stop, libc::SIGSTOP);
                    child.break_at(None);
                }
                rounds += 1;
                let at = place - sequence.start;
                assert_eq!(all.totals(), expected(rounds), "{at} bytes after the start");
            }
        }
        println!("interrupted at {interrupted} instructions");
        // Each kind of add has at least an instruction that finds the CPU, one that finds its plane,
        // one that compares that, and one that adds.
        assert!(interrupted >= 4 * 4, "only {interrupted}");
    })
    .join()
    .unwrap();
}
