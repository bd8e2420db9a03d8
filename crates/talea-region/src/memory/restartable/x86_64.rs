//! The sequences on x86-64.

use std::arch::asm;
use std::sync::atomic::{AtomicU64, Ordering};

use super::area::OFFSET;
use crate::memory::restartable::{CpuTable, Undone};
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

/// The frame that both adds share: everything but the instructions between
/// finding the plane (`{t}` holds its delta) and the commit.
macro_rules! sequence {
    ($body:literal, $cell:expr, $table:expr, $($operand:tt)*) => {{
        let found: u64;
        let offset = OFFSET.load(Ordering::Relaxed);
        if offset == 0 {
            return false;
        }
        // SAFETY: `offset` is that of this thread's area. The table has an entry for every number of 16
        // bits, of which no more is read. It lies in memory of this process, and only
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
                "mov {before}, qword ptr fs:[{offset} + 8]",
                "2:",
                "lea {t}, [rip + 3b]",
                "mov qword ptr fs:[{offset} + 8], {t}",
                "4:",
                "movzx {t:e}, word ptr fs:[{offset} + 4]",
                "mov {t}, qword ptr [{table} + {t} * 8]",
                "test {t}, {t}",
                "jz 5f",
                $body,
                "5:",
                "mov qword ptr fs:[{offset} + 8], {before}",
                ".pushsection .text.unlikely, \"ax\"",
                // The signature stands inside an undefined instruction, so
                // that nothing can run into it.
                ".byte 0x0f, 0xb9, 0x3d",
                ".long 0x53053053",
                "6:",
                "jmp 2b",
                ".popsection",
                t = out(reg) found,
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
        let (left, first): (u64, *const AtomicU64);
        let offset = OFFSET.load(Ordering::Relaxed);
        if offset == 0 {
            return Err(Undone { first: Some(one) });
        }
        // SAFETY: as that of one sequence, twice. Between the two the thread may come
        // to another CPU: then the second looks up that CPU's plane. The register of the first cell
        // is written to once the first add is done.
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
                "mov {left}, qword ptr fs:[{offset} + 8]",
                "2:",
                "lea {t}, [rip + 3b]",
                "mov qword ptr fs:[{offset} + 8], {t}",
                "4:",
                "movzx {cpu:e}, word ptr fs:[{offset} + 4]",
                "mov {t}, qword ptr [{table}]",
                "mov {t}, qword ptr [{t} + {cpu} * 8]",
                "test {t}, {t}",
                "jz 14f",
                $one,
                "5:",
                "lea {one}, [rip + 8b]",
                "mov qword ptr fs:[{offset} + 8], {one}",
                "9:",
                "cmp {cpu:x}, word ptr fs:[{offset} + 4]",
                "jne 15f",
                $other,
                "12:",
                "mov qword ptr fs:[{offset} + 8], {left}",
                "xor {left:e}, {left:e}",
                "16:",
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
                "mov qword ptr fs:[{offset} + 8], {left}",
                "mov {left:e}, 2",
                "jmp 16b",
                // Another CPU than before.
                "15:",
                "movzx {cpu:e}, word ptr fs:[{offset} + 4]",
                "mov {t}, qword ptr [{table}]",
                "mov {t}, qword ptr [{t} + {cpu} * 8]",
                "test {t}, {t}",
                "jnz 5b",
                // No plane for the second.
                "mov qword ptr fs:[{offset} + 8], {left}",
                "mov {left:e}, 1",
                "jmp 16b",
                ".popsection",
                t = out(reg) _,
                cpu = out(reg) _,
                // The descriptor that was armed before; then how many adds are left. (One more register,
                // and the caller would have to save one. So the table is not given itself either: its
                // place is known for another reason.)
                left = out(reg) left,
                offset = in(reg) offset,
                table = in(reg) std::ptr::from_ref($table),
                one = inout(reg) std::ptr::from_ref(one) => first,
                other = in(reg) other.as_ptr(),
                $($operand)*
                options(nostack),
            );
        }
        match left {
            0 => Ok(()),
            1 => Err(Undone { first: None }),
            // SAFETY: neither add is done, so the register has the first cell still.
            _ => Err(Undone { first: Some(unsafe { &*first }) }),
        }
    }};
}

/// Adds 1 to the first and `value` to the second of two striped cells, as
/// [`add`] does.
#[inline]
pub(crate) fn count(cells: [Word; 2], table: &&CpuTable, value: u64) -> Result<(), Undone> {
    two_sequences!(
        "add qword ptr [{one} + {t}], 1",
        "add qword ptr [{other} + {t}], {value}",
        cells, table, value = in(reg) value,
    )
}

/// As [`count`], if the second cell holds a float.
#[inline]
pub(crate) fn count_float(cells: [Word; 2], table: &&CpuTable, value: f64) -> Result<(), Undone> {
    two_sequences!(
        "add qword ptr [{one} + {t}], 1",
        "movsd {sum}, qword ptr [{other} + {t}]\naddsd {sum}, {value}\nmovsd qword ptr [{other} + {t}], {sum}",
        cells, table, value = in(xmm_reg) value, sum = out(xmm_reg) _,
    )
}

/// Adds to the running CPU's copy of a striped cell; false where that CPU
/// has no plane.
#[inline]
pub(crate) fn add(cell: &AtomicU64, table: &&CpuTable, value: u64) -> bool {
    sequence!("add qword ptr [{cell} + {t}], {value}", cell, table, value = in(reg) value,)
}

/// As [`add`], for a cell that holds a float.
#[inline]
pub(crate) fn add_float(cell: &AtomicU64, table: &&CpuTable, value: f64) -> bool {
    sequence!(
        "movsd {sum}, qword ptr [{cell} + {t}]\naddsd {sum}, {value}\nmovsd qword ptr [{cell} + {t}], {sum}",
        cell, table, value = in(xmm_reg) value, sum = out(xmm_reg) _,
    )
}
