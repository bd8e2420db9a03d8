//! Series: one combination of label values, and the cells that it owns.

use std::ops::Deref;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::clock::unix_nanos_about;
use crate::error::Overflow;
use crate::hash::hash;
use crate::layout::*;
use crate::memory::guard::Guard;
use crate::memory::runs::CellRun;
use crate::series::cell::Cells;
use crate::series::family::Family;
use crate::series::index::Kind;
use crate::series::record::{self, BUILDING, Head, PUBLISHED, SweepStamp};

/// A series that was just looked up. While the guard lives, the cells belong to the series. An
/// addition after that might count for another series, so do not use the cells longer. To use a
/// series for longer, [`keep`](Self::keep) it.
#[derive(Debug)]
pub struct SeriesGuard {
    pub(crate) cells: Cells,
    pub(crate) guard: Guard,
}

impl Deref for SeriesGuard {
    type Target = Cells;

    #[inline]
    fn deref(&self) -> &Cells {
        &self.cells
    }
}

impl SeriesGuard {
    /// Keeps the series for as long as this process lives, in children made by
    /// `fork` too, and returns its cells. A series that another thread removes at this
    /// very instant is kept, but found no more.
    ///
    /// # Errors
    ///
    /// [`Overflow`] where there is no room to note it.
    pub fn keep(self) -> Result<Cells, Overflow> {
        self.cells.at(0).keep().map(|()| self.cells)
    }

    /// The cells, and the guard that must live as long as they are used, or until they are
    /// [kept](crate::Cell::keep).
    #[inline]
    pub fn into_parts(self) -> (Cells, Guard) {
        (self.cells, self.guard)
    }
}

/// Whether this thread's next series is likely a new one: after eight in a row it is taken for that.
/// A record that is built and not needed costs more than the wait that it fills. So where new series
/// and others come by turns, as keys do that are drawn at random, none is built beforehand.
mod expectation {
    thread_local! {
        static NEW_IN_A_ROW: std::cell::Cell<u8> = const { std::cell::Cell::new(0) };
    }

    #[inline]
    pub(super) fn is_new() -> bool {
        // The model checker tries both.
        if cfg!(loom) {
            return crate::threads::thread_number() == 1;
        }
        NEW_IN_A_ROW.try_with(|row| row.get() >= 8).unwrap_or(false)
    }

    #[inline]
    pub(super) fn was_new(new: bool) {
        // A thread that is ending expects nothing.
        let _ =
            NEW_IN_A_ROW.try_with(|row| row.set(if new { row.get().saturating_add(1) } else { 0 }));
    }
}

/// Why a series that was found has no cells.
pub(crate) enum LookupFailure {
    /// It was removed since.
    Removed,
    /// Its record names cells at a place where none can lie.
    Damaged,
}

/// How a series came to be asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lifetime {
    /// It is removed when it is idle, and counts against the family's limit.
    Temporary,
    /// It stays, but counts.
    Permanent,
    /// It stays and does not count.
    BeyondLimit,
}

impl Family {
    /// The cells of the series with this label text, made if it is new. The text
    /// is the region's key and is copied as it is into every scrape.
    ///
    /// Cost: one hash and one comparison of the text where the series exists, and
    /// two atomic operations on a word of this thread's own; nothing is allocated
    /// in the process. Any number of threads and processes may ask at once and get
    /// the same cells.
    ///
    /// # Errors
    ///
    /// [`Overflow`] where the series is new and there is no room for it; the
    /// family counts it as dropped.
    #[inline]
    pub fn series(&self, text: &[u8]) -> Result<SeriesGuard, Overflow> {
        let guard = self.region.memory.enter();
        let (_, cells) = self.get_or_insert(&guard, text)?;
        Ok(SeriesGuard { cells, guard })
    }

    /// Looks up a series that stays as long as its family, so that the caller can keep its cells.
    ///
    /// # Errors
    ///
    /// As [`series`](Self::series).
    pub fn permanent_series(&self, text: &[u8]) -> Result<Cells, Overflow> {
        self.permanent(text, Lifetime::Permanent)
    }

    /// Looks up a permanent series that the family's limit does not count: the overflow series.
    ///
    /// # Errors
    ///
    /// [`Overflow`] where the region itself has no room.
    pub fn series_beyond_limit(&self, text: &[u8]) -> Result<Cells, Overflow> {
        self.permanent(text, Lifetime::BeyondLimit)
    }

    /// Resets a series to 0, if it exists. The caller has a guard.
    pub(crate) fn reset(&self, text: &[u8]) {
        let found = self.region.index().find(Kind::Series, self.hash(text), |id| self.is(id, text));
        if let Ok(id) = found {
            self.region.series(id).reset();
        }
    }

