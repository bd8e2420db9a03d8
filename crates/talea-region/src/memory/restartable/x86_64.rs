//! The instructions of x86-64. The area is addressed from the thread pointer in `fs`. An add of a whole
//! number is one instruction, which is its commit.

use std::arch::asm;
use std::sync::atomic::{AtomicU64, Ordering};

use super::area::OFFSET;
use crate::memory::restartable::{CpuTable, RestartableAdd, Undone};
use crate::primitive::Word;

/// Stands before the label at which the kernel continues an interrupted sequence. (The bytes below
/// repeat it.)
pub(super) const SIGNATURE: u32 = 0x5305_3053;

/// From which a thread's area has the same distance in every thread.
pub(super) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: the first word of the thread control block is its own address, by the ABI.
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(nostack, readonly, preserves_flags));
    }
    pointer
}

#[rustfmt::skip]
macro_rules! instructions {
    (find_area) => { "" };
    (load_armed) => { "mov {before}, qword ptr fs:[{offset} + 8]" };
    (arm $descriptor:literal, t) => {
        concat!("lea {t}, [rip + ", $descriptor, "]\nmov qword ptr fs:[{offset} + 8], {t}")
    };
    (arm $descriptor:literal, one) => {
        concat!("lea {one}, [rip + ", $descriptor, "]\nmov qword ptr fs:[{offset} + 8], {one}")
    };
    (find_plane) => {
        "movzx {t:e}, word ptr fs:[{offset} + 4]
         mov {t}, qword ptr [{table} + {t} * 8]"
    };
    (find_plane_of_cpu) => {
        "movzx {cpu:e}, word ptr fs:[{offset} + 4]
         mov {t}, qword ptr [{table}]
         mov {t}, qword ptr [{t} + {cpu} * 8]"
    };
    (leave_without_plane) => { "test {t}, {t}\njz 14f" };
    (resume_with_plane) => { "test {t}, {t}\njnz 5b" };
    (leave_if_moved) => { "cmp {cpu:x}, word ptr fs:[{offset} + 4]\njne 15f" };
    (add_one) => { "add qword ptr [{one} + {t}], 1" };
    (add_whole) => { "add qword ptr [{cell} + {t}], {value}" };
    (add_float) => {
        "movsd {sum}, qword ptr [{cell} + {t}]
         addsd {sum}, {value}
         movsd qword ptr [{cell} + {t}], {sum}"
    };
    (disarm) => { "mov qword ptr fs:[{offset} + 8], {before}" };
    (left 0) => { "xor {before:e}, {before:e}" };
    (left $adds:literal) => { concat!("mov {before:e}, ", $adds) };
    (jump $to:literal) => { concat!("jmp ", $to) };
    (begin_cold) => { ".pushsection .text.unlikely, \"ax\"" };
    (end_cold) => { ".popsection" };
    // It stands inside an undefined instruction, so that nothing can run into it.
    (signature) => { ".byte 0x0f, 0xb9, 0x3d\n.long 0x53053053" };
}

sequences!(u64, add_whole, reg, [], []);
sequences!(f64, add_float, xmm_reg, [sum = out(xmm_reg) _,], []);
