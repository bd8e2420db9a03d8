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
//! The place is the offset of the first copy in words; `tag` is for the layers above. An entry is
//! published once, by compare-and-swap, and stays as long as the series. A thread that loses the
//! race gives its cells back and uses the winner's. A process that is killed between taking cells
//! and publishing them leaks that one run.
//!
//! A family can have one segment made with each series, as single cells. It holds the cells of a series
//! that are seldom added to: they need no copy for each CPU, and an add to them is never refused.
//!
//! Threading: any thread may get or make a segment at any time, and never waits for another. Memory
//! for some segments is backed ahead, when a series is made and when a snapshot is taken, so that
//! making a segment seldom takes a system call.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use super::segment::{MOST_CELLS, MOST_TAG, MadeSegment, PLACE, STORAGE, Segment};
use crate::layout::{WORD, size};
use crate::memory::planes;
use crate::memory::restartable::Undone;
use crate::memory::table::Table;
use crate::primitive::{Word, Words};
use crate::region::Region;
use crate::series::cell::{Cell, Cells, Copies};
use crate::series::extension::Rest;
use crate::series::record::Series;
use crate::values::{Combine, Storage};

/// Cells that are backed ahead of those that are used: some tens of segments.
const AHEAD: u64 = size(2048, 0);

/// The segments of a series. A plain pointer, as a [`Cell`]. No operation allocates on the heap, waits for
/// another thread or panics; only [`make`](Self::make) takes memory of the region, and an add as a cell's.
// The fields that an observation reads come first.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Segments {
    /// The series' last cell beside them.
    last: Cell,
    /// The entries that are in place.
    entries: Words,
    /// The low bits of the entry of a usual segment: stored as that cell is, and made with the
    /// `tag` of most segments. No entry has this value if the cell is in stripes.
    usual: u64,
    /// Where the other entries are.
    blocks: Words,
}

/// Equal if they belong to the same series.
impl PartialEq for Segments {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.entries, other.entries)
    }
}

/// The entry of a segment whose cells are stored as the last cell of its series is.
#[derive(Clone, Copy, Debug)]
pub struct UsualSegment(u64);

/// A [count](Segments::count) that is not done.
#[derive(Clone, Copy, Debug)]
pub enum Uncounted {
    /// The segment does not exist, or the region is damaged.
    All,
    /// The running CPU has no copy of the cells yet. [`Segments::count_rest`] goes on.
    Rest(UncountedRest),
}

/// The part of a count that is not done.
#[derive(Clone, Copy, Debug)]
pub struct UncountedRest(Undone);

impl Segments {
    /// How many there can be: as many as the family has, beyond 37 rounded up to whole blocks of 16.
    #[allow(clippy::len_without_is_empty)]
    #[inline]
    pub fn len(&self) -> usize {
        self.table().len()
    }

    /// Segment `n`, if it was made. Cost: a load; two more if it is not among the first 37, or 17 of
    /// more than 65.
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

