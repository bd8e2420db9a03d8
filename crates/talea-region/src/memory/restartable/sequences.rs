//! The sequences, in the instructions that a processor's file names in a macro `instructions!`.

/// Implements [`RestartableAdd`](super::super::RestartableAdd) for an amount: `$add` is the instruction
/// row that adds it, `$class` the class of its register. The lists are the other registers that the
/// rows of both functions take, and those of `count_in_sequences` only.
///
/// Registers have the same names in all rows:
///
/// - `t`, the scratch of the first descriptor; then the distance of the CPU's plane, 0 if it has none
/// - `before`, the descriptor that was armed before
/// - `cell`, the cell that `value` is added to; `one`, the cell that 1 is added to
/// - `cpu`, the number of the CPU of the first add
macro_rules! sequences {
    ($amount:ty, $add:ident, $class:ident, [$($scratch:tt)*], [$($of_one:tt)*]) => {
        impl RestartableAdd for $amount {
            #[inline]
            fn add_in_sequence(self, cell: &AtomicU64, table: &&CpuTable) -> bool {
                let delta: u64;
                let offset = OFFSET.load(Ordering::Relaxed);
                if offset == 0 {
                    return false;
                }
                // SAFETY: `offset` leads to this thread's area. The table has an entry for every number
                // of 16 bits, of which no more is read. It lies in memory of this process, and only
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
                        instructions!(find_area),
                        instructions!(load_armed),
                        "2:",
                        instructions!(arm "3b", t),
                        "4:",
                        instructions!(find_plane),
                        instructions!(leave_without_plane),
                        instructions!($add),
                        "5:",
                        "14:",
                        instructions!(disarm),
                        instructions!(begin_cold),
                        instructions!(signature),
                        "6:",
                        instructions!(jump "2b"),
                        instructions!(end_cold),
                        t = out(reg) delta,
                        before = out(reg) _,
                        offset = in(reg) offset,
                        table = in(reg) table.as_ptr(),
                        cell = in(reg) cell.as_ptr(),
                        value = in($class) self,
                        $($scratch)*
                        options(nostack),
                    );
                }
                delta != 0
            }

            #[inline]
            fn count_in_sequences(
                self,
                [one, cell]: [Word; 2],
                table: &&CpuTable,
            ) -> Result<(), Undone> {
                let (left, first): (u64, *const AtomicU64);
                let offset = OFFSET.load(Ordering::Relaxed);
                if offset == 0 {
                    return Err(Undone { first: Some(one) });
                }
                // SAFETY: as of one sequence, twice. Between the two the thread may come
                // to another CPU: then the second looks up that CPU's plane. The register of the first
                // cell is written to once the first add is done.
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
                        instructions!(find_area),
                        instructions!(load_armed),
                        "2:",
                        instructions!(arm "3b", t),
                        "4:",
                        instructions!(find_plane_of_cpu),
                        instructions!(leave_without_plane),
                        instructions!(add_one),
                        "5:",
                        instructions!(arm "8b", one),
                        "9:",
                        instructions!(leave_if_moved),
                        instructions!($add),
                        "12:",
                        instructions!(disarm),
                        instructions!(left 0),
                        "16:",
                        instructions!(begin_cold),
                        instructions!(signature),
                        "6:",
                        instructions!(jump "2b"),
                        instructions!(signature),
                        "13:",
                        instructions!(jump "5b"),
                        // No plane for the first.
                        "14:",
                        instructions!(disarm),
                        instructions!(left 2),
                        instructions!(jump "16b"),
                        // Another CPU than before.
                        "15:",
                        instructions!(find_plane_of_cpu),
                        instructions!(resume_with_plane),
                        // No plane for the second.
                        instructions!(disarm),
                        instructions!(left 1),
                        instructions!(jump "16b"),
                        instructions!(end_cold),
                        t = out(reg) _,
                        cpu = out(reg) _,
                        // The descriptor that was armed before; then how many adds are left. No more
                        // registers: docs/explanations/adds.md, "Registers".
                        before = out(reg) left,
                        offset = in(reg) offset,
                        table = in(reg) std::ptr::from_ref(table),
                        one = inout(reg) std::ptr::from_ref(one) => first,
                        cell = in(reg) cell.as_ptr(),
                        value = in($class) self,
                        $($scratch)*
                        $($of_one)*
                        options(nostack),
                    );
                }
                match left {
                    0 => Ok(()),
                    1 => Err(Undone { first: None }),
                    // SAFETY: neither add is done, so the register has the first cell still.
                    _ => Err(Undone { first: Some(unsafe { &*first }) }),
                }
            }
        }
    };
}
