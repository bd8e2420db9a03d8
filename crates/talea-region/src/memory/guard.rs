//! Guards: a thread that looks a series up announces it, and memory that it may have seen is not
//! reused until it has finished.
//!
//! This is epoch-based reclamation (Fraser, "Practical lock-freedom", 2004). It differs in three
//! ways: the epoch and the announcements lie in shared memory and belong to processes that may be
//! killed; the epoch also counts sweeps; and most announcements are plain stores, for which the
//! reclaiming thread makes the fence (`membarrier.rs`).
//!
//! ```text
//!   epoch        sweep:38 | step:26
//!   guard word   sweep:22 | step:26 | count:16      a few a process
//! ```
//!
//! - The *epoch* only grows. Its high part is the number of the sweep. Its low part moves when a
//!   thread needs to know that a retired record is unreachable.
//! - *Entering* announces the epoch in the thread's guard word: the count goes up by 1, and if it was
//!   0, the epoch that was just read is stored beside it. Then comes a full fence. Threads that share
//!   a word, a signal handler in a guarded thread, and a second guard of one thread only count; the
//!   older epoch stays. The word has the low bits of the epoch (eight years of sweeps); a search takes the
//!   epoch nearest to now that ends in them.
//! - *Retiring* makes a record unreachable for new look-ups and then notes the epoch, its *stamp*.
//! - A retired record is *reclaimable* if the epoch has moved beyond its stamp and, after a full
//!   fence, no guard word of a living process announces an epoch at or before the stamp.
//!
//! Invariants:
//!
//! 1. A guard that can see a retired record announces an epoch at or before its stamp. Either the
//!    search for guards sees the announcement and waits; or the fence of the entering thread comes
//!    after the fence of the search, and what that thread reads then no longer has the record. A
//!    guard that announces a later epoch has read that epoch, so the same holds.
//! 2. A word of which one thread is the only writer, as long as it lives, is stored to without a
//!    fence. The search makes a fence in all threads between two of its own. An announcement before
//!    that instant is seen; after it, nothing that was retired is read. A signal handler between the
//!    load and the store of the word leaves the count as it found it, and at worst an older epoch.
//! 3. If the system has no such fence, and for processes without a slot, a word may have several
//!    writers: these exchange it, which is a fence too. A slot says whether it has words of one
//!    writer. A thread that finds such a word and cannot have the fence made reclaims nothing.
//! 4. The count *saturates*: from 65,534 guards of one word on, a further guard does not count, and
//!    one is counted for all of them that is never taken back. So the count does not carry into the
//!    epoch, and never returns to 0: the word blocks reclamation until its process ends.
//! 5. A process that dies leaves its guard words as they were. The search leaves out slots that no
//!    living process holds.
//!
//! A process that is stopped within a guard blocks reclamation and nothing else: new series take
//! fresh memory as long as there is any.

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use super::membarrier;
use super::words::Memory;
use crate::layout::*;
use crate::primitive::Word;
use crate::source::Source;
use crate::threads::{REUSED, thread_number};

const COUNT_BITS: u32 = 16;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
/// The count from which on it saturates.
const COUNT_BEFORE_LAST: u64 = COUNT - 1;
const STEP_BITS: u32 = 26;
/// The distance of the epoch from one sweep to the next.
pub(crate) const SWEEP: u64 = 1 << STEP_BITS;

/// Beside the number of a slot: the word is the thread's alone.
const ALONE: u64 = 1 << 63;
/// Beside the number of a slot: the guard is not counted, since the count is saturated. No slot has
/// a number with this bit, so the guard's end takes it for one of another process.
const NOT_COUNTED: u64 = 1 << 62;

