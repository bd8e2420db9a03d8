//! Segments: cells that a series gets a few at a time, when it first needs them.
//!
//! A series of a family with segments has a directory among the single cells, made with the series:
//! a word for the layers above, and a table (`memory/table.rs`) with an entry for each segment that
//! it may have. An entry is 0, or names the segment's cells:
//!
//! ```text
//!   place:37 | storage:3 | cells:12 | what:12
//! ```
//!
//! The place is the offset of the first copy in words; `what` is for the layers above. An entry is
//! published once, by compare-and-swap, and stays as long as the series. A thread that loses the
//! race gives its cells back and uses the winner's. A process that is killed between taking cells
//! and publishing them leaks that one run.
//!
//! Threading: any thread may get or make a segment at any time, and never waits for another. Memory
//! for some segments is backed ahead, when a series is made and when a snapshot is taken, so that
//! making a segment seldom takes a system call.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use crate::layout::*;
use crate::memory::runs::CellRun;
use crate::memory::table::Table;
use crate::primitive::AtomicU64;
use crate::region::Region;
use crate::series::cell::{Cell, Cells, Copies};
use crate::series::extension::Rest;
use crate::series::family::FamilyHead;
use crate::series::record::Head;
use crate::values::{Combine, Storage};

/// The most cells of a segment.
const MOST_CELLS: u64 = (1 << 12) - 1;
/// The largest number that the layer above can store with a segment.
const MOST_WHAT: u16 = (1 << 12) - 1;
/// Cells that are backed ahead of those that are used: some tens of segments.
const AHEAD: u64 = 2048;

/// The segments of a series. A plain pointer, as a [`Cell`]; no operation blocks or
/// panics, and only [`make`](Self::make) takes memory of the region.
// The fields that an observation reads come first.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Segments {
    /// The series' last cell beside them.
    last: Cell,
    /// The entries that are in place.
    entries: &'static [AtomicU64],
    /// The low bits of the entry of a usual segment: stored as that cell is, and made with the
    /// `what` of most segments. No entry has this value if the cell is in stripes.
    usual: u64,
    /// Where the other entries are.
    blocks: &'static [AtomicU64],
}

/// Equal where they are those of the same series.
impl PartialEq for Segments {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.entries, other.entries)
    }
}

/// A segment: its entry, as it was read.
#[derive(Clone, Copy, Debug)]
pub struct Segment(NonZeroU64);

/// The entry of a segment whose cells are stored as the last cell of its series is.
#[derive(Clone, Copy, Debug)]
pub struct UsualSegment(u64);

impl Segments {
    /// How many there can be: as many as the family has, beyond 64 rounded up to a multiple of 16.
    #[allow(clippy::len_without_is_empty)]
    #[inline]
    pub fn len(&self) -> usize {
        self.table().len()
    }

    /// Segment `n`, if it was made. Cost: a load; two more if the family has more than 64 segments,
    /// and this is not one of the first 16.
    #[inline]
    pub fn get(&self, n: usize) -> Option<Segment> {
        let entry = self.last.region().memory.table_word(self.table(), n)?;
        Segment::of_entry(entry.load(Acquire))
    }

    #[inline]
    fn table(&self) -> Table {
        Table { near: self.entries, blocks: self.blocks }
    }

    /// The segments that were made, each with its number. Cost: a load of each entry that has a
    /// place.
    pub fn made(&self) -> impl Iterator<Item = (usize, Segment)> {
        let words = self.last.region().memory.table_words(self.table());
        words.filter_map(|(n, word)| Some((n, Segment::of_entry(word.load(Acquire))?)))
    }

    /// Gets segment `n`, or makes it with so many cells, at most 4,095, and `what`, a number for
    /// the layers above of at most 4,095. Another thread may have made it with other numbers.
    /// `None` if there is no room, or one of the numbers is too large.
    ///
    /// Cost: some atomic operations, and a system call if the pages that were backed ahead are used
    /// up.
    #[cold]
    pub fn make(&self, n: usize, cells: usize, what: u16) -> Option<Segment> {
        if let Some(segment) = self.get(n) {
            return Some(segment);
        }
        let cells = cells as u64;
        if cells == 0 || cells > MOST_CELLS || what > MOST_WHAT {
            return None;
        }
        let region = self.last.region();
        let entry = region.memory.table_word_or_new(self.table(), n)?;
        let run = region.memory.take_cells(self.storage()?, cells)?;
        let made = Segment::pack(run, what);
        match entry.compare_exchange(0, made, AcqRel, Acquire) {
            Ok(_) => Segment::of_entry(made),
            Err(theirs) => {
                region.memory.drop_cells(run);
                Segment::of_entry(theirs)
            }
        }
    }

