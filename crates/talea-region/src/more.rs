//! What only few series have: a run of single cells that is made when it is first
//! needed, with the offset of the series' exemplars, when it was last wiped, and what
//! each of its cells held then.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use crate::layout::*;
use crate::primitive::AtomicU64;
use crate::record::CellRun;
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
}

impl Region {
    /// What a series has beyond the usual, if anything.
    pub(crate) fn more(&self, id: u32) -> Option<More> {
        let at = self.series_word(id, SERIES_MORE).load(Acquire);
        let run = CellRun::unpack(self.series_word(id, SERIES_CELLS).load(Acquire))?;
        self.more_at(at, run.count)
    }

    /// The same, made if need be; `None` where there is no room.
    pub(crate) fn more_or_new(&self, id: u32) -> Option<More> {
        let run = CellRun::unpack(self.series_word(id, SERIES_CELLS).load(Acquire))?;
        let at = self.made_once(self.series_word(id, SERIES_MORE), MORE_BASE + run.count)?;
        self.more_at(at, run.count)
    }

    fn more_at(&self, at: u64, cells: u64) -> Option<More> {
        if at == 0 || !self.s.lies_in_singles(at, MORE_BASE + cells) {
            return None;
        }
        let [exemplars, wiped, base @ ..] = self.map.words(at, MORE_BASE + cells)? else {
            return None;
        };
        Some(More { exemplars, wiped, base })
    }

    /// Gives back what a series of so many cells has beyond the usual.
    pub(crate) fn drop_more(&self, at: u64, cells: u64) {
        if let Some(more) = self.more_at(at, cells) {
            self.drop_exemplars(more.exemplars.swap(0, AcqRel), cells);
        }
        self.drop_singles(at, MORE_BASE + cells);
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
