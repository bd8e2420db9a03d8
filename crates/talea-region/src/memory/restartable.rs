//! Adds in restartable sequences: a plain add to the running CPU's plane,
//! which the kernel starts over if the thread is moved, preempted or signalled
//! in the middle. (Linux on x86-64; see `rseq(2)` and glibc 2.35's
//! `__rseq_offset`.)
//!
//! Implementation details. The sequence, from arming to its one store:
//!
//! ```text
//!     rseq_cs ← descriptor            arm
//!  4: cpu ← rseq.cpu_id               start of the sequence
//!     delta ← table[cpu]              0: this CPU has no plane, leave
//!     [cell + delta] += value         the commit, its last instruction
//!  5: rseq_cs ← 0                     disarm, on every way out
//! ```
//!
//! - The kernel compares the interrupted address with `4..5`. Inside, it continues at the abort
//!   label, which starts again. The four bytes before that label must be the signature that glibc
//!   registered.
//! - The descriptor is written to the thread's area by address, so that it
//!   must stay mapped; disarming on every way out means that a library could
//!   even be unloaded. It lives in a writable section, since its addresses are
//!   relocated.
//! - An add that fails to find a plane returns false and has changed nothing.
//! - Two adds in a row are two sequences with a descriptor each, since each has one
//!   commit. The second is armed over the first, finds the same plane as long as the
//!   CPU is the same, and starts over on its own: the first is done by then.

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64", not(loom)))]
mod imp {
    use super::Done;
    use crate::layout::CPUS;
    use std::arch::asm;
    use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering};

    /// Where the thread's `struct rseq` lies from the thread pointer; 0 while
    /// unknown or where restartable sequences are off. (glibc's is never 0: the
    /// thread control block itself begins there.)
    static OFFSET: AtomicIsize = AtomicIsize::new(0);

    /// Looks for glibc's registration. Called when a region is opened, before
    /// any handle exists.
    pub(crate) fn detect() {
        // SAFETY: the names are NUL-terminated literals, and the default handle
        // searches what is loaded already.
        let (offset, size) = unsafe {
            (
                libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()),
                libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()),
            )
        };
        if offset.is_null() || size.is_null() {
            return;
        }
        // SAFETY: glibc declares them as `const ptrdiff_t` and `const unsigned`.
        let (offset, size) = unsafe { (*offset.cast::<isize>(), *size.cast::<u32>()) };
        if size != 0 {
            OFFSET.store(offset, Ordering::Relaxed);
        }
    }

    /// Turns restartable sequences off for this process, so that every add is atomic.
    pub(crate) fn disable() {
        OFFSET.store(0, Ordering::Relaxed);
    }

    pub(crate) fn enabled() -> bool {
        OFFSET.load(Ordering::Relaxed) != 0
    }

    /// The CPU that this thread ran on a moment ago; `None` where restartable
    /// sequences are off for the process or the thread.
    pub(crate) fn cpu() -> Option<u64> {
        let offset = OFFSET.load(Ordering::Relaxed);
        if offset == 0 {
            return None;
        }
        let cpu: u32;
        // SAFETY: `offset` is glibc's own, so fs:[offset + 4] is this thread's
        // `cpu_id`; reading it touches nothing else.
        unsafe {
            asm!(
                "mov {cpu:e}, dword ptr fs:[{offset} + 4]",
                cpu = out(reg) cpu,
                offset = in(reg) offset,
                options(nostack, readonly, preserves_flags),
            );
        }
        (u64::from(cpu) < CPUS).then_some(u64::from(cpu))
    }

    /// The frame that both adds share: everything but the instructions between
    /// finding the plane (`{t}` holds its delta) and the commit.
    macro_rules! sequence {
        ($body:literal, $cell:expr, $table:expr, $($operand:tt)*) => {{
            let found: u64;
            let offset = OFFSET.load(Ordering::Relaxed);
            if offset == 0 {
                return false;
            }
            // SAFETY: `offset` is glibc's own. The table has `CPUS` words and
            // the CPU id is compared with that first. It lies in memory of this process, and only
            // `planes.rs` writes to it: each delta was checked to lead from plane 0 to the same
            // cell's copy in another plane of the region; only this CPU's sequences write
            // to that, and they exclude each other.
            unsafe {
                asm!(
                    ".pushsection __talea_rseq_cs, \"aw\"",
                    ".balign 32",
                    "3:",
                    ".long 0, 0",
                    ".quad 4f, 5f - 4f, 6f",
                    ".popsection",
                    "2:",
                    "lea {t}, [rip + 3b]",
                    "mov qword ptr fs:[{offset} + 8], {t}",
                    "4:",
                    "mov {t:e}, dword ptr fs:[{offset} + 4]",
                    "cmp {t:e}, {cpus}",
                    "jae 7f",
                    "mov {t}, qword ptr [{table} + {t} * 8]",
                    "test {t}, {t}",
                    "jz 5f",
                    $body,
                    "5:",
                    "mov qword ptr fs:[{offset} + 8], 0",
                    ".pushsection .text.unlikely, \"ax\"",
                    // The signature stands inside an undefined instruction, so
                    // that nothing can run into it.
                    ".byte 0x0f, 0xb9, 0x3d",
                    ".long 0x53053053",
                    "6:",
                    "jmp 2b",
                    "7:",
                    "xor {t:e}, {t:e}",
                    "jmp 5b",
                    ".popsection",
                    t = out(reg) found,
                    offset = in(reg) offset,
                    cpus = const CPUS,
                    table = in(reg) $table.as_ptr(),
                    cell = in(reg) $cell.as_ptr(),
                    $($operand)*
                    options(nostack),
                );
            }
            found != 0
        }};
    }

    /// The frame of two adds in a row: `$one` and `$other` commit with the plane's delta
    /// in `{t}`.
    macro_rules! two_sequences {
        ($one:literal, $other:literal, $cells:expr, $table:expr, $($operand:tt)*) => {{
            let done: u64;
            let offset = OFFSET.load(Ordering::Relaxed);
            if offset == 0 {
                return Done::NEITHER;
            }
            let [one, other]: [&AtomicU64; 2] = $cells;
            // SAFETY: as that of one sequence, twice. Between the two the thread may come
            // to another CPU: then the second looks up that CPU's plane.
            unsafe {
                asm!(
                    ".pushsection __talea_rseq_cs, \"aw\"",
                    ".balign 32",
                    "3:",
                    ".long 0, 0",
                    ".quad 4f, 5f - 4f, 6f",
                    ".balign 32",
                    "8:",
                    ".long 0, 0",
                    ".quad 9f, 12f - 9f, 13f",
                    ".popsection",
                    "2:",
                    "lea {t}, [rip + 3b]",
                    "mov qword ptr fs:[{offset} + 8], {t}",
                    "4:",
                    "mov {cpu:e}, dword ptr fs:[{offset} + 4]",
                    "cmp {cpu:e}, {cpus}",
                    "jae 14f",
                    "mov {t}, qword ptr [{table} + {cpu} * 8]",
                    "test {t}, {t}",
                    "jz 14f",
                    $one,
                    "5:",
                    "lea {done}, [rip + 8b]",
                    "mov qword ptr fs:[{offset} + 8], {done}",
                    "9:",
                    "cmp {cpu:e}, dword ptr fs:[{offset} + 4]",
                    "jne 15f",
                    $other,
                    "12:",
                    "xor {done:e}, {done:e}",
                    "16:",
                    "mov qword ptr fs:[{offset} + 8], 0",
                    ".pushsection .text.unlikely, \"ax\"",
                    ".byte 0x0f, 0xb9, 0x3d",
                    ".long 0x53053053",
                    "6:",
                    "jmp 2b",
                    ".byte 0x0f, 0xb9, 0x3d",
                    ".long 0x53053053",
                    "13:",
                    "jmp 5b",
                    // No plane for the first.
                    "14:",
                    "mov {done:e}, 2",
                    "jmp 16b",
                    // Another CPU than before.
                    "15:",
                    "mov {cpu:e}, dword ptr fs:[{offset} + 4]",
                    "cmp {cpu:e}, {cpus}",
                    "jae 7f",
                    "mov {t}, qword ptr [{table} + {cpu} * 8]",
                    "test {t}, {t}",
                    "jnz 5b",
                    // No plane for the second.
                    "7:",
                    "mov {done:e}, 1",
                    "jmp 16b",
                    ".popsection",
                    t = out(reg) _,
                    cpu = out(reg) _,
                    done = out(reg) done,
                    offset = in(reg) offset,
                    cpus = const CPUS,
                    table = in(reg) $table.as_ptr(),
                    one = in(reg) one.as_ptr(),
                    other = in(reg) other.as_ptr(),
                    $($operand)*
                    options(nostack),
                );
            }
            Done(done)
        }};
    }

    /// Adds 1 to the first and `value` to the second of two striped cells, as
    /// [`add`] does.
    #[inline]
    pub(crate) fn count(cells: [&AtomicU64; 2], table: &[AtomicU64], value: u64) -> Done {
        two_sequences!(
            "add qword ptr [{one} + {t}], 1",
            "add qword ptr [{other} + {t}], {value}",
            cells, table, value = in(reg) value,
        )
    }

    /// As [`count`], if the second cell holds a float.
    #[inline]
    pub(crate) fn count_float(cells: [&AtomicU64; 2], table: &[AtomicU64], value: f64) -> Done {
        two_sequences!(
            "add qword ptr [{one} + {t}], 1",
            "movsd {sum}, qword ptr [{other} + {t}]\naddsd {sum}, {value}\nmovsd qword ptr [{other} + {t}], {sum}",
            cells, table, value = in(xmm_reg) value, sum = out(xmm_reg) _,
        )
    }

    /// Adds to the running CPU's copy of a striped cell; false where that CPU
    /// has no plane.
    #[inline]
    pub(crate) fn add(cell: &AtomicU64, table: &[AtomicU64], value: u64) -> bool {
        sequence!("add qword ptr [{cell} + {t}], {value}", cell, table, value = in(reg) value,)
    }

    /// As [`add`], for a cell that holds a float.
    #[inline]
    pub(crate) fn add_float(cell: &AtomicU64, table: &[AtomicU64], value: f64) -> bool {
        sequence!(
            "movsd {sum}, qword ptr [{cell} + {t}]\naddsd {sum}, {value}\nmovsd qword ptr [{cell} + {t}], {sum}",
            cell, table, value = in(xmm_reg) value, sum = out(xmm_reg) _,
        )
    }
}