    /// A cell of a segment of this series; the last one where there are fewer. `None`
    /// where no cell can lie there: the region is damaged.
    pub fn cell(&self, segment: Segment, n: usize) -> Option<Cell> {
        let (run, _) = Segment::unpack(segment.0.get())?;
        let region = self.last.region();
        let n = (n as u64).min(run.count.wrapping_sub(1));
        let word = match run.storage {
            Storage::Striped => region.memory.adds.striped.word(run.at / WORD, n)?,
            Storage::Single => region.memory.adds.singles.word(run.at / WORD, n)?,
            _ if region.memory.is_in_its_pool(run) => region.memory.map.word(run.at + n * WORD)?,
            _ => return None,
        };
        Some(Cell::new(word, Copies::of(region, self.last.series(), run, Combine::Sum)))
    }

    /// These segments, of which most are made with `what`: [`usual`](Self::usual) finds those.
    /// Default: 0. With more than 4,095, it finds none.
    #[inline]
    #[must_use]
    pub fn mostly(self, what: u16) -> Self {
        Self { usual: self.usual & !u64::from(MOST_WHAT) | u64::from(what), ..self }
    }

    /// Segment `n`, if it is usual: made with the `what` of [most](Self::mostly), its cells stored
    /// as the last cell of the series is. If the family has more than 64 segments, only the first
    /// 16 are found.
    ///
    /// Cost: a load, and one comparison for all of it.
    #[inline(always)]
    pub fn usual(&self, n: usize) -> Option<UsualSegment> {
        let entry = self.entries.get(n)?.load(Acquire);
        (entry & USUAL == self.usual).then_some(UsualSegment(entry))
    }

    /// Adds 1 to a cell of a segment of this series, and `sum` to the last cell of the series
    /// itself. False if nothing is added, because the segment does not exist or the region is
    /// damaged. The segment must have more than `n` cells; otherwise a cell of another segment is
    /// added to.
    ///
    /// Cost: that of [`Cell::count`].
    // Always, as `Cell::count`.
    #[inline(always)]
    pub fn count(&self, segment: UsualSegment, n: usize, sum: u64) -> bool {
        // An entry of no segment has a place that no cell has.
        let (region, place, n) = (self.last.region(), segment.0 >> PLACE, n as u64);
        if self.usual & STRIPED != 0 {
            let Some(word) = region.memory.adds.striped.word(place, n) else { return false };
            self.last.count_in_planes(word, sum);
        } else {
            let Some(word) = region.memory.adds.singles.word(place, n) else { return false };
            self.last.count_in_singles(word, sum);
        }
        true
    }

    /// A number of the series that those above keep; 0 at first.
    pub fn level(&self) -> u64 {
        self.level_word().map_or(0, |word| word.load(Acquire))
    }

    /// Changes the level from `from` to `to`, unless it is no longer `from`.
    pub fn set_level(&self, from: u64, to: u64) {
        if let Some(word) = self.level_word() {
            let _ = word.compare_exchange(from, to, AcqRel, Relaxed);
        }
    }

    fn level_word(&self) -> Option<&'static AtomicU64> {
        match self.last.region().extension(self.last.series())?.rest {
            Rest::Directory(directory) => Some(directory.level),
            Rest::Base(_) => None,
        }
    }

    /// How the family wants its cells stored.
    fn storage(&self) -> Option<Storage> {
        let (region, series) = (self.last.region(), self.last.series());
        let head = region.series_word(series, SERIES_HEAD).load(Relaxed);
        let family = region.family_word(Head::unpack(head).family, FAMILY_HEAD);
        FamilyHead::unpack(family.load(Relaxed)).map(|(_, head)| head.storage)
    }
}

/// The shifts of the place and the storage in an entry.
const PLACE: u64 = 27;
const STORAGE: u64 = 24;
/// The bits that are equal for all usual segments: the storage and `what`.
const USUAL: u64 = 7 << STORAGE | MOST_WHAT as u64;
const STRIPED: u64 = (Storage::Striped as u64) << STORAGE;
const SINGLE: u64 = (Storage::Single as u64) << STORAGE;

impl Segment {
    #[inline]
    fn of_entry(entry: u64) -> Option<Self> {
        NonZeroU64::new(entry).map(Self)
    }

