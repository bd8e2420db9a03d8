//! The instructions of aarch64. A commit is the store of a sum, whose load stands in the sequence too.

use std::arch::asm;
use std::sync::atomic::{AtomicU64, Ordering};

use super::area::OFFSET;
use crate::memory::restartable::{CpuTable, RestartableAdd, Undone};
use crate::primitive::Word;

/// Stands before the label at which the kernel continues an interrupted sequence: a `brk`, so that
/// nothing can run into it.
pub(super) const SIGNATURE: u32 = 0xd428_bc00;

/// From which a thread's area has the same distance in every thread.
pub(super) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: it reads a register that every thread has.
    unsafe {
        asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, nomem, preserves_flags));
    }
    pointer
}

#[rustfmt::skip]
macro_rules! instructions {
    (find_area) => { "mrs {area}, tpidr_el0\nadd {area}, {area}, {offset}" };
    (load_armed) => { "ldr {before}, [{area}, #8]" };
    (arm $descriptor:literal, t) => {
        concat!(
            "adrp {t}, ", $descriptor, "\nadd {t}, {t}, :lo12:", $descriptor,
            "\nstr {t}, [{area}, #8]",
        )
    };
    (arm $descriptor:literal, one) => {
        concat!(
            "adrp {one}, ", $descriptor, "\nadd {one}, {one}, :lo12:", $descriptor,
            "\nstr {one}, [{area}, #8]",
        )
    };
    (find_plane) => {
        "ldrh {t:w}, [{area}, #4]
         ldr {t}, [{table}, {t}, lsl #3]"
    };
    (find_plane_of_cpu) => {
        "ldrh {cpu:w}, [{area}, #4]
         ldr {t}, [{table}]
         ldr {t}, [{t}, {cpu}, lsl #3]"
    };
    (leave_without_plane) => { "cbz {t}, 14f" };
    (resume_with_plane) => { "cbnz {t}, 5b" };
    (leave_if_moved) => { "ldrh {one:w}, [{area}, #4]\ncmp {one:w}, {cpu:w}\nb.ne 15f" };
    (add_one) => {
        "ldr {old}, [{one}, {t}]
         add {old}, {old}, #1
         str {old}, [{one}, {t}]"
    };
    (add_whole) => {
        "ldr {sum}, [{cell}, {t}]
         add {sum}, {sum}, {value}
         str {sum}, [{cell}, {t}]"
    };
    (add_float) => {
        "ldr {sum:d}, [{cell}, {t}]
         fadd {sum:d}, {sum:d}, {value:d}
         str {sum:d}, [{cell}, {t}]"
    };
    (disarm) => { "str {before}, [{area}, #8]" };
    (left $adds:literal) => { concat!("mov {before}, #", $adds) };
    (jump $to:literal) => { concat!("b ", $to) };
    // A subsection, since a conditional branch does not reach another section.
    (begin_cold) => { ".subsection 1" };
    (end_cold) => { ".previous" };
    (signature) => { ".inst 0xd428bc00" };
}

sequences!(u64, add_whole, reg, [area = out(reg) _, sum = out(reg) _,], [old = out(reg) _,]);
sequences!(f64, add_float, vreg, [area = out(reg) _, sum = out(vreg) _,], [old = out(reg) _,]);