/// A model of restartable sequences: plain adds of threads that say that they run on a CPU. As the
/// kernel does, it lets only one sequence of a CPU run at a time.
#[cfg(loom)]
mod imp {
    use super::Done;
    use crate::layout::WORD;
    use crate::primitive::AtomicU64;
    use loom::sync::Mutex;
    use std::cell::Cell;
    use std::sync::atomic::Ordering::Relaxed;

    loom::thread_local! {
        /// The CPU on which this thread runs sequences.
        pub(crate) static MODEL_CPU: Cell<Option<u64>> = Cell::new(None);
    }

    loom::lazy_static! {
        static ref RUNNING: [Mutex<()>; 2] = [Mutex::new(()), Mutex::new(())];
    }

    pub(crate) fn detect() {}

    pub(crate) fn disable() {}

    pub(crate) fn enabled() -> bool {
        cpu().is_some()
    }

    pub(crate) fn cpu() -> Option<u64> {
        MODEL_CPU.with(Cell::get)
    }

    pub(crate) fn add(cell: &AtomicU64, table: &[AtomicU64], value: u64) -> bool {
        let Some(cpu) = cpu() else { return false };
        let _running = RUNNING[cpu as usize].lock().unwrap();
        let delta = table[cpu as usize].load(Relaxed);
        if delta == 0 {
            return false;
        }
        // SAFETY: as in the real sequence, the delta leads to the same cell's copy in another plane.
        let copy = unsafe { &*std::ptr::from_ref(cell).add((delta / WORD) as usize) };
        copy.store(copy.load(Relaxed).wrapping_add(value), Relaxed);
        true
    }