    /// The `what` that it was made with.
    #[inline]
    pub fn what(&self) -> u16 {
        self.0.get() as u16 & MOST_WHAT
    }

    fn pack(run: CellRun, what: u16) -> u64 {
        let CellRun { at, storage, count } = run;
        (at / WORD) << PLACE | (storage as u64) << STORAGE | count << 12 | u64::from(what)
    }

    /// The cells of an entry and their `what`; `None` if the entry names no segment.
    pub(crate) fn unpack(entry: u64) -> Option<(CellRun, u16)> {
        let segment = Self::of_entry(entry)?;
        let storage = match Storage::from_u8((entry >> STORAGE & 7) as u8)? {
            Storage::Owned => return None,
            storage => storage,
        };
        let run = CellRun { at: (entry >> PLACE) * WORD, storage, count: entry >> 12 & MOST_CELLS };
        Some((run, segment.what()))
    }
}

impl Cells {
    /// The segments of its series, if its family has any.
    #[inline]
    pub fn segments(&self) -> Option<Segments> {
        let last = self.last();
        last.region().segments(last)
    }
}

impl Region {
    /// The segments of the series that a cell is the last of, if its family has any.
    #[inline]
    pub(crate) fn segments(&'static self, last: Cell) -> Option<Segments> {
        let Rest::Directory(directory) = self.extension(last.series())?.rest else { return None };
        let Table { near: entries, blocks } = directory.table;
        let stored = match last.storage() {
            Some(Storage::Striped) => STRIPED,
            Some(Storage::Single) => SINGLE,
            _ => u64::MAX,
        };
        Some(Segments { last, entries, usual: stored, blocks })
    }

    /// Makes the directory of a series that is being built, and has pages ready for its
    /// segments; false where there is no room.
    pub(crate) fn prepare_segments(&self, id: u32) -> bool {
        self.back_segments_ahead();
        self.extension_or_new(id).is_some()
    }

    /// Backs pages ahead for segments, up to the ends of their pools.
    pub(crate) fn back_segments_ahead(&self) {
        self.memory.back_ahead(&self.memory.sections.striped, AHEAD);
        self.memory.back_ahead(&self.memory.sections.singles, AHEAD);
    }

    /// The segments that a table names, each with its number.
    pub(crate) fn segments_in(&self, table: Table) -> impl Iterator<Item = (CellRun, usize)> {
        self.memory.table_words(table).filter_map(|(n, entry)| Some((self.segment_of(entry)?, n)))
    }

    /// The cells of the segment that an entry names.
    pub(crate) fn segment_of(&self, entry: &AtomicU64) -> Option<CellRun> {
        let (run, _) = Segment::unpack(entry.load(Acquire))?;
        self.memory.is_in_its_pool(run).then_some(run)
    }

    /// The bases of a segment, made if they do not exist.
    pub(crate) fn base_of_segment(
        &self,
        bases: Table,
        n: usize,
        run: CellRun,
    ) -> Option<&'static [AtomicU64]> {
        let base =
            self.memory.get_or_make_run(self.memory.table_word_or_new(bases, n)?, run.count)?;
        self.memory.map.words(base, run.count)
    }

    /// Gives back all segments of a table, and its blocks.
    pub(crate) fn drop_segments(&self, table: Table) {
        for (_, entry) in self.memory.table_words(table) {
            let run = self.segment_of(entry);
            entry.store(0, Relaxed);
            if let Some(run) = run {
                self.memory.for_each_word(run, |cell| cell.store(0, Relaxed));
                self.memory.drop_cells(run);
            }
        }
        self.memory.drop_blocks(table);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::series::extension::extension_len;

    #[test]
    fn a_segment_survives_packing() {
        for storage in [Storage::Single, Storage::Striped, Storage::Stripes] {
            let run = CellRun { at: MAX_LEN - 8, storage, count: MOST_CELLS };
            let packed = Segment::pack(run, MOST_WHAT);
            assert_eq!(Segment::unpack(packed).unwrap(), (run, MOST_WHAT));
        }
        assert!(Segment::unpack(0).is_none());
        assert!(Segment::unpack((Storage::Owned as u64) << 24 | 1 << 12).is_none());
    }

    #[test]
    fn a_directory_takes_what_is_said_of_it() {
        assert_eq!(extension_len(5, 0), 2 + 5);
        assert_eq!(extension_len(5, 64), 2 + 2 + 64);
        assert_eq!(extension_len(5, 65), 2 + 2 + 16 + 4);
        assert_eq!(extension_len(5, 128), 2 + 2 + 16 + 7);
    }
}