    /// Gets segment `n`, or makes it with `cells` cells, at most 4,095, and `tag`, a number for
    /// the layers above of at most 4,095. Another thread may have made it with other numbers.
    /// `None` if there is no room, or one of the numbers is too large.
    ///
    /// Cost: some atomic operations, and a system call if the pages that were backed ahead are used
    /// up.
    #[cold]
    pub fn make(&self, n: usize, cells: usize, tag: u16) -> Option<Segment> {
        if let Some(segment) = self.get(n) {
            return Some(segment);
        }
        let cells = cells as u64;
        if cells == 0 || cells > MOST_CELLS || tag > MOST_TAG {
            return None;
        }
        let region = self.last.region();
        let entry = region.memory.table_word_or_new(self.table(), n)?;
        let run = region.memory.take_segment_cells(self.storage()?, cells)?;
        let made = Segment::pack(run, tag);
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
            _ if region.memory.is_in_its_part(run) => region.memory.map.word(run.at + n * WORD)?,
            _ => return None,
        };
        Some(Cell::new(word, Copies::of(self.last.series(), run, Combine::Sum)))
    }

    /// These segments, of which most are made with `tag`: [`usual`](Self::usual) finds those.
    /// Default: 0. With more than 4,095, it finds none.
    #[inline]
    #[must_use]
    pub fn mostly(self, tag: u16) -> Self {
        Self { usual: self.usual & !u64::from(MOST_TAG) | u64::from(tag), ..self }
    }

    /// Segment `n`, if it is usual: made with the tag of [most](Self::mostly), its cells stored
    /// as the last cell of the series is. Only those are found whose entries are in place: the first
    /// 37, or 17 of more than 65.
    ///
    /// Cost: a load, and one comparison for all of it.
    #[inline(always)]
    pub fn usual(&self, n: usize) -> Option<UsualSegment> {
        let entry = self.entries.get(n)?.load(Acquire);
        (entry & USUAL == self.usual).then_some(UsualSegment(entry))
    }

    /// Adds 1 to a cell of a segment of this series, and `sum` to the last cell of the series
    /// itself. The segment must have more than `n` cells; otherwise a cell of another segment is
    /// added to.
    ///
    /// Cost: as of [`Cell::count`].
    ///
    /// # Errors
    ///
    /// [`Uncounted`] if it is not as simple as it mostly is.
    // Always, and it does not call the rest itself: docs/explanations/adds.md, "Registers".
    #[inline(always)]
    pub fn count(&self, segment: UsualSegment, n: usize, sum: u64) -> Result<(), Uncounted> {
        // An entry of no segment has a place that no cell has.
        let (adds, place, n) = (&self.last.region().memory.adds, segment.0 >> PLACE, n as u64);
        if self.usual & STRIPED != 0 {
            let Some(word) = adds.striped.word(place, n) else { return Err(Uncounted::All) };
            let counted = self.last.count_in_sequences(word, sum);
            counted.map_err(|undone| Uncounted::Rest(UncountedRest(undone)))
        } else {
            let Some(word) = adds.singles.word(place, n) else { return Err(Uncounted::All) };
            self.last.count_in_words(word, sum);
            Ok(())
        }
    }

    /// Does the rest of a [`count`](Self::count) with this sum. False if nothing is added: the add is
    /// refused, as [`Cell::count`] says.
    #[inline(always)]
    pub fn count_rest(&self, sum: u64, rest: UncountedRest) -> bool {
        planes::finish(&self.last.region().memory, rest.0.first, self.last.word(), sum)
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

    fn level_word(&self) -> Option<Word> {
        match self.last.series().extension()?.rest {
            Rest::Directory(directory) => Some(directory.level),
            Rest::Base(_) => None,
        }
    }

    /// How the family wants its cells stored.
    fn storage(&self) -> Option<Storage> {
        let series = self.last.series();
        series.region.family_head(series.family()).map(|(_, head)| head.storage)
    }
}

/// The bits that are equal for all usual segments: the storage and `tag`.
const USUAL: u64 = 7 << STORAGE | MOST_TAG as u64;
const STRIPED: u64 = (Storage::Striped as u64) << STORAGE;
const SINGLE: u64 = (Storage::Single as u64) << STORAGE;

impl Cells {
    /// The segments of its series, if its family has any.
    #[inline]
    pub fn segments(&self) -> Option<Segments> {
        let last = self.last();
        last.series().segments(last)
    }
}

impl Series<'_> {
    /// Makes the directory of a series that is being built, with one segment if that has cells, and
    /// has pages ready for others; `None` where there is no room.
    pub(crate) fn prepare_segments(self, made: MadeSegment) -> Option<()> {
        self.region.back_segments_ahead();
        let Rest::Directory(directory) = self.extension_or_new()?.rest else { return None };
        if made.cells > 0 {
            let memory = &self.region.memory;
            let entry = memory.table_word_or_new(directory.table, made.n.into())?;
            let run = memory.take_cells(Storage::Single, made.cells.into())?;
            entry.store(Segment::pack(run, MOST_TAG), Relaxed);
        }
        Some(())
    }

    /// Its segments, if its family has any. `last` is the last of its cells.
    #[inline]
    fn segments(self, last: Cell) -> Option<Segments> {
        let Rest::Directory(directory) = self.extension()?.rest else { return None };
        let Table { near: entries, blocks } = directory.table;
        let stored = match last.storage() {
            Some(Storage::Striped) => STRIPED,
            Some(Storage::Single) => SINGLE,
            _ => u64::MAX,
        };
        Some(Segments { last, entries, usual: stored, blocks })
    }
}

impl Region {
    /// Backs pages ahead for segments, up to the ends of their pools.
    pub(crate) fn back_segments_ahead(&self) {
        self.memory.back_ahead(&self.memory.sections.lazy, AHEAD);
        self.memory.back_ahead(&self.memory.sections.singles, AHEAD);
    }
}
