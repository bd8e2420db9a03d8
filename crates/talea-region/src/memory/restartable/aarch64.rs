//! The sequences on aarch64. A commit is the store of a sum, whose load stands in the sequence too.

use std::arch::asm;
use std::sync::atomic::{AtomicU64, Ordering};

use super::area::OFFSET;
use crate::memory::restartable::{CpuTable, Undone};
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

/// The frame that both adds share: everything but the instructions between
/// finding the plane (`{t}` holds its delta) and the commit.
// Code that seldom runs is in a subsection: a conditional branch does not reach another section.
macro_rules! sequence {
    ($body:literal, $cell:expr, $table:expr, $($operand:tt)*) => {{
        let found: u64;
        let offset = OFFSET.load(Ordering::Relaxed);
        if offset == 0 {
            return false;
        }
        // SAFETY: as on x86-64.
        unsafe {
            asm!(
                ".pushsection __talea_rseq_cs, \"aw\"",
                ".balign 32",
                "3:",
                ".long 0, 0",
                ".quad 4f, 5f - 4f, 6f",
                ".popsection",
                "mrs {area}, tpidr_el0",
                "add {area}, {area}, {offset}",
                "ldr {before}, [{area}, #8]",
                "2:",
                "adrp {t}, 3b",
                "add {t}, {t}, :lo12:3b",
                "str {t}, [{area}, #8]",
                "4:",
                "ldrh {t:w}, [{area}, #4]",
                "ldr {t}, [{table}, {t}, lsl #3]",
                "cbz {t}, 5f",
                $body,
                "5:",
                "str {before}, [{area}, #8]",
                ".subsection 1",
                ".inst 0xd428bc00",
                "6:",
                "b 2b",
                ".previous",
                t = out(reg) found,
                area = out(reg) _,
                before = out(reg) _,
                offset = in(reg) offset,
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
        let [one, other]: [Word; 2] = $cells;
        let left: u64;
        let offset = OFFSET.load(Ordering::Relaxed);
        if offset == 0 {
            return Err(Undone { first: Some(one) });
        }
        // SAFETY: as on x86-64.
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
                "mrs {area}, tpidr_el0",
                "add {area}, {area}, {offset}",
                "ldr {before}, [{area}, #8]",
                "2:",
                "adrp {t}, 3b",
                "add {t}, {t}, :lo12:3b",
                "str {t}, [{area}, #8]",
                "4:",
                "ldrh {cpu:w}, [{area}, #4]",
                "ldr {t}, [{table}, {cpu}, lsl #3]",
                "cbz {t}, 14f",
                $one,
                "5:",
                "adrp {left}, 8b",
                "add {left}, {left}, :lo12:8b",
                "str {left}, [{area}, #8]",
                "9:",
                "ldrh {left:w}, [{area}, #4]",
                "cmp {left:w}, {cpu:w}",
                "b.ne 15f",
                $other,
                "12:",
                "mov {left}, #0",
                "16:",
                "str {before}, [{area}, #8]",
                ".subsection 1",
                ".inst 0xd428bc00",
                "6:",
                "b 2b",
                ".inst 0xd428bc00",
                "13:",
                "b 5b",
                // No plane for the first.
                "14:",
                "mov {left}, #2",
                "b 16b",
                // Another CPU than before.
                "15:",
                "ldrh {cpu:w}, [{area}, #4]",
                "ldr {t}, [{table}, {cpu}, lsl #3]",
                "cbnz {t}, 5b",
                // No plane for the second.
                "mov {left}, #1",
                "b 16b",
                ".previous",
                t = out(reg) _,
                cpu = out(reg) _,
                area = out(reg) _,
                before = out(reg) _,
                left = out(reg) left,
                offset = in(reg) offset,
                table = in(reg) $table.as_ptr(),
                one = in(reg) one.as_ptr(),
                other = in(reg) other.as_ptr(),
                $($operand)*
                options(nostack),
            );
        }
        match left {
            0 => Ok(()),
            1 => Err(Undone { first: None }),
            _ => Err(Undone { first: Some(one) }),
        }
    }};
}

/// Adds 1 to the first and `value` to the second of two striped cells, as
/// [`add`] does.
#[inline]
pub(crate) fn count(cells: [Word; 2], table: &&CpuTable, value: u64) -> Result<(), Undone> {
    two_sequences!(
        "ldr {sum}, [{one}, {t}]\nadd {sum}, {sum}, #1\nstr {sum}, [{one}, {t}]",
        "ldr {sum}, [{other}, {t}]\nadd {sum}, {sum}, {value}\nstr {sum}, [{other}, {t}]",
        cells, table, value = in(reg) value, sum = out(reg) _,
    )
}

/// As [`count`], if the second cell holds a float.
#[inline]
pub(crate) fn count_float(cells: [Word; 2], table: &&CpuTable, value: f64) -> Result<(), Undone> {
    two_sequences!(
        "ldr {sum}, [{one}, {t}]\nadd {sum}, {sum}, #1\nstr {sum}, [{one}, {t}]",
        "ldr {float:d}, [{other}, {t}]\nfadd {float:d}, {float:d}, {value:d}\nstr {float:d}, [{other}, {t}]",
        cells, table, value = in(vreg) value, sum = out(reg) _, float = out(vreg) _,
    )
}

/// Adds to the running CPU's copy of a striped cell; false where that CPU
/// has no plane.
#[inline]
pub(crate) fn add(cell: &AtomicU64, table: &&CpuTable, value: u64) -> bool {
    sequence!(
        "ldr {sum}, [{cell}, {t}]\nadd {sum}, {sum}, {value}\nstr {sum}, [{cell}, {t}]",
        cell, table, value = in(reg) value, sum = out(reg) _,
    )
}

/// As [`add`], for a cell that holds a float.
#[inline]
pub(crate) fn add_float(cell: &AtomicU64, table: &&CpuTable, value: f64) -> bool {
    sequence!(
        "ldr {float:d}, [{cell}, {t}]\nfadd {float:d}, {float:d}, {value:d}\nstr {float:d}, [{cell}, {t}]",
        cell, table, value = in(vreg) value, float = out(vreg) _,
    )
}
