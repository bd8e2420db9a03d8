//! What only some series have: a run of single cells with the offset of the series'
//! exemplars, when it was last wiped, what each of its cells held then, and the directory
//! of its segments. It is made when it is first needed; of a family with segments, with
//! the series.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use crate::families::FamilyHead;
use crate::layout::*;
use crate::primitive::AtomicU64;
use crate::record::{CellRun, Head};
use crate::region::Region;

/// The parts of it.
#[derive(Clone, Copy)]
pub(crate) struct More {
    /// The offset of the table of exemplars, or 0.
    pub(crate) exemplars: &'static AtomicU64,
    /// When the series was last wiped, in nanoseconds since 1970, or 0.
    pub(crate) wiped: &'static AtomicU64,
    /// What each of its cells held then.
    pub(crate) base: &'static [AtomicU64],
    /// The directory of its segments; empty where its family has none.
    pub(crate) directory: &'static [AtomicU64],
}

/// Its words, for a series of so many cells and segments.
pub(crate) fn more_len(cells: u64, segments: u64) -> u64 {
    MORE_BASE + cells + directory_len(segments)
}

fn directory_len(segments: u64) -> u64 {
    if segments == 0 { 0 } else { DIRECTORY_ENTRIES + segments }
}

impl Region {
    /// What a series has beyond the usual, if anything.
    #[inline]
    pub(crate) fn more(&self, id: u32) -> Option<More> {
        let at = self.series_word(id, SERIES_MORE).load(Acquire);
        let (cells, segments) = self.sizes_of(id)?;
        self.more_at(at, cells, segments)
    }

    /// The same, made if need be; `None` where there is no room.
    pub(crate) fn more_or_new(&self, id: u32) -> Option<More> {
        let (cells, segments) = self.sizes_of(id)?;
        let at = self.made_once(self.series_word(id, SERIES_MORE), more_len(cells, segments))?;
        self.more_at(at, cells, segments)
    }

    /// How many cells and segments a series has, of a record that has its cells.
    #[inline]
    fn sizes_of(&self, id: u32) -> Option<(u64, u64)> {
        let run = CellRun::unpack(self.series_word(id, SERIES_CELLS).load(Acquire))?;
        // In every state the family stands in the same place.
        let family = Head::unpack(self.series_word(id, SERIES_HEAD).load(Acquire)).family;
        let head = self.family_word(family, FAMILY_HEAD).load(Acquire);
        let (_, head) = FamilyHead::unpack(head)?;
        Some((run.count, u64::from(head.segments)))
    }

    #[inline]
    fn more_at(&self, at: u64, cells: u64, segments: u64) -> Option<More> {
        let len = more_len(cells, segments);
        if at == 0 || !self.s.lies_in_singles(at, len) {
            return None;
        }
        let [exemplars, wiped, rest @ ..] = self.map.words(at, len)? else { return None };
        let (base, directory) = rest.split_at_checked(cells as usize)?;
        Some(More { exemplars, wiped, base, directory })
    }

    /// Gives back what a series has beyond the usual. Its record still has its cells.
    pub(crate) fn drop_more(&self, id: u32) {
        let Some((cells, segments)) = self.sizes_of(id) else { return };
        let at = self.series_word(id, SERIES_MORE).swap(0, AcqRel);
        if let Some(more) = self.more_at(at, cells, segments) {
            self.drop_exemplars(more.exemplars.swap(0, AcqRel), cells);
            self.drop_segments(more.directory);
        }
        self.drop_singles(at, more_len(cells, segments));
    }

    /// The run of single cells whose offset stands in a word, made if there is none yet;
    /// of many who make it at once, one does.
    pub(crate) fn made_once(&self, word: &AtomicU64, cells: u64) -> Option<u64> {
        if word.load(Acquire) == 0 {
            let pool = self.s.singles;
            let at = pool.at + self.take(&pool, cells)?;
            if word.compare_exchange(0, at, AcqRel, Acquire).is_err() {
                self.give_back(&pool, at - pool.at, cells);
            }
        }
        Some(word.load(Acquire)).filter(|&at| self.s.lies_in_singles(at, cells))
    }

    /// Gives back a run of single cells, if one can lie there.
    pub(crate) fn drop_singles(&self, at: u64, cells: u64) {
        if at != 0 && self.s.lies_in_singles(at, cells) {
            let all = self.map.words(at, cells).unwrap_or(&[]);
            all.iter().for_each(|word| word.store(0, Relaxed));
            self.give_back(&self.s.singles, at - self.s.singles.at, cells);
        }
    }
}