/// While a guard lives, the series that its thread looked up are not reclaimed.
pub struct Guard {
    memory: &'static Memory,
    word: Word,
    /// The slot that the word is of, [`ALONE`] and [`NOT_COUNTED`].
    // In one word: docs/explanations/adds.md, "Whole words".
    slot: u64,
    /// The number of the sweep, read after the announcement.
    pub(crate) sweep: u64,
    /// It is the thread's.
    bound: PhantomData<*const dyn EndsBeforeTheNextAwait>,
}

/// Neither `Send` nor `Sync`. The compiler names it where a guard is held across an `await` or sent
/// to another thread.
trait EndsBeforeTheNextAwait {}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("sweep", &self.sweep).finish_non_exhaustive()
    }
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        // In a child made by `fork` meanwhile, the word is the parent's. A guard that is not
        // counted has a slot that no process has.
        if self.memory.own_slot() != self.slot & !ALONE {
            return;
        }
        if self.slot & ALONE != 0 {
            debug_assert!(self.is_on_its_thread());
            self.word.store(self.word.load(Relaxed).wrapping_sub(1), Release);
        } else {
            self.word.fetch_sub(1, Release);
        }
    }
}

impl Guard {
    /// Invariant 2.
    fn is_on_its_thread(&self) -> bool {
        let own = self.memory.own_guard_word(self.memory.own_line(thread_number()));
        std::ptr::eq(self.word, own)
    }
}

impl Memory {
    /// Announces that this thread looks at series.
    #[inline]
    pub(crate) fn enter(&'static self) -> Guard {
        let (slot, number) = (self.own_slot(), thread_number());
        let alone = number < self.lone_words();
        let word = self.own_guard_word(self.own_line(number));
        let epoch = self.word_at(M_EPOCH);
        let now = epoch.load(Acquire);
        let flags = if alone {
            let (with_guard, not_counted) = announced(word.load(Relaxed), now);
            word.store(with_guard, Relaxed);
            after_own_announcement();
            ALONE | not_counted
        } else {
            let before = word.fetch_update(SeqCst, Relaxed, |seen| Some(announced(seen, now).0));
            after_exchange();
            let (Ok(seen) | Err(seen)) = before;
            announced(seen, now).1
        };
        let sweep = epoch.load(Acquire) >> STEP_BITS;
        let slot = slot | flags;
        Guard { memory: self, word, slot, sweep, bound: PhantomData }
    }

    /// How many guard words of a slot are one thread's alone, where the system makes fences:
    /// three of four, the rest are for threads beyond.
    pub(crate) fn guards_alone(&self) -> u64 {
        let lines = self.sections.guards_len / LINE;
        (lines - lines / 4).min(REUSED)
    }

    /// The number of a thread's guard word in its slot.
    #[inline]
    fn own_line(&self, number: u64) -> u64 {
        // There are a power of two of them, and of those beyond.
        let (lines, alone) = (self.sections.guards_len / LINE, self.lone_words());
        debug_assert!((lines - alone).is_power_of_two(), "{alone} of {lines}");
        if number < alone { number } else { alone + (number & (lines - alone - 1)) }
    }

    /// The stamp of a record that was just retired.
    pub(crate) fn stamp(&self) -> u64 {
        fence();
        self.word_at(M_EPOCH).load(SeqCst)
    }

    pub(crate) fn sweep_number(&self) -> u64 {
        self.word_at(M_EPOCH).load(Acquire) >> STEP_BITS
    }

    /// Whether a record retired with this stamp can be reclaimed, by the result of the last search
    /// for guards.
    pub(crate) fn is_known_reclaimable(&self, stamp: u64) -> bool {
        stamp < self.word_at(M_RECLAIMABLE).load(Acquire)
    }

