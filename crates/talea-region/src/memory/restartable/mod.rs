//! Adds in restartable sequences: a plain add to the running CPU's plane,
//! which the kernel starts over if the thread is moved, preempted or signalled
//! in the middle. (Linux on x86-64 and aarch64; see `rseq(2)`.)
//!
//! `system` has the thread's `area` and the `sequences`, which stand once, in instructions of the processor
//! (`x86_64`, `aarch64`). `model` stands for it under the model checker, `missing` on other systems.
//!
//! Implementation details. The sequence, from arming to its one store:
//!
//! ```text
//!     before ← rseq_cs                0, or what a signal handler interrupted
//!     rseq_cs ← descriptor            arm
//!  4: cpu ← rseq.cpu_id               start of the sequence
//!     delta ← table[cpu]              0: this CPU has no plane, leave
//!     [cell + delta] += value         the commit, its last instruction
//!  5: rseq_cs ← before                disarm, on every way out
//! ```
//!
//! - The kernel compares the interrupted address with `4..5`. Inside, it continues at the abort
//!   label, which starts again. The four bytes before that label must be the signature with which the
//!   area was registered.
//! - Of `cpu_id` 16 bits are read, and the table has an entry for each number of 16 bits, so that
//!   nothing is to be compared: Linux has at most 8,192 CPUs. An area that is not registered holds −1 or
//!   −2, whose entries are always 0. So the add leaves, and [`cpu`] registers the area.
//! - The commit is one instruction on x86-64, an add to memory. On aarch64 it is the store of a sum,
//!   whose load stands in the sequence too.
//! - The descriptor is written to the thread's area by address, so that it
//!   must stay mapped; disarming on every way out means that a library could
//!   even be unloaded. It lives in a writable section, since its addresses are
//!   relocated.
//! - An add that fails to find a plane returns false and has changed nothing.
//! - Two adds in a row are two sequences with a descriptor each, since each has one
//!   commit. The second is armed over the first, finds the same plane as long as the
//!   CPU is the same, and starts over on its own: the first is done by then.

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
// One word, so that the common path keeps nothing else for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Undone {
    /// The first cell; `None` if only the second add is left.
    pub(crate) first: Option<Word>,
}
