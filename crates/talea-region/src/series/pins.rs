//! Pins: the processes that keep a series.
//!
//! A kept series is not reclaimed while a process that keeps it lives. The set has a bit for each
//! process slot and one word for processes without a slot. It lies among the single cells, behind
//! the sum of the series' cells at the last sweep, and is made when the series is first kept.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use crate::error::Overflow;
use crate::layout::*;
use crate::primitive::AtomicU64;
use crate::region::Region;
use crate::series::record::{self, HIDDEN, PUBLISHED, Series};
use crate::source::Source;

/// Words of a set, and of the sum before it.
const PINS: u64 = PINS_LEN / WORD;

impl Series<'_> {
    /// Keeps a series that was just looked up. A hidden one is shown again, as if it were new.
    pub(crate) fn keep(self) -> Result<(), Overflow> {
        if !self.pin() {
            return Err(Overflow::Full);
        }
        self.show();
        Ok(())
    }

    /// Ends the hiding of a series.
    pub(crate) fn show(self) {
        let word = self.word(SERIES_HEAD);
        let shown = |seen| {
            let is_hidden = record::state(seen) == PUBLISHED && seen & HIDDEN != 0;
            is_hidden.then_some(seen & !HIDDEN)
        };
        // If it fails, the series is shown already, or is no longer public.
        let _ = word.fetch_update(AcqRel, Acquire, shown);
    }

    /// Notes that this process keeps a series, until it dies. The caller looked it
    /// up and is still under its guard. False where there is no room for the note.
    pub(crate) fn pin(self) -> bool {
        let Some(pins) = self.pins_or_new() else { return false };
        let pins = bits_of(pins);
        self.region.memory.word_at(M_PINNED).store(1, Release);
        match self.region.memory.own_slot() {
            SLOT_COUNT => pins[SLOT_WORDS as usize].store(1, SeqCst),
            slot => {
                pins[(slot / 64) as usize].fetch_or(1 << (slot % 64), SeqCst);
            }
        }
        true
    }

    /// Whether a living process keeps a series.
    pub(crate) fn is_pinned(self) -> bool {
        let Some(pins) = self.pins().map(bits_of) else { return false };
        if pins[SLOT_WORDS as usize].load(Acquire) != 0 {
            return true;
        }
        pins[..SLOT_WORDS as usize].iter().zip(0..).any(|(word, n): (_, u64)| {
            let mut bits = word.load(Acquire);
            while bits != 0 {
                let slot = n * 64 + u64::from(bits.trailing_zeros());
                if self.region.memory.lives(slot) {
                    return true;
                }
                bits &= bits - 1;
            }
            false
        })
    }

    /// Gives back the set at an offset, if there is one.
    pub(crate) fn drop_pins(self, at: u64) {
        if let Some(words) = self.pin_words(at) {
            words.iter().for_each(|word| word.store(0, Relaxed));
            self.region.memory.give_back(
                &self.region.memory.sections.singles,
                at - self.region.memory.sections.singles.at,
                PINS,
            );
        }
    }

    /// The sum of a kept series' cells at the last sweep.
    pub(crate) fn seen(self) -> Option<&'static AtomicU64> {
        self.pins()?.get((PINS_SEEN / WORD) as usize)
    }

    /// The words of a set, if one can lie there.
    fn pin_words(self, at: u64) -> Option<&'static [AtomicU64]> {
        if self.region.memory.sections.lies_in_singles(at, PINS) {
            self.region.memory.map.words(at, PINS)
        } else {
            None
        }
    }

    fn pins(self) -> Option<&'static [AtomicU64]> {
        match self.word(SERIES_PINS).load(Acquire) {
            0 => None,
            at => self.pin_words(at),
        }
    }

    fn pins_or_new(self) -> Option<&'static [AtomicU64]> {
        if let Some(pins) = self.pins() {
            return Some(pins);
        }
        let pool = self.region.memory.sections.singles;
        let at = pool.at + self.region.memory.take(&pool, PINS)?;
        let word = self.word(SERIES_PINS);
        if word.compare_exchange(0, at, AcqRel, Acquire).is_err() {
            self.region.memory.give_back(&pool, at - pool.at, PINS);
        }
        self.pins()
    }
}

impl Region {
    /// Notes that a slot has a new owner, which keeps the series of its parent, or none yet.
    pub(crate) fn inherit_pins(&self, slot: u64, parent: Option<u64>) {
        if self.memory.word_at(M_PINNED).load(Acquire) == 0 {
            return;
        }
        for id in 0..(self.memory.used(&self.memory.sections.records) / RECORD_LEN) as u32 {
            let Some(pins) = self.series(id).pins().map(bits_of) else { continue };
            let has = |slot: u64| {
                let n = if slot < SLOT_COUNT { slot / 64 } else { SLOT_WORDS };
                (&pins[n as usize], 1 << (slot % 64))
            };
            let (word, bit) = has(slot);
            let inherited = parent.is_some_and(|parent| {
                let (word, bit) = has(parent);
                word.load(Acquire) & bit != 0
            });
            if inherited {
                word.fetch_or(bit, AcqRel);
            } else {
                word.fetch_and(!bit, AcqRel);
            }
        }
    }
}

/// The bits of a set.
fn bits_of(pins: &'static [AtomicU64]) -> &'static [AtomicU64] {
    &pins[(PINS_BITS / WORD) as usize..]
}