    pub(crate) fn add_float(_: &AtomicU64, _: &[AtomicU64], _: f64) -> bool {
        false
    }

    pub(crate) fn count(_: [&AtomicU64; 2], _: &[AtomicU64], _: u64) -> Done {
        Done::NEITHER
    }

    pub(crate) fn count_float(_: [&AtomicU64; 2], _: &[AtomicU64], _: f64) -> Done {
        Done::NEITHER
    }
}

#[cfg(not(any(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"), loom)))]
mod imp {
    use super::Done;
    use crate::primitive::AtomicU64;

    pub(crate) fn detect() {}

    pub(crate) fn disable() {}

    pub(crate) fn enabled() -> bool {
        false
    }

    pub(crate) fn cpu() -> Option<u64> {
        None
    }

    #[inline]
    pub(crate) fn add(_: &AtomicU64, _: &[AtomicU64], _: u64) -> bool {
        false
    }

    #[inline]
    pub(crate) fn add_float(_: &AtomicU64, _: &[AtomicU64], _: f64) -> bool {
        false
    }

    #[inline]
    pub(crate) fn count(_: [&AtomicU64; 2], _: &[AtomicU64], _: u64) -> Done {
        Done::NEITHER
    }

    #[inline]
    pub(crate) fn count_float(_: [&AtomicU64; 2], _: &[AtomicU64], _: f64) -> Done {
        Done::NEITHER
    }
}

/// The number of two adds in a row that are not done, because they found no plane.
// A plain number: to distinguish more than two cases would slow down the common one, in which both
// are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done(u64);

impl Done {
    pub(crate) const NEITHER: Self = Self(2);
    // Without restartable sequences none is.
    #[allow(dead_code)]
    pub(crate) const ONE: Self = Self(1);
    pub(crate) const BOTH: Self = Self(0);
}

pub(crate) use imp::*;