    /// Whether a record retired with this stamp can be reclaimed, by a new search for guards. Cost:
    /// a system call, and a read of the guard words of every living process.
    pub(crate) fn is_reclaimable(&self, stamp: u64) -> bool {
        let epoch = self.word_at(M_EPOCH);
        let now = epoch.load(SeqCst);
        if now <= stamp {
            let _ = epoch.compare_exchange(now, now.wrapping_add(1), SeqCst, Relaxed);
        }
        let now = epoch.load(SeqCst);
        fence();
        if !membarrier::fence_everywhere() && self.anybody_announces_alone() {
            return false;
        }
        let oldest = self.oldest_guard(now).unwrap_or(now).min(now);
        self.word_at(M_RECLAIMABLE).fetch_max(oldest, AcqRel);
        stamp < oldest
    }

    /// Whether a record with this stamp is unreachable. It searches for guards only if `may_search`,
    /// and clears that if another search would not help.
    pub(crate) fn is_unreachable(&self, stamp: u64, may_search: &mut bool) -> bool {
        let out = self.is_known_reclaimable(stamp) || *may_search && self.is_reclaimable(stamp);
        *may_search &= out;
        out
    }

    /// The oldest epoch that a living process announces; `now` is the epoch of about now.
    fn oldest_guard(&self, now: u64) -> Option<u64> {
        let slots = self.slots_used().chain([SLOT_COUNT]);
        slots.filter_map(|slot| self.oldest_guard_of(slot, now)).min()
    }

    fn oldest_guard_of(&self, slot: u64, now: u64) -> Option<u64> {
        let oldest = (0..self.sections.guards_len / LINE)
            .map(|line| self.guard_word(slot, line).load(Acquire))
            .filter(|word| word & COUNT != 0)
            .map(|word| announced_epoch(word, now))
            .min()?;
        // Whether the process lives takes a system call, so that comes last.
        (slot == SLOT_COUNT || self.lives(slot)).then_some(oldest)
    }

    /// Whether a living process has guard words that are one thread's alone.
    fn anybody_announces_alone(&self) -> bool {
        self.slots_used()
            .any(|slot| self.slot_word_at(slot, SLOT_ALONE).load(SeqCst) != 0 && self.lives(slot))
    }

    fn guard_word(&self, slot: u64, line: u64) -> Word {
        self.word_at(self.sections.guards_of(slot) + line * LINE)
    }
}

/// A guard word with one guard more, which finds the epoch `now`; and the flag of a guard that is not
/// counted.
#[inline]
fn announced(seen: u64, now: u64) -> (u64, u64) {
    let (word, flag) = match seen & COUNT {
        0 => (now << COUNT_BITS | 1, 0),
        COUNT_BEFORE_LAST.. => (seen | COUNT, NOT_COUNTED),
        _ => (seen + 1, 0),
    };
    // Invariant 4, and the older epoch stays.
    debug_assert!(word & COUNT != 0 && (seen & COUNT == 0 || word & !COUNT == seen & !COUNT));
    (word, flag)
}

/// The epoch that a guard word announces. The word has its low bits, enough for eight years of
/// sweeps; the epoch near it gives the rest.
fn announced_epoch(word: u64, near: u64) -> u64 {
    let ahead = (word & !COUNT).wrapping_sub(near << COUNT_BITS) as i64 >> COUNT_BITS;
    near.wrapping_add_signed(ahead)
}

/// Follows an announcement by a plain store. The searching thread makes the processor's part of the
/// fence.
#[inline]
fn after_own_announcement() {
    if cfg!(loom) { fence() } else { std::sync::atomic::compiler_fence(SeqCst) }
}

/// A full fence after an exchange.
#[inline]
fn after_exchange() {
    // On x86 an exchange is one, and a second would cost as much again.
    if cfg!(all(target_arch = "x86_64", not(loom), not(miri))) {
        std::sync::atomic::compiler_fence(SeqCst);
    } else {
        fence();
    }
}

/// The last stamp of a record that was retired, or looked up, during a sweep.
pub(crate) fn last_stamp_of_sweep(sweep: u64) -> u64 {
    ((sweep + 1) << STEP_BITS) - 1
}

fn fence() {
    crate::primitive::fence(SeqCst);
}

#[cfg(all(test, not(loom)))]
mod tests;
