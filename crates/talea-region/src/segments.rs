//! Segments: cells that a series gets when it first needs them, a few at a time.
//!
//! A series of a family with segments has a directory among the single cells, made with
//! the series: a word for those above, and an entry for each segment it may have. An
//! entry is 0, or says where that segment's cells lie:
//!
//! ```text
//!   place:37 | storage:3 | cells:12 | what:12
//! ```
//!
//! The place is an offset in words, of the first copy; `what` is for those above. An
//! entry is published once, by compare-and-swap, and stays as long as the series: who
//! loses the race gives its cells back and uses the winner's. A process that is killed
//! between taking cells and publishing them leaks that one run.
//!
//! Threading: anybody may ask for a segment and make one, at any time, without waiting
//! for anybody. Memory for some segments is backed ahead, when a series is made and when a
//! snapshot is taken, so that who makes a segment seldom asks the kernel for pages.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use crate::cells::{Cell, Combine, Copies, Storage};
use crate::families::FamilyHead;
use crate::layout::*;
use crate::mapping::Mapping;
use crate::more::More;
use crate::primitive::AtomicU64;
use crate::record::{CellRun, Head};
use crate::region::Region;

/// The most cells of a segment.
const MOST_CELLS: u64 = (1 << 12) - 1;
/// The largest number that a segment can be told by those above.
const MOST_WHAT: u16 = (1 << 12) - 1;
/// Cells that are backed ahead of those that are used: some tens of segments.
const AHEAD: u64 = 2048;

/// The segments of a series. A plain pointer, as a [`Cell`]; no operation blocks or
/// panics, and only [`make`](Self::make) takes memory of the region.
#[derive(Clone, Copy, Debug)]
pub struct Segments {
    region: &'static Region,
    series: u32,
    level: &'static AtomicU64,
    entries: &'static [AtomicU64],
}

/// Equal where they are those of the same series.
impl PartialEq for Segments {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.entries, other.entries)
    }
}

/// One of them: its entry, as it was found. An observation takes out of it only what it
/// needs.
#[derive(Clone, Copy, Debug)]
pub struct Segment(NonZeroU64);

impl Segments {
    /// How many there can be.
    #[allow(clippy::len_without_is_empty)]
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Segment `n`, if it was made. Cost: a load.
    #[inline]
    pub fn get(&self, n: usize) -> Option<Segment> {
        Segment::of_entry(self.entries.get(n)?.load(Acquire))
    }

    /// Segment `n`, made with so many cells, at most 4,095, if it is not there; what
    /// another made it with may be something else. `what`, at most 4,095, is kept with it.
    /// `None` where there is no room, or one of the numbers is too large.
    ///
    /// Cost: some atomic operations; a system call where the pages that were backed ahead
    /// are used up.
    #[cold]
    pub fn make(&self, n: usize, cells: usize, what: u16) -> Option<Segment> {
        let entry = self.entries.get(n)?;
        if let Some(segment) = self.get(n) {
            return Some(segment);
        }
        let cells = cells as u64;
        if cells == 0 || cells > MOST_CELLS || what > MOST_WHAT {
            return None;
        }
        let run = self.region.take_cells(self.storage()?, cells)?;
        let made = Segment::pack(run, what);
        match entry.compare_exchange(0, made, AcqRel, Acquire) {
            Ok(_) => Segment::of_entry(made),
            Err(theirs) => {
                self.region.drop_cells(run);
                Segment::of_entry(theirs)
            }
        }
    }

    /// How many were made. Cost: a look at each.
    pub fn made(&self) -> usize {
        self.entries.iter().filter(|entry| entry.load(Relaxed) != 0).count()
    }

    /// A cell of a segment of this series; the last one where there are fewer. `None`
    /// where no cell can lie there: the region is damaged.
    // Always, as `Cell::count`: out of line the cell would come back through memory.
    #[inline(always)]
    pub fn cell(&self, segment: Segment, n: usize) -> Option<Cell> {
        let Self { region, series, .. } = *self;
        let place = segment.place() + (n as u64).min(segment.count().wrapping_sub(1));
        let run = |storage| CellRun { at: place * WORD, storage, count: segment.count() };
        let copies = |storage| Copies::of(region, series, run(storage), Combine::Sum);
        let (word, copies) = match segment.storage() {
            STRIPED => (region.striped.word(place)?, copies(Storage::Striped)),
            SINGLE => (region.singles.word(place)?, copies(Storage::Single)),
            _ => (self.word_of_stripes(segment, place)?, copies(Storage::Stripes)),
        };
        Some(Cell::new(word, copies))
    }

    #[cold]
    #[inline(never)]
    fn word_of_stripes(&self, segment: Segment, place: u64) -> Option<&'static AtomicU64> {
        let run = segment.run()?;
        let is_one = run.storage == Storage::Stripes && self.region.is_in_its_pool(run);
        if is_one { self.region.map.word(place * WORD) } else { None }
    }

    /// A number of the series that those above keep; 0 at first.
    #[inline]
    pub fn level(&self) -> u64 {
        self.level.load(Acquire)
    }

    /// Puts another number in its place, unless it is not `from` any more.
    pub fn set_level(&self, from: u64, to: u64) {
        let _ = self.level.compare_exchange(from, to, AcqRel, Relaxed);
    }

    /// How the family wants its cells stored.
    fn storage(&self) -> Option<Storage> {
        let head = self.region.series_word(self.series, SERIES_HEAD).load(Relaxed);
        let family = self.region.family_word(Head::unpack(head).family, FAMILY_HEAD);
        FamilyHead::unpack(family.load(Relaxed)).map(|(_, head)| head.storage)
    }
}

