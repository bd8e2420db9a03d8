//! Words: the processes that keep a series.
//!
//! A kept series is not reclaimed while a process that keeps it lives. A set lies among the single
//! cells, and is made when the series is first kept:
//!
//!   seen    the sum of the series' cells at the last sweep
//!   near    a bit for each of the first process slots
//!   others  0; or the offset of the far set, which the first other process makes; or 1: kept for
//!           ever, by a process that found no room for a far set
//!
//! A far set lies among the single cells too: a bit for each of the later slots, and one for
//! processes without a slot, which is never cleared.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use crate::error::Overflow;
use crate::layout::*;
use crate::primitive::{Word, Words};
use crate::region::Region;
use crate::series::record::{self, HIDDEN, PUBLISHED, Series};
use crate::source::Source;

/// Words of a set, and of the sum before it.
const PINS: u64 = PINS_LEN / WORD;
/// Words of bits in a set.
const NEAR: u64 = NEAR_SLOTS.div_ceil(64);
/// Words of a far set.
pub(crate) const FAR: u64 = SLOT_WORDS - NEAR + 1;
/// In place of the offset of a far set.
const FOR_EVER: u64 = 1;

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
        // If it fails, the series is shown already, or is no longer public.
        let _ = word.fetch_update(AcqRel, Acquire, |seen| {
            let is_hidden = record::state(seen) == PUBLISHED && seen & HIDDEN != 0;
            is_hidden.then_some(seen & !HIDDEN)
        });
    }

    /// Notes that this process keeps a series, until it dies. The caller looked it
    /// up and is still under its guard. False where there is no room for the note.
    pub(crate) fn pin(self) -> bool {
        let pinned = self.set_pin().is_some();
        self.region.holds.keep_for_ever(self.id);
        pinned
    }

    /// As [`pin`](Self::pin); whether this call alone keeps the series for its process. `None` where
    /// there is no room for the note.
    pub(super) fn set_pin(self) -> Option<bool> {
        let pins = self.pins_or_new()?;
        let own = self.region.memory.own_slot();
        self.region.memory.word_at(M_PINNED).store(1, Release);
        match self.place_or_new(pins, own) {
            Some((word, bit)) => {
                let is_new = word.fetch_or(bit, SeqCst) & bit == 0;
                Some(is_new && own < SLOT_COUNT)
            }
            None => {
                keep_for_ever(pins);
                Some(false)
            }
        }
    }

    /// Notes that this process no longer keeps a series.
    pub(super) fn clear_pin(self) {
        let own = self.region.memory.own_slot();
        if let Some((word, bit)) = self.pins().and_then(|pins| self.place(pins, own)) {
            if own < SLOT_COUNT {
                word.fetch_and(!bit, SeqCst);
            }
        }
    }

    /// Whether a living process keeps a series.
    pub(crate) fn is_pinned(self) -> bool {
        self.is_pinned_beside(None)
    }

    /// Whether a living process keeps a series, other than the one of a slot.
    pub(crate) fn is_pinned_beside(self, except: Option<u64>) -> bool {
        let Some(pins) = self.pins() else { return false };
        let far = match others(pins).load(Acquire) {
            FOR_EVER => return true,
            at => self.far(at).unwrap_or_default(),
        };
        near(pins).iter().chain(far).zip(0..).any(|(word, n): (_, u64)| {
            let mut bits = word.load(Acquire);
            while bits != 0 {
                let slot = n * 64 + u64::from(bits.trailing_zeros());
                let counts = except != Some(slot);
                if counts && (slot == SLOT_COUNT || self.region.memory.lives(slot)) {
                    return true;
                }
                bits &= bits - 1;
            }
            false
        })
    }

    /// The bit of a slot; `None` where there is none.
    fn place(self, pins: Words, slot: u64) -> Option<(Word, u64)> {
        let (n, bit) = (slot / 64, 1 << (slot % 64));
        let word = match n.checked_sub(NEAR) {
            None => near(pins).get(n as usize),
            Some(n) => self.far(others(pins).load(Acquire))?.get(n as usize),
        };
        word.map(|word| (word, bit))
    }

    /// The bit of a slot, with the far set that it needs; `None` where there is no room for that.
    fn place_or_new(self, pins: Words, slot: u64) -> Option<(Word, u64)> {
        if slot / 64 >= NEAR {
            self.region.memory.get_or_make_run(others(pins), FAR)?;
        }
        self.place(pins, slot)
    }

    /// Gives back the set at an offset, if there is one.
    pub(crate) fn drop_pins(self, at: u64) {
        let Some(pins) = self.region.memory.singles(at, PINS) else { return };
        self.region.memory.drop_singles(others(pins).load(Relaxed), FAR);
        self.region.memory.drop_singles(at, PINS);
    }

    /// The sum of a kept series' cells at the last sweep.
    pub(crate) fn seen(self) -> Option<Word> {
        self.pins()?.get((PINS_SEEN / WORD) as usize)
    }

    fn far(self, at: u64) -> Option<Words> {
        self.region.memory.singles(at, FAR)
    }

    fn pins(self) -> Option<Words> {
        self.region.memory.singles(self.word(SERIES_PINS).load(Acquire), PINS)
    }

    fn pins_or_new(self) -> Option<Words> {
        self.region.memory.get_or_make_run(self.word(SERIES_PINS), PINS)?;
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
            let series = self.series(id);
            let Some(pins) = series.pins() else { continue };
            let of_parent = parent.and_then(|parent| series.place(pins, parent));
            if of_parent.is_some_and(|(word, bit)| word.load(Acquire) & bit != 0) {
                match series.place_or_new(pins, slot) {
                    Some((word, bit)) => {
                        word.fetch_or(bit, AcqRel);
                    }
                    None => keep_for_ever(pins),
                }
            } else if let Some((word, bit)) = series.place(pins, slot) {
                word.fetch_and(!bit, AcqRel);
            }
        }
    }
}

/// Without a far set.
fn keep_for_ever(pins: Words) {
    let _ = others(pins).compare_exchange(0, FOR_EVER, SeqCst, Relaxed);
}

/// The bits of the first slots.
fn near(pins: Words) -> Words {
    &pins[(PINS_BITS / WORD) as usize..][..NEAR as usize]
}

/// The word about all other processes.
fn others(pins: Words) -> Word {
    &pins[(PINS_BITS / WORD + NEAR) as usize]
}
