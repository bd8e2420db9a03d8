//! The way of a series from public to free: retired, unlinked, unreachable, reclaimed.
//! `series/record.rs` draws the states.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use crate::hash::hash_of_words;
use crate::layout::*;
use crate::memory::guard::Guard;
use crate::primitive::fence;
use crate::series::index::Kind;
use crate::series::record::{
    self, BUILDING, CLEARING, FREE, Head, PUBLISHED, REMOVED, Series, SweepStamp, UNLINKED,
};
use crate::values::{Combine, Number, Storage};

impl Series<'_> {
    /// Removes a series that was found, or hides it if a process keeps it. Holds of this process keep
    /// its memory, and not the series.
    pub(crate) fn remove(self, guard: &Guard) -> bool {
        let word = self.word(SERIES_HEAD);
        let mut seen = word.load(Acquire);
        while record::state(seen) == PUBLISHED && !Head::unpack(seen).permanent {
            let is_held = self.region.holds.holds(self.id);
            let except = is_held.then(|| self.region.memory.own_slot());
            let done = if self.is_pinned_beside(except) {
                self.reset();
                self.forget_owned();
                self.note_value(guard, self.digest());
                self.set_hidden(seen, true)
            } else {
                self.retire(seen, except)
            };
            match done {
                Ok(()) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Whether a series has owned cells that are not 0: something is in flight. Also
    /// where there was no room for it among the owned cells.
    pub(crate) fn is_held(self) -> bool {
        let head = self.region.family_head(self.family());
        head.is_some_and(|(_, head)| {
            let is_owned = (head.combine, head.storage) == (Combine::Sum, Storage::Owned);
            is_owned && self.digest() != 0
        })
    }

    /// Removes the values of all processes, if each has its own.
    fn forget_owned(self) {
        let head = self.region.family_head(self.family());
        let (Some((_, head)), Some(run)) = (head, self.run()) else { return };
        // What is in flight is counted down yet.
        let is_in_flight = (head.combine, head.number) == (Combine::Sum, Number::Integer);
        if head.storage == Storage::Owned && !is_in_flight {
            self.region.memory.for_each_word(run, |cell| cell.store(0, Relaxed));
        }
    }

    /// Retires a hidden series that no process keeps any more, or shows it if its value changed.
    ///
    /// A thread that reaches a hidden series shows it before it adds (`lookup/series.rs`,
    /// `series/holds.rs`): so none adds between the look at the value and the change of the head.
    pub(crate) fn end_hiding(self, seen: u64) {
        let head = Head::unpack(seen);
        if record::state(seen) != PUBLISHED || !head.hidden || head.permanent || self.is_pinned() {
            return;
        }
        let Some(before) = self.seen().map(|seen| seen.load(Acquire)) else { return };
        if self.digest() != before {
            let _ = self.set_hidden(seen, false);
        } else if !self.is_held() {
            let _ = self.retire(seen, None);
        }
    }

    /// Whether the series is gone, or hidden and its value has not changed since.
    pub(crate) fn is_out_of_sight(self) -> bool {
        let head = self.word(SERIES_HEAD).load(Acquire);
        record::state(head) != PUBLISHED
            || Head::unpack(head).hidden
                && self.seen().is_some_and(|seen| seen.load(Acquire) == self.digest())
    }

    /// Hides a series whose value did not change for some sweeps, or shows it again.
    pub(super) fn hide_if_idle(self, guard: &Guard, seen: u64, idle_limit: u64) {
        let digest = self.digest();
        let Some(before) = self.seen().map(|seen| seen.load(Acquire)) else { return };
        let since = self.word(SERIES_SINCE).load(Relaxed);
        let hidden = Head::unpack(seen).hidden;
        if digest != before || since == 0 {
            self.note_value(guard, digest);
            if hidden {
                let _ = self.set_hidden(seen, false);
            }
        } else if !hidden && guard.sweep.saturating_sub(since) > idle_limit {
            let _ = self.set_hidden(seen, true);
        }
    }

    fn note_value(self, guard: &Guard, digest: u64) {
        self.word(SERIES_SINCE).store(guard.sweep, Relaxed);
        if let Some(seen) = self.seen() {
            seen.store(digest, Release);
        }
    }

    fn set_hidden(self, seen: u64, hidden: bool) -> Result<(), u64> {
        let head = Head { hidden, ..Head::unpack(seen) };
        let word = self.word(SERIES_HEAD);
        word.compare_exchange(seen, head.pack(PUBLISHED), AcqRel, Acquire)?;
        if hidden {
            // So that no lookup cache leads to it (`lookup/cache.rs`).
            self.region.family_word(head.family, FAMILY_REMOVALS).fetch_add(1, AcqRel);
        }
        Ok(())
    }

    /// A number that changes when a value of the series does.
    fn digest(self) -> u64 {
        let mut sum = 0_u64;
        if let Some(run) = self.run() {
            let memory = &self.region.memory;
            memory.for_each_word(run, |cell| sum = sum.wrapping_add(cell.load(Relaxed)));
        }
        sum
    }

    /// Makes a series a removed one; the head as it is where it is another, or a process keeps the
    /// series. The holds of the process in the slot `except` do not count.
    ///
    /// A thread that keeps a series notes that and then looks whether the series is being removed; if
    /// it is, it changes the head (`series/holds.rs`). So either the note is found here, or the change.
    pub(crate) fn retire(self, seen: u64, except: Option<u64>) -> Result<(), u64> {
        let head = Head { removing: true, ..Head::unpack(seen) };
        let (removing, removed) = (head.pack(PUBLISHED), head.pack(REMOVED));
        let word = self.word(SERIES_HEAD);
        if seen != removing {
            word.compare_exchange(seen, removing, AcqRel, Acquire)?;
        }
        fence(SeqCst);
        if self.is_pinned_beside(except) {
            return Err(word.load(Acquire));
        }
        // In this order: see `lookup/cache.rs`.
        self.region.family_word(head.family, FAMILY_REMOVALS).fetch_add(1, AcqRel);
        word.compare_exchange(removing, removed, AcqRel, Acquire)?;
        self.region.memory.word_at(M_WAITING).fetch_add(1, Relaxed);
        let count = self.region.family_word(head.family, FAMILY_SERIES);
        // A process that is killed right here leaves the count one too high.
        let _ = count.fetch_update(AcqRel, Relaxed, |n| n.checked_sub(1));
        self.finish_removal(removed);
        Ok(())
    }

    /// Takes a removed series out of its chain. Any number may do so at once.
    pub(super) fn finish_removal(self, seen: u64) {
        let Some(hash) = self.hash_of(Head::unpack(seen).family) else { return };
        self.region.index().unlink(hash, self.id);
        self.word(SERIES_SINCE).store(0, Relaxed);
        let unlinked = Head::unpack(seen).pack(UNLINKED);
        let word = self.word(SERIES_HEAD);
        if word.compare_exchange(seen, unlinked, AcqRel, Relaxed).is_ok() {
            self.note_stamp();
        }
    }

    /// Notes the stamp of an unlinked record. The epoch must be read after the head has the state:
    /// then a thread that still helps to unlink it has announced an epoch that is not later.
    fn note_stamp(self) {
        let since = self.word(SERIES_SINCE);
        let _ = since.compare_exchange(0, self.region.memory.stamp(), AcqRel, Relaxed);
    }

    pub(super) fn clear_unlinked(self, seen: u64, may_search: &mut bool) {
        match self.word(SERIES_SINCE).load(Acquire) {
            // The thread that unlinked it was killed or stopped right then.
            0 => self.note_stamp(),
            // A series that was kept at the instant of its removal waits until no process keeps it.
            stamp if !self.region.memory.is_unreachable(stamp, may_search) || self.is_pinned() => {}
            _ if self.claim_record(seen) => {
                self.clear();
                self.region.memory.word_at(M_WAITING).fetch_sub(1, Relaxed);
            }
            _ => {}
        }
    }

    /// Claims a record that no other process owns.
    pub(super) fn claim_record(self, seen: u64) -> bool {
        let own = self.region.own_head(CLEARING, Head::unpack(seen).family);
        let word = self.word(SERIES_HEAD);
        word.compare_exchange(seen, own, AcqRel, Relaxed).is_ok()
    }

    /// Finishes a record that a dead process owned.
    pub(super) fn take_over(self, seen: u64) {
        let family = Head::unpack(seen).family;
        let hash = self.hash_of(family);
        let linked = record::state(seen) == BUILDING
            && hash.is_some_and(|hash| self.region.index().is_linked(Kind::Series, hash, self.id));
        if linked {
            // It is in the index, and its maker died before it noted that.
            let looked_up = SweepStamp::of(self.region.memory.sweep_number());
            let head = Head { looked_up, family, ..Head::unpack(0) };
            let word = self.word(SERIES_HEAD);
            let _ = word.compare_exchange(seen, head.pack(PUBLISHED), AcqRel, Relaxed);
        } else if self.claim_record(seen) {
            self.clear();
        }
    }

    /// The hash of a record's text; `None` where it has none.
    fn hash_of(self, family: u32) -> Option<u64> {
        let span = Span::unpack(self.word(SERIES_TEXT).load(Acquire));
        let words = self.region.memory.text_words(span)?;
        let words = words.iter().map(|word| word.load(Relaxed));
        Some(hash_of_words(self.region.seed, u64::from(family), span.len, words))
    }

    /// Frees a record that this process has alone, and all that it names.
    pub(crate) fn clear(self) {
        let (memory, word) = (&self.region.memory, |at| self.word(at));
        // The call that swaps a word for 0 gives back the memory that it named.
        self.drop_extension();
        if let Some(run) = self.run() {
            memory.for_each_word(run, |cell| cell.store(0, Relaxed));
            word(SERIES_CELLS).store(0, Release);
            memory.drop_cells(run);
        }
        memory.drop_text(Span::unpack(word(SERIES_TEXT).swap(0, AcqRel)));
        self.drop_pins(word(SERIES_PINS).swap(0, AcqRel));
        // The time of creation stays: the next one is later, so that a reader can
        // distinguish the two.
        for at in [SERIES_LINK, SERIES_EXTENSION, SERIES_SINCE] {
            word(at).store(0, Relaxed);
        }
        // A process that takes the bit in between finds a head that is not free, and leaves both to
        // the next sweep.
        memory.give_back(&memory.sections.records, u64::from(self.id) * RECORD_LEN, 1);
        word(SERIES_HEAD).store(FREE, Release);
    }
}
