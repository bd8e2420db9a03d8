//! Runs of cells: where a series' cells lie, and how they are taken and given back.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use super::planes;
use super::words::Memory;
use crate::layout::*;
use crate::primitive::{AtomicU64, Word, Words};
use crate::source;
use crate::values::Storage;

/// A run of cells: `offset:40 | storage:8 | count:16`. The offset is that of the first cell in the
/// first copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellRun {
    pub(crate) at: u64,
    pub(crate) storage: Storage,
    pub(crate) count: u64,
}

impl CellRun {
    pub(crate) fn pack(self) -> u64 {
        let packed = self.at << 24 | (self.storage as u64) << 16 | self.count;
        debug_assert_eq!(Self::unpack(packed), Some(self));
        packed
    }

    #[inline]
    pub(crate) fn unpack(word: u64) -> Option<Self> {
        let storage = Storage::from_u8((word >> 16) as u8)?;
        Some(Self { at: word >> 24, storage, count: word & 0xFFFF })
    }

    /// Granules that it takes of its pool.
    pub(crate) fn granules(self) -> u64 {
        match self.storage {
            Storage::Stripes => STRIPES * stripe_len(self.count) / WORD,
            Storage::Single | Storage::Striped | Storage::Owned => self.count,
        }
    }
}

/// How many copies a striped series has that found no room in the planes.
pub(crate) const STRIPES: u64 = 4;

/// How far these lie from each other: no two share a cache line.
pub(crate) fn stripe_len(cells: u64) -> u64 {
    (cells * WORD).next_multiple_of(LINE)
}

impl Memory {
    /// Takes cells for a series: where its family wants them, or where there is room. An add to
    /// one of them is never refused.
    pub(crate) fn take_cells(&self, storage: Storage, count: u64) -> Option<CellRun> {
        let Sections { striped, lazy, .. } = self.sections;
        match storage {
            Storage::Striped => (self.take_from(&striped, storage, count))
                .or_else(|| self.take_complete(&lazy, count))
                .or_else(|| self.take_elsewhere(storage, count)),
            Storage::Owned => (self.take_from(&self.sections.owned, storage, count))
                .or_else(|| self.take_elsewhere(storage, count)),
            Storage::Single | Storage::Stripes => self.take_elsewhere(storage, count),
        }
    }

    /// Takes cells for a segment. An add to one that is lazy can be refused.
    pub(crate) fn take_segment_cells(&self, storage: Storage, count: u64) -> Option<CellRun> {
        let lazy = (storage == Storage::Striped)
            .then(|| self.take_from(&self.sections.lazy, storage, count));
        lazy.flatten().or_else(|| self.take_cells(storage, count))
    }

    /// Takes single cells. Where the planes are full, four copies keep most threads apart; and one atomic
    /// cell counts as well.
    fn take_elsewhere(&self, storage: Storage, count: u64) -> Option<CellRun> {
        let singles = &self.sections.singles;
        let apart = match storage {
            Storage::Striped | Storage::Stripes => self.take_from(singles, Storage::Stripes, count),
            Storage::Owned | Storage::Single => None,
        };
        apart.or_else(|| self.take_from(singles, Storage::Single, count))
    }

    /// Takes lazy cells of which plane 0 has a copy.
    fn take_complete(&self, lazy: &Pool, count: u64) -> Option<CellRun> {
        let run = self.take_from(lazy, Storage::Striped, count)?;
        if planes::complete(self) {
            return Some(run);
        }
        self.drop_cells(run);
        None
    }

    fn take_from(&self, pool: &Pool, storage: Storage, count: u64) -> Option<CellRun> {
        let run = CellRun { at: 0, storage, count };
        let at = pool.at + self.take(pool, run.granules())?;
        let run = CellRun { at, ..run };
        debug_assert!(self.is_in_its_part(run), "{run:?}");
        Some(run)
    }

    pub(crate) fn drop_cells(&self, run: CellRun) {
        let pool = match run.storage {
            Storage::Single | Storage::Stripes => self.sections.singles,
            Storage::Striped if self.sections.is_lazy(run.at) => self.sections.lazy,
            Storage::Striped => self.sections.striped,
            Storage::Owned => self.sections.owned,
        };
        if let Some(at) = run.at.checked_sub(pool.at) {
            self.give_back(&pool, at, run.granules());
        }
    }

    /// Whether a run lies where cells of its storage do. Other memory must not be added to, whatever a
    /// damaged record names. The other copies are found from the first one, so the first must lie
    /// there.
    #[inline]
    pub(crate) fn is_in_its_part(&self, run: CellRun) -> bool {
        let Sections { singles, striped, plane_len, owned, .. } = &self.sections;
        let (from, len) = match run.storage {
            Storage::Single | Storage::Stripes => (singles.at, singles.len),
            Storage::Striped => (striped.at, *plane_len),
            Storage::Owned => (owned.at, owned.len),
        };
        let end = run.at.saturating_add(run.granules() * WORD);
        run.count > 0 && from <= run.at && end <= from + len
    }

    /// Whether a word is the first copy of a cell that is stored in this way.
    pub(crate) fn has_first_copy(&self, word: Word, storage: Storage) -> bool {
        let at = self.map.offset_of(word);
        at.is_some_and(|at| self.is_in_its_part(CellRun { at, storage, count: 1 }))
    }

    /// Calls `each` with every word of every copy of a run that any process ever had.
    pub(crate) fn for_each_word(&self, run: CellRun, mut each: impl FnMut(&AtomicU64)) {
        let mut copy = |delta: u64| {
            let words = run.at.checked_add(delta).and_then(|at| self.map.words(at, run.count));
            words.into_iter().flatten().for_each(&mut each);
        };
        match run.storage {
            Storage::Single => copy(0),
            Storage::Stripes => (0..STRIPES).for_each(|n| copy(n * stripe_len(run.count))),
            Storage::Striped => source::planes_of(self, run.at).for_each(copy),
            Storage::Owned => self.blocks().for_each(copy),
        }
    }

    /// `count` single cells at an offset; `None` if they cannot lie there, as at 0.
    #[inline]
    pub(crate) fn singles(&self, at: u64, cells: u64) -> Option<Words> {
        let can_be = self.sections.lies_in_singles(at, cells);
        can_be.then(|| self.map.words(at, cells)).flatten()
    }

    /// Gets the run of single cells whose offset stands in a word, or makes it. Of several threads
    /// that make it at once, one succeeds and the others use its run.
    pub(crate) fn get_or_make_run(&self, word: &AtomicU64, cells: u64) -> Option<u64> {
        if word.load(Acquire) == 0 {
            let pool = self.sections.singles;
            let at = pool.at + self.take(&pool, cells)?;
            if word.compare_exchange(0, at, AcqRel, Acquire).is_err() {
                self.give_back(&pool, at - pool.at, cells);
            }
        }
        Some(word.load(Acquire)).filter(|&at| self.sections.lies_in_singles(at, cells))
    }

    /// Gives back a run of single cells, if one can lie there.
    pub(crate) fn drop_singles(&self, at: u64, cells: u64) {
        if let Some(all) = self.singles(at, cells) {
            all.iter().for_each(|word| word.store(0, Relaxed));
            self.give_back(&self.sections.singles, at - self.sections.singles.at, cells);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_run_survives_packing() {
        for storage in [Storage::Single, Storage::Striped, Storage::Owned, Storage::Stripes] {
            let run = CellRun { at: MAX_LEN - 8, storage, count: 65_535 };
            assert_eq!(CellRun::unpack(run.pack()), Some(run));
        }
        assert_eq!(CellRun::unpack(9 << 16), None);
    }
}
