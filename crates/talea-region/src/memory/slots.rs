//! Process slots: the processes that have the region open, whether they live, and the block of
//! cells that each owns.
//!
//! A process lives while the byte of its slot is locked. The lock belongs to an open file
//! description that only this process has and that is never mapped (`mapping.rs`). So it works
//! across pid namespaces, and the kernel releases it when the process ends in any way. An owned
//! cell has the same place in every block; only the owner writes to a block, atomically (it may
//! have several threads).
//!
//! After `fork` the child leaves its parent's description, opens the file again, and takes a slot
//! and a block of its own; its parent keeps the old ones. This runs in the child before any other
//! code, so it calls only functions that are safe after a fork (`open/processes.rs`).

use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use super::words::Memory;
use crate::layout::*;
use crate::primitive::Word;
use crate::source::Source;

/// Bits of a slot's generation that a head has room for.
pub(crate) const GENERATION: u64 = (1 << 13) - 1;

impl Memory {
    /// Notes the slot that this process took.
    pub(crate) fn set_own_slot(&self, slot: u64, lone_words: u64) {
        self.own.lone_words.store(lone_words, Relaxed);
        self.own.slot.store(slot, Relaxed);
        self.own.block.store(self.sections.block(slot), Relaxed);
        let guards = self.sections.guards_of(slot) - self.sections.guards;
        self.own.guards.store(guards, Relaxed);
    }

    /// Counts the slot of this process again, so that others find it. It changes nothing unless the
    /// count is damaged.
    pub(crate) fn restore_slot_count(&self) {
        let (slots, own) = (self.word_at(M_SLOTS), self.own_slot());
        if own < SLOT_COUNT && slots.load(Relaxed) <= own {
            slots.fetch_max(own + 1, SeqCst);
        }
    }

    /// The slots that any process ever had.
    pub(crate) fn slots_used(&self) -> Range<u64> {
        0..self.word_at(M_SLOTS).load(Acquire).min(self.sections.slots)
    }

    /// The distances from block 0 of all blocks that any process ever had.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = u64> {
        self.slots_used().chain([SLOT_COUNT]).map(|slot| self.sections.block(slot))
    }

    #[inline]
    pub(crate) fn own_copy(&self, cell: Word) -> Word {
        self.word_after(cell, self.own.block.load(Relaxed)).unwrap_or(cell)
    }

    /// This process's slot; `SLOT_COUNT` where it has none.
    #[inline]
    pub(crate) fn own_slot(&self) -> u64 {
        self.own.slot.load(Relaxed)
    }

    #[inline]
    pub(crate) fn own_guard_word(&self, line: u64) -> Word {
        self.word_at(self.sections.guards + self.own.guards.load(Relaxed) + line * LINE)
    }

    /// How many guard words of this process have one thread as their only writer.
    #[inline]
    pub(crate) fn lone_words(&self) -> u64 {
        self.own.lone_words.load(Relaxed)
    }

    /// Whether the process is dead that had a slot in some generation.
    pub(crate) fn has_ended(&self, slot: u64, generation: u64) -> bool {
        // Whether a process without a slot lives is not known.
        slot < SLOT_COUNT && (generation != self.generation(slot) || !self.lives(slot))
    }

    pub(crate) fn generation(&self, slot: u64) -> u64 {
        if slot >= SLOT_COUNT {
            return 0;
        }
        self.slot_word_at(slot, SLOT_GENERATION).load(Acquire) & GENERATION
    }

    pub(crate) fn slot_word_at(&self, slot: u64, at: u64) -> Word {
        self.word_at(SLOTS + slot * SLOT_LEN + at)
    }
}
