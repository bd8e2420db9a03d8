//! Exemplars: one observation that was counted in a cell, with its labels and its time.
//!
//! A series that never had an exemplar has no memory for them. The first one makes a table with two
//! words for each cell that a series is made with: the offsets of a small and of a large place, each
//! made when it is first needed. A place is reused for every exemplar of its cell:
//!
//! ```text
//!   claim   0, or `generation:13 | slot:11 | 1:1`, who is writing
//!   sum     a hash of what follows
//!   time    nanoseconds since 1970
//!   value   the bits of a float
//!   length  of the text in bytes
//!   text
//! ```
//!
//! A writer that finds another writer at work drops its own exemplar: the other's is as new. A
//! place that a killed process was writing is overwritten. After a writer has written one place, it
//! sets the sum of the other to 0, which hides it; so the order does not depend on the wall clock,
//! which can be set. A reader uses a place whose contents match its sum. If both do, because a
//! writer is between the two steps or was killed there, the reader shows the newer one by their
//! times.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

use crate::clock::{unix_nanos, unix_nanos_about};
use crate::error::Overflow;
use crate::hash::{hash_of_words, words_of};
use crate::layout::*;
use crate::memory::runs::CellRun;
use crate::primitive::Words;
use crate::series::cell::Cell;
use crate::series::record::Series;
use crate::source::Source;

/// Words before the text.
const HEAD: u64 = 5;
/// Bytes of text that the two places have room for. Two hundred do for the ids of a
/// trace and a span; the largest is for 128 characters of four bytes, each a label with
/// its quotes.
const ROOMS: [u64; 2] = [200, 2048];

/// An observation that was counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Exemplar {
    /// The number that it was kept under.
    pub n: usize,
    /// How much it was.
    pub value: f64,
    /// Its labels, as text.
    pub text: Vec<u8>,
    /// Nanoseconds since 1970.
    pub unix_nanos: u64,
}

impl Cell {
    /// Keeps one thing that was counted as exemplar `n` of this cell's series, in place of the last
    /// one. It does not count it. There are as many as cells that the series was made with; further
    /// ones are not kept.
    ///
    /// Where another thread does the same at this instant, one of the two stays. Cost: a
    /// copy and a hash of the text, and a read of the clock.
    ///
    /// # Errors
    ///
    /// [`Overflow`] where there is no room for it, or the text is longer than 2,048 bytes.
    pub fn set_exemplar(self, n: usize, value: f64, text: &[u8]) -> Result<(), Overflow> {
        self.series().set_exemplar(n, value, text)
    }

    /// Whether the last exemplar `n` of at most 200 bytes is newer than that, or the wall clock was set
    /// since. The age is exact to a tick of the kernel. Cost: a look at the series' table, and at the
    /// clock.
    pub fn has_exemplar_of_last(self, n: usize, age: Duration) -> bool {
        let written = self.series().exemplar_time(n);
        written.is_some_and(|at| u128::from(unix_nanos_about().abs_diff(at)) < age.as_nanos())
    }
}

