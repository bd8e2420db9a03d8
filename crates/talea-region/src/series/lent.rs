//! Lent planes: copies of the striped cells that one thread alone writes, by plain stores.
//!
//! An environment of JavaScript is one thread for its life, and a store to a typed array costs it a fifth of
//! a call of native code. So it borrows a plane, and adds to its copies of cells by a load and a store. As in
//! every plane, the values stay when the thread ends: a reader adds all planes that were ever lent, and
//! nothing has to be moved. The next thread that borrows the plane adds to what it finds.
//!
//! ```text
//!   0 ──pages are backed──▶ owned ──dropped──▶ free
//!                            ▲ │  ▲──────────────┘
//!                            └─┘ the owner is dead, and another process takes it
//! ```
//!
//! Invariants:
//!
//! 1. *A lent plane has one writer.* The word of a plane changes by compare-and-swap: from 0, from free,
//!    or from an owner whose process is dead. A process is dead when the kernel has released its lock, which is
//!    after its last thread has stopped. A process never takes what its own other threads have.
//! 2. *New cells are backed in every lent plane.* As invariant 4 of `memory/planes.rs`: a thread that borrows a
//!    plane for the first time moves the count, then has a full fence, then reads how far cells are in use.
//! 3. *A reader reads no page that is not backed.* The word of a plane is other than 0 only when its pages
//!    are backed. A thread that is killed before that leaves a counted plane with 0, which the next one
//!    backs.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};

use super::cell::Cell;
use crate::layout::*;
use crate::memory::{Memory, planes};
use crate::primitive::{Word, Words, fence};
use crate::region::Region;
use crate::values::Storage;

/// A plane that nobody has, and whose pages are backed.
const FREE: u64 = 2;

/// The word of a plane that a process has: `generation:13 | slot:11 | 1`.
fn owner(slot: u64, generation: u64) -> u64 {
    generation << 12 | slot << 1 | 1
}

/// Whether a plane can be taken from what its word says.
fn can_be_taken(memory: &Memory, word: u64) -> bool {
    match word {
        0 | FREE => true,
        owned => memory.has_ended(owned >> 1 & (2 * SLOT_COUNT - 1), owned >> 12),
    }
}

/// A plane that one thread of this process has, until it is dropped.
///
/// That thread may add to each of its [`words`](Self::words) by a load and a store; no other thread may write
/// to them, and no child made by `fork`: it borrows its own.
#[derive(Debug)]
pub struct LentPlane {
    region: &'static Region,
    /// Its number among the lent ones.
    n: u64,
    /// What its word says while this process has it.
    owner: u64,
}

impl Region {
    /// Lends a plane to a thread that adds by plain stores. `None` if all are in use, if there is no memory for
    /// one, or if this process has no slot; then use [`Cell::add`].
    ///
    /// Cost: some system calls. The values of a plane stay when it is given back.
    pub fn lend_plane(&'static self) -> Option<LentPlane> {
        let memory = &self.memory;
        let slot = memory.own_slot();
        if slot >= SLOT_COUNT {
            return None;
        }
        let owner = owner(slot, memory.generation(slot));
        for n in 0..memory.sections.lent_count {
            let word = memory.lent_word(n);
            let found = word.load(Acquire);
            if !can_be_taken(memory, found) {
                continue;
            }
            memory.word_at(M_LENT).fetch_max(n + 1, SeqCst);
            fence(SeqCst);
            // Also one that was counted before: the process that counted it may have been killed then.
            if !planes::back_plane(memory, memory.sections.plane_count + n) {
                return None;
            }
            if word.compare_exchange(found, owner, AcqRel, Relaxed).is_ok() {
                return Some(LentPlane { region: self, n, owner });
            }
        }
        None
    }
}

impl Memory {
    fn lent_word(&self, n: u64) -> Word {
        self.word_at(LENT_TABLE + n * WORD)
    }
}

impl LentPlane {
    /// The words of the plane. Only those that [`index_of`](Self::index_of) names may be used.
    pub fn words(&self) -> Words {
        let memory = &self.region.memory;
        let Sections { plane_len, plane_count, .. } = memory.sections;
        let at = memory.sections.plane(plane_count + self.n);
        memory.map.words(at, plane_len / WORD).unwrap_or_default()
    }

    /// Which of the [`words`](Self::words) is the copy of a cell. `None` if the cell is in no plane, or of
    /// another region.
    pub fn index_of(&self, cell: Cell) -> Option<usize> {
        let is_striped = cell.storage() == Some(Storage::Striped);
        if !is_striped || !std::ptr::eq(cell.region(), self.region) {
            return None;
        }
        let at = self.region.memory.offset_of(cell.word())?;
        Some((at.checked_sub(self.region.memory.sections.striped.at)? / WORD) as usize)
    }

    /// Whether this process has the plane, not the one that it was forked from.
    fn is_own(&self) -> bool {
        let memory = &self.region.memory;
        let slot = memory.own_slot();
        self.owner == owner(slot, memory.generation(slot))
    }
}

/// Gives it back, for the next thread that asks. A child made by `fork` leaves it to its parent.
impl Drop for LentPlane {
    fn drop(&mut self) {
        if self.is_own() {
            let word = self.region.memory.lent_word(self.n);
            let _ = word.compare_exchange(self.owner, FREE, AcqRel, Relaxed);
        }
    }
}
