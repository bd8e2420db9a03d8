//! Adds in restartable sequences: a plain add to the running CPU's plane,
//! which the kernel starts over if the thread is moved, preempted or signalled
//! in the middle. (Linux on x86-64 and aarch64; see `rseq(2)`.)
//!
//! `system` has the thread's `area` and the `sequences`, which stand once, in instructions of the processor
//! (`x86_64`, `aarch64`). `model` stands for it under the model checker, `missing` on other systems.
//!
//! `docs/explanations/adds.md` explains the sequence, instruction by instruction.

use super::amount::Amount;
use crate::primitive::{AtomicU64, Word};

#[cfg_attr(loom, path = "model.rs")]
#[cfg_attr(
    all(
        target_os = "linux",
        target_pointer_width = "64",
        target_endian = "little",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(any(loom, miri))
    ),
    path = "system.rs"
)]
#[cfg_attr(
    not(any(
        all(
            target_os = "linux",
            target_pointer_width = "64",
            target_endian = "little",
            any(target_arch = "x86_64", target_arch = "aarch64"),
            not(miri)
        ),
        loom
    )),
    path = "missing.rs"
)]
mod imp;

pub(crate) use imp::*;

/// The entries of a [`CpuTable`].
pub(crate) const CPU_NUMBERS: usize = if cfg!(loom) { 2 } else { 1 << 16 };

/// The distance from plane 0 of each CPU's plane for plain adds, 0 for a CPU that has none. It lies in
/// memory of this process.
pub(crate) type CpuTable = [AtomicU64; CPU_NUMBERS];

/// An amount that is added in restartable sequences.
pub(crate) trait RestartableAdd: Amount {
    /// Adds to the running CPU's copy of a striped cell; false if that CPU has no plane.
    fn add_in_sequence(self, cell: &AtomicU64, table: &&CpuTable) -> bool;

    /// Adds 1 to the first and this amount to the second of two striped cells, in a sequence each.
    fn count_in_sequences(self, cells: [Word; 2], table: &&CpuTable) -> Result<(), Undone>;
}

/// The part of two adds in a row that is not done, because it found no plane.
// One word: docs/explanations/adds.md, "Registers".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Undone {
    /// The first cell; `None` if only the second add is left.
    pub(crate) first: Option<Word>,
}