impl Series<'_> {
    fn set_exemplar(self, n: usize, value: f64, text: &[u8]) -> Result<(), Overflow> {
        let len = text.len() as u64;
        let kind = ROOMS.iter().position(|&room| len <= room).ok_or(Overflow::TooLong)?;
        let (place, other) = self.exemplar_place(n, kind).ok_or(Overflow::Full)?;
        let [claim, sum, time, number, length, room @ ..] = place else { return Ok(()) };
        let own = self.region.memory.own_slot();
        let mine = self.region.memory.generation(own) << 12 | own << 1 | 1;
        let before = claim.load(Acquire);
        let is_busy =
            before != 0 && !self.region.memory.has_ended(before >> 1 & 0x7FF, before >> 12);
        if is_busy || claim.compare_exchange(before, mine, AcqRel, Relaxed).is_err() {
            return Ok(());
        }
        // Until the sum is right again, readers ignore it.
        sum.store(0, Release);
        let now = unix_nanos();
        time.store(now, Release);
        number.store(value.to_bits(), Release);
        length.store(len, Release);
        let words = words_of(text);
        room.iter().zip(words.clone()).for_each(|(word, text)| word.store(text, Release));
        let head = [now, value.to_bits(), len];
        sum.store(sum_of(self.region.seed, head.into_iter().chain(words)), Release);
        self.forget_exemplar(other);
        claim.store(0, Release);
        Ok(())
    }

    /// When the exemplar in the small place of a number was written, in nanoseconds since 1970; `None`
    /// if there is none.
    fn exemplar_time(self, n: usize) -> Option<u64> {
        let memory = &self.region.memory;
        let table = self.extension()?.exemplars.load(Acquire);
        let entry = memory.singles(table, self.exemplar_max()? * 2)?.get(n * 2)?;
        let [_, sum, time, ..] = memory.singles(entry.load(Acquire), HEAD)? else { return None };
        (sum.load(Acquire) != 0).then(|| time.load(Relaxed))
    }

    /// The place of an exemplar, made if it does not exist, and the offset of its other place, or 0.
    fn exemplar_place(self, n: usize, kind: usize) -> Option<(Words, u64)> {
        let memory = &self.region.memory;
        let len = self.exemplar_max()? * 2;
        let table = memory.get_or_make_run(self.extension_or_new()?.exemplars, len)?;
        let entries = memory.map.words(table, len)?;
        let [entry, other] = [kind, 1 - kind].map(|kind| entries.get(n * 2 + kind));
        let words = entry_lens()[kind];
        let at = memory.get_or_make_run(entry?, words)?;
        Some((memory.map.words(at, words)?, other?.load(Acquire)))
    }

    /// The most exemplars that it has.
    fn exemplar_max(self) -> Option<u64> {
        let run = CellRun::unpack(self.word(SERIES_CELLS).load(Acquire))?;
        Some(run.count + u64::from(self.region.made_segment(self.family()).cells))
    }

    /// Hides all exemplars of a series.
    pub(crate) fn forget_exemplars(self, table: u64) {
        let len = self.exemplar_max().map_or(0, |most| most * 2);
        let entries = self.region.memory.singles(table, len).unwrap_or(&[]);
        entries.iter().for_each(|entry| self.forget_exemplar(entry.load(Acquire)));
    }

    /// Hides the exemplar at an offset, if there is one. If another thread is writing one there,
    /// that one may be shown.
    fn forget_exemplar(self, at: u64) {
        if let Some([_, sum, ..]) = self.region.memory.singles(at, HEAD) {
            sum.store(0, Release);
        }
    }

    /// Gives back all exemplars of a series.
    pub(crate) fn drop_exemplars(self, table: u64) {
        let (memory, len) = (&self.region.memory, self.exemplar_max().map_or(0, |most| most * 2));
        let entries = memory.singles(table, len).unwrap_or(&[]);
        for (entry, len) in entries.iter().zip(entry_lens().into_iter().cycle()) {
            memory.drop_singles(entry.swap(0, AcqRel), len);
        }
        memory.drop_singles(table, len);
    }
}

/// The words of the two entries that a cell's exemplars have room in.
pub(crate) fn entry_lens() -> [u64; 2] {
    ROOMS.map(|room| HEAD + room / WORD)
}

/// The exemplars of a series that has so many at most, and whose table lies at an offset: the newest
/// of each number. Places that do not match their sum are left out. Reading stops when `room`, in bytes, is
/// used up.
pub(crate) fn read(source: &impl Source, table: u64, most: u64, room: &mut u64) -> Vec<Exemplar> {
    let Some(entries) = source.singles(table, most * 2) else { return Vec::new() };
    let mut newest = Vec::new();
    for (n, places) in entries.chunks(2).enumerate() {
        let places = places.iter().zip(ROOMS);
        let found = places.filter_map(|(&at, len)| {
            if at != 0 {
                *room = room.checked_sub(HEAD * WORD + len)?;
            }
            one(source, at, len)
        });
        let found = found.max_by_key(|exemplar| exemplar.unix_nanos);
        newest.extend(found.map(|exemplar| Exemplar { n, ..exemplar }));
    }
    newest
}