    /// Resets a series to 0, if it exists, as [`Region::wipe`](crate::Region::wipe) does with those that
    /// stay.
    pub fn reset_series(&self, text: &[u8]) {
        let _guard = self.region.memory.enter();
        self.reset(text);
    }

    /// How many series were removed or hidden so far. Cost: a load.
    pub fn removals(&self) -> u64 {
        self.word(FAMILY_REMOVALS).load(Acquire)
    }

    /// How often a new series was refused.
    pub fn dropped(&self) -> u64 {
        self.word(FAMILY_DROPPED).load(Relaxed)
    }

    /// Removes a series with its values; the next look-up makes a new one. If a living process
    /// keeps it, it is hidden until its value changes. Additions by threads that looked it up
    /// before are removed with it. Returns false if it does not exist.
    pub fn remove(&self, text: &[u8]) -> bool {
        let region = self.region;
        let guard = region.memory.enter();
        let found = region.index().find(Kind::Series, self.hash(text), |id| self.is(id, text));
        let Ok(id) = found else { return false };
        let removed = region.series(id).remove(&guard);
        region.sweep_a_little(&guard, 0);
        removed
    }

    fn permanent(&self, text: &[u8], term: Lifetime) -> Result<Cells, Overflow> {
        let guard = self.region.memory.enter();
        loop {
            let (id, cells) = self.find_or_insert(&guard, text, term)?;
            let permanent = Head { permanent: true, ..Head::unpack(0) }.pack(0);
            let before = self.region.series(id).word(SERIES_HEAD).fetch_or(permanent, AcqRel);
            // Unless another thread removed it in between.
            if record::state(before) == PUBLISHED {
                self.region.series(id).show();
                return Ok(cells);
            }
        }
    }

    /// A series that passes, and which it is if it was there already.
    #[inline]
    pub(crate) fn get_or_insert(
        &self,
        guard: &Guard,
        text: &[u8],
    ) -> Result<(Option<u32>, Cells), Overflow> {
        let hash = self.hash(text);
        if let Some((id, cells)) = self.find(guard, hash, text) {
            return Ok((Some(id), cells));
        }
        self.make(guard, hash, text, Lifetime::Temporary).map(|(_, cells)| (None, cells))
    }

    #[inline]
    fn find_or_insert(
        &self,
        guard: &Guard,
        text: &[u8],
        term: Lifetime,
    ) -> Result<(u32, Cells), Overflow> {
        let hash = self.hash(text);
        match self.find(guard, hash, text) {
            Some(found) => Ok(found),
            None => self.make(guard, hash, text, term),
        }
    }

    /// A series that is there, unless a new one is expected: then it is not looked for.
    #[inline]
    fn find(&self, guard: &Guard, hash: u64, text: &[u8]) -> Option<(u32, Cells)> {
        if expectation::is_new() {
            return None;
        }
        let id = self.region.index().find(Kind::Series, hash, |id| self.is(id, text)).ok()?;
        let found = self.look_up(guard, id).ok()?;
        expectation::was_new(false);
        Some(found)
    }

    #[inline]
    fn hash(&self, text: &[u8]) -> u64 {
        hash(self.region.seed, u64::from(self.id), text)
    }

    #[cold]
    fn make(
        &self,
        guard: &Guard,
        hash: u64,
        text: &[u8],
        term: Lifetime,
    ) -> Result<(u32, Cells), Overflow> {
        let made = self.try_make(guard, hash, text, term, expectation::is_new());
        if made.is_err() {
            self.word(FAMILY_DROPPED).fetch_add(1, Relaxed);
        }
        made
    }