const SINGLE: u64 = Storage::Single as u64;
const STRIPED: u64 = Storage::Striped as u64;

impl Segment {
    #[inline]
    fn of_entry(entry: u64) -> Option<Self> {
        NonZeroU64::new(entry).map(Self)
    }

    /// What it was made with.
    #[inline]
    pub fn what(&self) -> u16 {
        self.0.get() as u16 & MOST_WHAT
    }

    /// Where its first cell lies, in words.
    #[inline]
    fn place(self) -> u64 {
        self.0.get() >> 27
    }

    #[inline]
    fn storage(self) -> u64 {
        self.0.get() >> 24 & 7
    }

    #[inline]
    fn count(self) -> u64 {
        self.0.get() >> 12 & MOST_CELLS
    }

    fn pack(run: CellRun, what: u16) -> u64 {
        let CellRun { at, storage, count } = run;
        (at / WORD) << 27 | (storage as u64) << 24 | count << 12 | u64::from(what)
    }

    /// Its cells; `None` where the entry says nothing that can be.
    fn run(self) -> Option<CellRun> {
        let storage = match self.storage() {
            SINGLE => Storage::Single,
            STRIPED => Storage::Striped,
            3 => Storage::Stripes,
            _ => return None,
        };
        Some(CellRun { at: self.place() * WORD, storage, count: self.count() })
    }

    /// The cells of an entry and what is said of them; `None` where no segment is.
    pub(crate) fn unpack(entry: u64) -> Option<(CellRun, u16)> {
        let segment = Self::of_entry(entry)?;
        Some((segment.run()?, segment.what()))
    }
}

/// The words of a pool's first copy, by their place in the region.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    first: u64,
    words: &'static [AtomicU64],
}

impl Span {
    pub(crate) fn of(map: &Mapping, pool: &Pool) -> Self {
        let words = map.words(pool.at, pool.len / WORD).unwrap_or(&[]);
        Self { first: pool.at / WORD, words }
    }

    /// `None` where it is no cell of the pool.
    #[inline]
    fn word(&self, place: u64) -> Option<&'static AtomicU64> {
        self.words.get(usize::try_from(place.wrapping_sub(self.first)).ok()?)
    }
}

impl Region {
    /// The segments of a series, if its family has any.
    #[inline]
    pub(crate) fn segments(&'static self, series: u32) -> Option<Segments> {
        let More { directory, .. } = self.more(series)?;
        let (level, entries) = (directory.first()?, directory.get(DIRECTORY_ENTRIES as usize..)?);
        Some(Segments { region: self, series, level, entries })
    }

    /// Makes the directory of a series that is being built, and has pages ready for its
    /// segments; false where there is no room.
    pub(crate) fn prepare_segments(&self, id: u32) -> bool {
        self.back_segments_ahead();
        self.more_or_new(id).is_some()
    }

    /// Backs pages for segments to come, as far as there are any.
    pub(crate) fn back_segments_ahead(&self) {
        self.back_ahead(&self.s.striped, AHEAD);
        self.back_ahead(&self.s.singles, AHEAD);
    }

    /// The segments that a directory names, each with its number.
    pub(crate) fn segments_in(
        &self,
        directory: &'static [AtomicU64],
    ) -> impl Iterator<Item = (CellRun, usize)> {
        let entries = directory.get(DIRECTORY_ENTRIES as usize..).unwrap_or(&[]).iter();
        entries.enumerate().filter_map(|(n, entry)| {
            let (run, _) = Segment::unpack(entry.load(Acquire))?;
            self.is_in_its_pool(run).then_some((run, n))
        })
    }

    /// Where what a segment held is noted when its series is wiped; made if need be.
    pub(crate) fn base_of_segment(
        &self,
        directory: &'static [AtomicU64],
        n: usize,
        run: CellRun,
    ) -> Option<&'static [AtomicU64]> {
        let len = directory.len() as u64 - DIRECTORY_ENTRIES;
        let bases = self.made_once(directory.get(DIRECTORY_BASES as usize)?, len)?;
        let base = self.made_once(self.map.words(bases, len)?.get(n)?, run.count)?;
        self.map.words(base, run.count)
    }

    /// Gives back all segments of a directory.
    pub(crate) fn drop_segments(&self, directory: &'static [AtomicU64]) {
        if directory.is_empty() {
            return;
        }
        let len = directory.len() as u64 - DIRECTORY_ENTRIES;
        let bases = directory[DIRECTORY_BASES as usize].swap(0, AcqRel);
        if bases != 0 && self.s.lies_in_singles(bases, len) {
            for (run, n) in self.segments_in(directory) {
                let base = self.map.words(bases, len).and_then(|words| words.get(n));
                let base = base.map_or(0, |word| word.swap(0, AcqRel));
                self.drop_singles(base, run.count);
            }
            self.drop_singles(bases, len);
        }
        for (run, n) in self.segments_in(directory) {
            self.for_each_word(run, |cell| cell.store(0, Relaxed));
            directory[DIRECTORY_ENTRIES as usize + n].store(0, Relaxed);
            self.drop_cells(run);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::more::more_len;

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
        assert_eq!(more_len(5, 0), 2 + 5);
        assert_eq!(more_len(5, 64), 2 + 5 + 2 + 64);
    }
}