fn one(source: &impl Source, at: u64, room: u64) -> Option<Exemplar> {
    let all = source.singles(at, HEAD + room / WORD)?;
    let [_, sum, unix_nanos, value, len, text @ ..] = &all[..] else { return None };
    let used = text.get(..len.div_ceil(WORD) as usize)?;
    let content = [*unix_nanos, *value, *len].into_iter().chain(used.iter().copied());
    if *len == 0 && *sum == 0 || sum_of(source.seed(), content) != *sum {
        return None;
    }
    let mut text: Vec<u8> = used.iter().flat_map(|word| word.to_le_bytes()).collect();
    text.truncate(*len as usize);
    let (value, unix_nanos) = (f64::from_bits(*value), *unix_nanos);
    Some(Exemplar { n: 0, value, text, unix_nanos })
}

fn sum_of(seed: u64, words: impl Iterator<Item = u64>) -> u64 {
    // The sum of a place that is being written is 0.
    hash_of_words(seed, EXEMPLARS, 0, words) | 1
}

/// The hash domain of exemplars; families use their names', series their family's.
const EXEMPLARS: u64 = u64::MAX - 1;

#[cfg(all(test, target_os = "linux", not(loom)))]
mod tests {
    use super::*;
    use crate::clock::set::{pass, step_wall};
    use crate::lookup::register::FamilySpec;
    use crate::region::Region;

    const HOUR: i64 = 3_600;

    fn cell() -> (&'static Region, Cell) {
        crate::testing::cell(FamilySpec::default())
    }

    fn values(region: &'static Region) -> Vec<f64> {
        let snapshot = region.snapshot();
        let all = snapshot.families().iter().flat_map(|family| snapshot.series(family));
        all.flat_map(|series| series.exemplars).map(|one| one.value).collect()
    }

    #[test]
    fn the_latest_exemplar_is_shown_though_the_wall_clock_was_set_back() {
        let (region, cell) = cell();
        // Exemplars of one length have a place of their own.
        for (n, len) in [300, 10, 300, 10, 10, 300, 300].into_iter().enumerate() {
            cell.set_exemplar(0, n as f64, &vec![b'x'; len]).unwrap();
            assert_eq!(values(region), [n as f64]);
            step_wall(-HOUR);
        }
    }

    #[test]
    fn the_age_of_an_exemplar_is_known_unless_it_was_wiped_or_the_wall_clock_was_set() {
        let (region, cell) = cell();
        let is_new = || cell.has_exemplar_of_last(0, Duration::from_secs(60));
        assert!(!is_new());
        cell.set_exemplar(0, 1.0, b"a").unwrap();
        assert!(is_new());
        pass(61);
        assert!(!is_new());
        for step in [-HOUR, HOUR] {
            cell.set_exemplar(0, 1.0, b"a").unwrap();
            assert!(is_new());
            step_wall(step);
            assert!(!is_new());
        }
        cell.set_exemplar(0, 1.0, b"a").unwrap();
        region.wipe(|_| true);
        assert!(!is_new());
        // A longer one is in another place, and hides this one.
        cell.set_exemplar(0, 1.0, b"a").unwrap();
        cell.set_exemplar(0, 1.0, &[b'x'; 300]).unwrap();
        assert!(!is_new());
    }

    #[test]
    fn after_a_wipe_only_later_exemplars_are_shown_though_the_wall_clock_was_set_back() {
        let (region, cell) = cell();
        for len in [10, 300] {
            cell.set_exemplar(0, 1.0, &vec![b'x'; len]).unwrap();
            step_wall(-HOUR);
            region.wipe(|_| true);
            assert_eq!(values(region), []);
            step_wall(-HOUR);
            cell.set_exemplar(0, 2.0, &vec![b'x'; len]).unwrap();
            assert_eq!(values(region), [2.0]);
        }
    }

    #[test]
    fn each_wipe_is_seen_in_the_time_of_creation_though_the_wall_clock_was_set_back() {
        let (region, _) = cell();
        let created = || {
            let snapshot = region.snapshot();
            let family = &snapshot.families()[0];
            snapshot.series(family).next().unwrap().created_unix_nanos
        };
        for step in [-HOUR, -HOUR, HOUR, -HOUR] {
            let before = created();
            step_wall(step);
            region.wipe(|_| true);
            assert!(created() > before, "after a step of {step} s");
        }
        step_wall(4 * HOUR);
        pass(60);
        region.wipe(|_| true);
        assert!(created().abs_diff(unix_nanos()) < 60_000_000_000, "it is shown as it was");
    }
}
