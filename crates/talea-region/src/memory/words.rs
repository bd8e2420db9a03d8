//! The memory of a region: its words, and the process's own state beside them.

use std::sync::atomic::{AtomicBool as OwnBool, AtomicU64 as OwnWord, Ordering::Acquire};

use super::mapping::{Mapping, PoolWords};
use super::refusal::Refusal;
use super::restartable::CpuTable;
use crate::layout::*;
use crate::primitive::{AtomicU64, Word, Words};
use crate::source::{RECORD_WORDS, Record, Source};

/// The mapped words of a region, and the state of this process beside them. It hands out memory and
/// knows nothing of families and series.
pub(crate) struct Memory {
    pub(crate) map: Mapping,
    pub(crate) sections: Sections,
    pub(crate) adds: Adds,
    pub(crate) own: OwnSlot,
    pub(super) refusal: Refusal,
    /// This process's own copy of the CPU table for atomic adds: see `planes.rs`.
    pub(super) atomic_entries: Words,
    /// For each kind, the CPU ids below which this process's copies have entries.
    pub(super) cpus_known: [OwnWord; 2],
    /// Whether this process has made plane 0 complete, or made sure that it is.
    pub(super) is_known_complete: OwnBool,
}

/// The slot of this process. It stands in memory of the process, so a child changes its own copy.
#[derive(Debug, Default)]
pub(crate) struct OwnSlot {
    /// The slot's number; `SLOT_COUNT` for the block that is shared.
    pub(super) slot: OwnWord,
    /// The distance of its block from block 0.
    pub(super) block: OwnWord,
    /// The distance of its guard words from those of slot 0.
    pub(super) guards: OwnWord,
    /// How many of its guard words have one thread as their only writer.
    pub(super) lone_words: OwnWord,
}

/// The fields that nearly every add reads, in one cache line: docs/explanations/adds.md, "Cache lines".
#[repr(align(64))]
pub(crate) struct Adds {
    /// This process's own copy of the CPU table for plain adds, which no other process can write to.
    /// CPU id to the plane, as far as this process knows: see `planes.rs`.
    pub(crate) table: &'static CpuTable,
    /// Plane 0, which most segments are given by, and the single cells.
    pub(crate) striped: PoolWords,
    pub(crate) singles: PoolWords,
}

impl Memory {
    /// Mapped words that are laid out in this way.
    pub(crate) fn new(map: Mapping, sections: Sections) -> Self {
        let atomic_entries = Vec::leak((0..CPUS).map(|_| AtomicU64::new(0)).collect());
        let table = Box::leak(empty_cpu_table());
        let striped = PoolWords::of(&map, sections.striped.at, sections.plane_len);
        let singles = PoolWords::of(&map, sections.singles.at, sections.singles.len);
        Self {
            map,
            sections,
            adds: Adds { table, striped, singles },
            own: OwnSlot::default(),
            refusal: Refusal::default(),
            atomic_entries,
            cpus_known: Default::default(),
            is_known_complete: OwnBool::new(false),
        }
    }

    /// The entries of the CPU table for plain adds that may be other than 0.
    pub(super) fn plain_entries(&self) -> Words {
        &self.adds.table[..CPUS as usize]
    }

    /// A word of the header or of a table whose place follows from the sections.
    #[inline]
    pub(crate) fn word_at(&self, at: u64) -> Word {
        match self.map.word(at) {
            Some(word) => word,
            // Sections lie inside the mapping. If this is wrong, a word that is never read stands
            // in, so that a service does not stop.
            None => {
                debug_assert!(false, "offset {at} is outside the region");
                nowhere()
            }
        }
    }

    /// The offset of a word that a handle of this process leads to.
    #[inline]
    pub(crate) fn offset_of(&self, word: Word) -> Option<u64> {
        let at = self.map.offset_of(word);
        debug_assert!(at.is_some(), "a handle leads out of its region");
        at
    }

    /// The copy of a cell `delta` bytes after another one.
    #[inline]
    pub(crate) fn word_after(&self, word: Word, delta: u64) -> Option<Word> {
        let copy = self.map.word(self.offset_of(word)? + delta);
        debug_assert!(copy.is_some(), "a copy {delta} bytes behind a cell is outside the region");
        copy
    }

    /// Backs pages; `None` if the system refuses, or refused as much less than a second ago.
    pub(crate) fn back_pages(&self, at: u64, len: u64) -> Option<()> {
        if self.refusal.is_about(len) {
            return None;
        }
        let backed = self.map.back(at, len).ok();
        match backed {
            Some(()) => self.refusal.note_success(len),
            None => self.refusal.note(len),
        }
        backed
    }
}

impl Source for Memory {
    fn sections(&self) -> &Sections {
        &self.sections
    }

    fn words(&self, at: u64, count: u64) -> Option<impl Iterator<Item = u64>> {
        // Acquire, since some of these words say that others may be read.
        Some(self.map.words(at, count)?.iter().map(|word| word.load(Acquire)))
    }

    #[inline(always)]
    fn block<const N: usize>(&self, at: u64, count: u64) -> Option<[u64; N]> {
        let words = self.map.words(at, count)?;
        let last = words.len().checked_sub(1)?;
        Some(std::array::from_fn(|n| words[n.min(last)].load(Acquire)))
    }

    #[inline(always)]
    fn records(&self, at: u64, count: u64) -> Option<impl Iterator<Item = Record>> {
        let words = self.map.words(at, count * RECORD_WORDS as u64)?.chunks_exact(RECORD_WORDS);
        Some(words.map(|record| std::array::from_fn(|n| record[n].load(Acquire))))
    }

    fn own_planes(&self) -> impl Iterator<Item = u64> {
        self.own_planes_by_entry().map(|(_, delta)| delta)
    }

    fn has_lazy_copies(&self) -> bool {
        self.is_plane_0_complete()
    }

    fn stands(&self, _: u64) -> bool {
        // The snapshot is taken under a guard.
        true
    }

    fn lives(&self, slot: u64) -> bool {
        slot == self.own_slot() || self.map.backing().others_hold(slot..slot + 1).unwrap_or(true)
    }
}

/// A table whose pages take no memory until they are used.
#[cfg(not(loom))]
fn empty_cpu_table() -> Box<CpuTable> {
    let layout = std::alloc::Layout::new::<CpuTable>();
    // SAFETY: the layout is the table's, which is not empty and of which all bytes may be 0. The
    // box frees it as the allocator expects.
    unsafe {
        let table = std::alloc::alloc_zeroed(layout).cast::<CpuTable>();
        if table.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        Box::from_raw(table)
    }
}

#[cfg(loom)]
fn empty_cpu_table() -> Box<CpuTable> {
    Box::new(std::array::from_fn(|_| AtomicU64::new(0)))
}

#[cfg(not(loom))]
fn nowhere() -> Word {
    static NOWHERE: AtomicU64 = AtomicU64::new(0);
    &NOWHERE
}

#[cfg(loom)]
fn nowhere() -> Word {
    unreachable!("the model checker stays inside")
}
