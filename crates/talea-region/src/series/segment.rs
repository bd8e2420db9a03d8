//! One segment: an entry of a table, which names the segment's cells. `segments.rs` draws it.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::layout::*;
use crate::memory::Memory;
use crate::memory::runs::CellRun;
use crate::memory::table::Table;
use crate::primitive::AtomicU64;
use crate::values::Storage;

/// The most cells of a segment.
pub(super) const MOST_CELLS: u64 = (1 << 12) - 1;
/// The largest number that the layer above can store with a segment.
pub(super) const MOST_TAG: u16 = (1 << 12) - 1;

/// The shifts of the place and the storage in an entry.
pub(super) const PLACE: u64 = 27;
pub(super) const STORAGE: u64 = 24;

/// A segment that is made with each series of a family, with the largest tag: its number and its
/// cells, or 0 cells if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MadeSegment {
    /// Its number.
    pub n: u16,
    /// How many cells it has, at most 4,095. They are single cells, and an add to one is never refused.
    pub cells: u16,
}

impl MadeSegment {
    pub(crate) fn is_sound(self) -> bool {
        u64::from(self.cells) <= MOST_CELLS
    }

    pub(crate) fn pack(self) -> u64 {
        u64::from(self.cells) << 16 | u64::from(self.n)
    }

    /// Of a word that may hold anything: none if it is not sound.
    pub(crate) fn unpack(word: u64) -> Self {
        let made = Self { n: word as u16, cells: (word >> 16) as u16 };
        if made.is_sound() { made } else { Self::default() }
    }
}

/// A segment: its entry, as it was read.
#[derive(Clone, Copy, Debug)]
pub struct Segment(pub(super) NonZeroU64);

impl Segment {
    #[inline]
    pub(super) fn of_entry(entry: u64) -> Option<Self> {
        NonZeroU64::new(entry).map(Self)
    }

    /// The tag that it was made with.
    #[inline]
    pub fn tag(&self) -> u16 {
        self.0.get() as u16 & MOST_TAG
    }

    pub(super) fn pack(run: CellRun, tag: u16) -> u64 {
        let CellRun { at, storage, count } = run;
        let entry =
            (at / WORD) << PLACE | (storage as u64) << STORAGE | count << 12 | u64::from(tag);
        debug_assert!(at < MAX_LEN && at % WORD == 0 && count <= MOST_CELLS && tag <= MOST_TAG);
        entry
    }

    /// The cells of an entry and their `tag`; `None` if the entry names no segment.
    pub(crate) fn unpack(entry: u64) -> Option<(CellRun, u16)> {
        let segment = Self::of_entry(entry)?;
        let storage = match Storage::from_u8((entry >> STORAGE & 7) as u8)? {
            Storage::Owned => return None,
            storage => storage,
        };
        let run = CellRun { at: (entry >> PLACE) * WORD, storage, count: entry >> 12 & MOST_CELLS };
        Some((run, segment.tag()))
    }
}

/// The cells of the segment that an entry names.
pub(super) fn run_of(memory: &Memory, entry: &AtomicU64) -> Option<CellRun> {
    let (run, _) = Segment::unpack(entry.load(Acquire))?;
    memory.is_in_its_part(run).then_some(run)
}

/// The cells of all segments that a table names, each with the number of the segment.
pub(crate) fn runs_in(memory: &Memory, table: Table) -> impl Iterator<Item = (CellRun, usize)> {
    memory.table_words(table).filter_map(|(n, entry)| Some((run_of(memory, entry)?, n)))
}

/// Gives back all segments of a table, and its blocks.
pub(super) fn drop_all(memory: &Memory, table: Table) {
    for (_, entry) in memory.table_words(table) {
        let run = run_of(memory, entry);
        entry.store(0, Relaxed);
        if let Some(run) = run {
            memory.for_each_word(run, |cell| cell.store(0, Relaxed));
            memory.drop_cells(run);
        }
    }
    memory.drop_blocks(table);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_segment_survives_packing() {
        for storage in [Storage::Single, Storage::Striped, Storage::Stripes] {
            let run = CellRun { at: MAX_LEN - 8, storage, count: MOST_CELLS };
            let packed = Segment::pack(run, MOST_TAG);
            assert_eq!(Segment::unpack(packed).unwrap(), (run, MOST_TAG));
        }
        assert!(Segment::unpack(0).is_none());
        assert!(Segment::unpack((Storage::Owned as u64) << 24 | 1 << 12).is_none());
    }
}