    /// Finds a series or makes it. With `prepare`, its record is built while the
    /// bucket is on its way from memory, and given back where the series is there.
    fn try_make(
        &self,
        guard: &Guard,
        hash: u64,
        text: &[u8],
        term: Lifetime,
        prepare: bool,
    ) -> Result<(u32, Cells), Overflow> {
        let region = self.region;
        let counted = term != Lifetime::BeyondLimit;
        if prepare {
            region.index().prefetch(hash);
        }
        let now = unix_nanos_about();
        region.sweep_a_little(guard, now);
        let is_full = || {
            counted
                && self.word(FAMILY_SERIES).load(Acquire) >= self.word(FAMILY_LIMIT).load(Relaxed)
        };
        let mut draft = if prepare && !is_full() { self.build(text, now) } else { None };
        let discard =
            |draft: Option<u32>| draft.into_iter().for_each(|id| region.series(id).clear());
        loop {
            // Series are counted after they are published. A thread that sees the limit
            // reached and searches then finds the series that were made before: of many
            // threads with the last label text, none is refused. Many threads with different
            // texts may exceed the limit, by one each.
            let full = draft.is_none() && is_full();
            let vacancy = match region.index().find(Kind::Series, hash, |id| self.is(id, text)) {
                Ok(id) => match self.look_up(guard, id) {
                    Err(LookupFailure::Removed) => continue,
                    found => {
                        expectation::was_new(false);
                        discard(draft);
                        return found.map_err(|_| Overflow::Full);
                    }
                },
                Err(_) if full => return Err(Overflow::Limit),
                Err(_) if text.len() as u64 > Span::MAX_LEN => return Err(Overflow::TooLong),
                Err(vacancy) => vacancy,
            };
            let id = draft.take().or_else(|| self.build(text, now)).ok_or(Overflow::Full)?;
            let winner =
                region.index().publish(vacancy, Kind::Series, hash, id, |id| self.is(id, text));
            expectation::was_new(winner == id);
            if winner != id {
                region.series(id).clear();
            } else if counted {
                self.word(FAMILY_SERIES).fetch_add(1, Release);
            }
            if let Ok(found) = self.look_up(guard, winner) {
                return Ok(found);
            }
        }
    }

    /// Builds a record that no other thread can find yet. If there is no room for a part of it, the
    /// parts that were taken are given back.
    fn build(&self, text: &[u8], now: u64) -> Option<u32> {
        let region = self.region;
        let id = region.take_record(self.id)?;
        region.note_in_group(id, self.id);
        let word = |at| region.series(id).word(at);
        let filled = region.memory.store_text(text).is_some_and(|span| {
            word(SERIES_TEXT).store(span.pack(), Release);
            let count = u64::from(self.head.cells);
            let run = region.memory.take_cells(self.head.storage, count);
            run.inspect(|run| word(SERIES_CELLS).store(run.pack(), Release)).is_some()
        });
        // The directory exists from the start, so that an addition allocates nothing.
        let made = region.made_segment(self.id);
        let filled = filled
            && (self.head.segments == 0 || region.series(id).prepare_segments(made).is_some());
        if !filled {
            region.series(id).clear();
            return None;
        }
        let before = word(SERIES_CREATED).load(Relaxed);
        word(SERIES_CREATED).store(now.max(before.wrapping_add(1)), Relaxed);
        Some(id)
    }

    /// Whether a record has this label text; one that was removed has none.
    #[inline]
    fn is(&self, id: u32, text: &[u8]) -> bool {
        let head = self.region.series(id).word(SERIES_HEAD).load(Acquire);
        // The maker of a record that is found while building has published it and not noted that
        // yet.
        let may_be =
            matches!(record::state(head), PUBLISHED | BUILDING) && head >> 32 == u64::from(self.id);
        if !may_be {
            return false;
        }
        let span = self.region.series(id).word(SERIES_TEXT).load(Relaxed);
        self.region.memory.text_is(Span::unpack(span), text)
    }

    /// The cells of a series that was found in the index. The record is marked as looked up, and no
    /// longer hidden.
    #[inline]
    pub(crate) fn look_up(&self, guard: &Guard, id: u32) -> Result<(u32, Cells), LookupFailure> {
        let word = self.region.series(id).word(SERIES_HEAD);
        let mut seen = word.load(Acquire);
        let sweep = SweepStamp::of(guard.sweep);
        while !is_marked(seen, sweep) {
            let head = match record::state(seen) {
                PUBLISHED => Head { looked_up: sweep, hidden: false, ..Head::unpack(seen) },
                // The thread that finds it marks it public: its maker may have died before
                // it could.
                BUILDING => Head { looked_up: sweep, family: self.id, ..Head::unpack(0) },
                _ => return Err(LookupFailure::Removed),
            };
            match word.compare_exchange(seen, head.pack(PUBLISHED), AcqRel, Acquire) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        let run = CellRun::unpack(self.region.series(id).word(SERIES_CELLS).load(Relaxed));
        let cells = run.and_then(|run| self.region.series(id).cells(run, self.head.combine));
        cells.map(|cells| (id, cells)).ok_or(LookupFailure::Damaged)
    }

    fn word(&self, at: u64) -> crate::primitive::Word {
        self.region.family_word(self.id, at)
    }
}

/// Whether a head says that its series is public, was looked up in this sweep, and is shown.
#[inline]
fn is_marked(head: u64, sweep: SweepStamp) -> bool {
    let Head { looked_up, hidden, .. } = Head::unpack(head);
    record::state(head) == PUBLISHED && looked_up == sweep && !hidden
}
