//! The lookup cache of a family: a table of this process that leads from a key straight to cells.
//!
//! A look-up by label text goes through the index, a record and the text: three places far from each
//! other. The caller decides what a key says (a copy of short values, a fingerprint of long ones); one key must
//! always stand for the same label text.
//!
//! ```text
//!   key      number | tag, three words of text and integers
//!   entry    version | three words of the key | when | slot | creation      a cache line
//!   slot     cells | id:32 | tag:32
//!   when     removals:42 | sweep:22
//! ```
//!
//! Series often differ only in which of some fixed values they have; that is the key's number. If it
//! is one of up to 64, an entry stands for all keys that are equal otherwise, and has a *row* of
//! slots, one for each number. So a thousand users with 18 combinations each take a thousand entries,
//! which stay in the caches, and a quarter of a cache line for each series. The times of creation
//! stand elsewhere, since they are seldom read. An entry's place gives that of its row, so both loads
//! start at once. With more numbers, the number is part of the tag.
//!
//! **Concurrency.** Entries and rows are written under a sequence lock (Lameter, "Effective
//! synchronization on Linux/NUMA systems", 2005): their version is odd while they are written, and a
//! reader takes what it read only if the version was even and equal before and after. A writer that
//! finds the version odd writes nothing, so no thread waits. A writer that takes an entry for other
//! keys empties the row first. The child of a process that forked while a thread was writing never
//! uses that entry. All other entries are valid in the child: they name places in the region, and the
//! guard is the child's own.
//!
//! **Validity.** A slot says that its series was public, and that no thread was removing it, when its
//! family had counted a number of *removals*, during a sweep. It is valid while both are the same:
//!
//! 1. A thread that removes a series marks its head as *removing*, then counts a removal, then removes
//!    it, each with release. The mark stays as long as the series does.
//! 2. A thread that writes a slot enters, reads the count, and then reads the head; if the series is
//!    being removed, it writes nothing. So the removal of a series is counted after the count in its slots:
//!    if the writer had read that count, it would have seen the mark that came before.
//! 3. A thread that uses a slot enters, and then reads the count. If the two are equal, the series had
//!    not been retired when this guard was announced: a removal whose record may be reclaimed is
//!    counted before its stamp, and the fences of `memory/guard.rs` show such a count to every thread that
//!    enters after it. From then on the guard protects it. A look-up that begins after a removal has
//!    ended reads that count, so it finds the next series.
//! 4. The sweep is compared too: the head says that the series was looked up during that sweep, since
//!    the writer of the slot stored it there. So a look-up by a slot counts for `reclaim/sweep.rs` as one that
//!    writes to the head.
//! 5. A series that is hidden counts as a removal as well: a look-up shows it again, which the record
//!    must say.
//!
//! If only the count or the sweep differs, the record decides: it is the same series if it is public
//! and was created at the same time, which no two lives of a record have in common. Then the slot is
//! renewed. The count and the sweep are those of the whole row, so the other slots in it are marked
//! and are checked when they are used next.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::error::Overflow;
use crate::hash::fold;
use crate::layout::*;
use crate::lookup::series::SeriesGuard;
use crate::memory::guard::Guard;
use crate::memory::mapping::{self, LINE_WORDS};
use crate::memory::runs::CellRun;
use crate::primitive::{AtomicU64, fence, prefetch};
use crate::series::cell::{Cells, Copies};
use crate::series::family::Family;
use crate::series::record::{self, Head, PUBLISHED};

/// Odd while a thread writes; 0 if none ever did.
const VERSION: usize = 0;
const KEY: usize = VERSION + 1;
const WHEN: usize = KEY + Key::WORDS;
/// The slot of an entry that has no row. If the entry has a row, this holds the tag.
const WITHIN: usize = WHEN + 1;
/// When the series of the slot within was created.
const CREATED: usize = WITHIN + SLOT;
const _: () = assert!(CREATED + 1 == LINE_WORDS);
type Entry = [AtomicU64; LINE_WORDS];

/// As in the record, and whether it is [`MARKED`]; 0 where there is nothing.
const CELLS: usize = 0;
/// `id:32 | tag:32`, the latter where the slot lies in its entry.
const ID: usize = CELLS + 1;
const SLOT: usize = ID + 1;
type Slot = [AtomicU64; SLOT];

/// The record must be checked before the slot is used. No run of cells has this bit, so code that
/// ignores the mark finds no cells.
const MARKED: u64 = 1 << 23;

/// The number of entries in which a key may be. They lie in one block.
const BLOCK: u64 = 4;
/// The most entries: 4 MiB.
const MOST: u64 = if cfg!(loom) { BLOCK } else { 1 << 16 };
/// The most slots in rows: 6 MiB, with when they were created.
const MOST_IN_ROWS: u64 = if cfg!(loom) { 3 * BLOCK } else { 1 << 18 };
/// Entries that there are at first: 4 KiB.
const FIRST: u64 = if cfg!(loom) { BLOCK } else { 64 };
const LONGEST_ROW: u32 = 64;

const SWEEP_BITS: u32 = 22;

/// The key of a series in the cache. Each label text must have another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    number: u16,
    combinations: u32,
    tag: u16,
    words: [u64; Self::WORDS],
}

impl Key {
    /// Words that a key has beside its numbers.
    pub const WORDS: usize = 3;

    /// The key of these bits. `number` is one of so many `combinations`, which are as many
    /// for each key of a family.
    #[inline]
    pub const fn new(number: u16, combinations: u32, tag: u16, words: [u64; Self::WORDS]) -> Self {
        Self { number, combinations, tag, words }
    }
}

/// A key as a table takes it apart.
#[derive(Clone, Copy)]
pub(crate) struct Parts {
    /// The number of the slot in the row.
    number: u32,
    /// With the words, the key of the entry.
    tag: u32,
    words: [u64; Key::WORDS],
}

impl Parts {
    #[inline]
    fn hash(&self) -> u64 {
        const K: [u64; 3] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93, 0xA076_1D64_78BD_642F];
        let [a, b, c] = self.words;
        fold(a ^ K[0], b ^ K[1]) ^ fold(c ^ K[2], u64::from(self.tag) ^ K[0])
    }

    /// Whether an entry is about this key; of one that is being written, anything.
    #[inline]
    fn is_in(&self, entry: &Entry) -> bool {
        let word = |n: usize| entry[KEY + n].load(Relaxed) ^ self.words[n];
        let tag = entry[WITHIN + ID].load(Relaxed) as u32 ^ self.tag;
        // One branch for all of it: which word differs is not foreseeable.
        word(0) | word(1) | word(2) | u64::from(tag) == 0
    }
}

/// The contents of a slot, with the version and the time of its entry.
#[derive(Clone, Copy)]
struct CachedSlot {
    version: u64,
    when: u64,
    cells: u64,
    id: u32,
}

impl CachedSlot {
    /// Whether the record must be checked.
    fn is_old(self, when: u64) -> bool {
        self.when != when || self.cells & MARKED != 0
    }
}

/// The slot of a key, if its entry is about that.
#[derive(Clone, Copy)]
struct Place {
    n: usize,
    entry: &'static Entry,
    slot: &'static Slot,
    created: &'static AtomicU64,
}

impl Place {
    /// Reads the slot, if the entry has this key and no thread is writing to it.
    #[inline]
    fn read_slot(&self, parts: &Parts) -> Option<CachedSlot> {
        let Self { entry, slot, .. } = self;
        let version = entry[VERSION].load(Acquire);
        let when = entry[WHEN].load(Relaxed);
        let cells = slot[CELLS].load(Relaxed);
        let id = (slot[ID].load(Relaxed) >> 32) as u32;
        let is_it = parts.is_in(entry);
        let is_whole = version % 2 == 0 && version != 0 && self.is_still(version);
        (is_it && is_whole && cells != 0).then_some(CachedSlot { version, when, cells, id })
    }

    /// When the series that a slot was about was created, if it still is.
    fn creation(&self, found: CachedSlot) -> Option<u64> {
        let created = self.created.load(Relaxed);
        self.is_still(found.version).then_some(created)
    }

    /// Whether no thread has written to the entry since a version was read.
    #[inline]
    fn is_still(&self, version: u64) -> bool {
        fence(Acquire);
        self.entry[VERSION].load(Relaxed) == version
    }
}

/// Entries with their slots.
#[derive(Debug)]
pub(crate) struct Table {
    /// A power of two of them.
    pub(crate) entries: &'static [Entry],
    /// Slots of a row; 1 where each entry has its only one within.
    row_len: u32,
    /// Four slots in each.
    pub(crate) rows: &'static [Entry],
    /// When the series of eight slots of rows were created, in each.
    pub(crate) creations: &'static [Entry],
    /// The number of entries in use, less 1. It grows up to the number of all entries.
    last: AtomicU64,
    /// How many were ever written to.
    taken: AtomicU64,
}

impl Table {
    /// One for at most this number of series; `None` if there is no memory for it.
    fn new(series: u64, combinations: u32) -> Option<Self> {
        let row_len = if (2..=LONGEST_ROW).contains(&combinations) { combinations } else { 1 };
        let mut entries = entries_for(series, 1);
        let (rows, creations) = if row_len == 1 {
            (&[][..], &[][..])
        } else {
            let room = 1 << (MOST_IN_ROWS / stride(row_len)).ilog2();
            entries = entries.min(room);
            let lines = |words: u64| mapping::own_lines(words.div_ceil(LINE_WORDS as u64));
            let slots = entries * stride(row_len);
            (lines(slots * SLOT as u64)?, lines(slots)?)
        };
        let last = AtomicU64::new(FIRST.min(entries) - 1);
        let taken = AtomicU64::new(0);
        let entries = mapping::own_lines(entries)?;
        Some(Self { entries, row_len, rows, creations, last, taken })
    }

    #[inline]
    pub(crate) fn parts(&self, key: &Key) -> Parts {
        let (number, tag) = (u32::from(key.number), u32::from(key.tag));
        if self.row_len == 1 {
            Parts { number: 0, tag: tag << 16 | number, words: key.words }
        } else {
            Parts { number, tag, words: key.words }
        }
    }

    /// The first entry that a key can be in.
    #[inline]
    pub(crate) fn first(&self, parts: &Parts) -> usize {
        (parts.hash() & self.last.load(Relaxed)) as usize
    }

    /// All entries that a key can be in, the first one first.
    fn block(&self, parts: &Parts) -> impl Iterator<Item = usize> + use<> {
        let first = self.first(parts);
        (0..BLOCK as usize).map(move |n| first ^ n)
    }

    /// An entry, and a slot of its row.
    #[inline]
    fn place(&self, n: usize, number: u32) -> Option<Place> {
        let entry = self.entries.get(n)?;
        if self.row_len == 1 {
            let slot = entry[WITHIN..].first_chunk()?;
            return Some(Place { n, entry, slot, created: &entry[CREATED] });
        }
        let at = n * stride(self.row_len) as usize + number as usize;
        let word = at * SLOT;
        let line = self.rows.get(word / LINE_WORDS).filter(|_| number < self.row_len)?;
        let slot = line[word % LINE_WORDS..].first_chunk()?;
        let created = &self.creations.get(at / LINE_WORDS)?[at % LINE_WORDS];
        Some(Place { n, entry, slot, created })
    }

    fn row(&self, n: usize) -> impl Iterator<Item = Place> + '_ {
        (0..self.row_len).filter_map(move |number| self.place(n, number))
    }

    /// Takes more entries into use if the family has more keys. Keys that belong to another entry
    /// then are misses once.
    fn grow(&self, series: u64) {
        let keys = match self.row_len {
            1 => series,
            // Of each entry one slot at least is in use, and at best all.
            len => (series / u64::from(len)).max(self.taken.load(Relaxed)),
        };
        let last = entries_for(keys, self.row_len).min(self.entries.len() as u64) - 1;
        if last > self.last.load(Relaxed) {
            self.last.fetch_max(last, Relaxed);
        }
    }
}

/// Slots from one row to the next: an odd number, since addresses that differ by a power of two
/// compete for the same few lines of a cache.
fn stride(row_len: u32) -> u64 {
    u64::from(row_len) | 1
}

/// So many that most keys find their first one free; where they have rows, nearly all: a key
/// in another costs some 40 ns more, for which the processor has to wait.
fn entries_for(keys: u64, row_len: u32) -> u64 {
    let each = if row_len == 1 { 2 } else { 8 };
    keys.saturating_mul(each).clamp(BLOCK.max(FIRST), MOST).next_power_of_two()
}

/// The lookup cache of one family. It is never freed.
///
/// Memory: for each series that the family has two to four entries of 64 bytes; or, if series
/// differ by one of 2 to 64 fixed combinations, for all of them together eight to sixteen entries,
/// each with 24 bytes for each of the combinations. At most 4 MiB of entries and 6 MiB of the rest.
/// Pages are allocated when they are first used. A series that is not looked up a second time takes
/// none.
pub struct LookupCache {
    family: Family,
    /// The family's count of removals.
    removals: &'static AtomicU64,
    /// Made when there is something to remember.
    pub(crate) table: OnceLock<Table>,
    /// Whether a thread makes the table, or made it, or found no memory for it. No other thread sets
    /// the table, so none ever waits. A child that was forked before it was set has no table.
    is_claimed: AtomicBool,
}

impl LookupCache {
    /// A cache of a family, which remembers nothing yet.
    pub fn of(family: Family) -> Self {
        let removals = family.region.family_word(family.id, FAMILY_REMOVALS);
        Self { family, removals, table: OnceLock::new(), is_claimed: AtomicBool::new(false) }
    }

    /// The cells of the series that a key stands for, or a [`Miss`], which finds them.
    ///
    /// Cost: one or two cache lines, which are prefetched together, and this thread's guard.
    // Always: docs/explanations/adds.md, "Whole words".
    #[inline(always)]
    pub fn get(&self, key: Key) -> Result<SeriesGuard, Miss<'_>> {
        let region = self.family.region;
        let place = self.table().and_then(|table| {
            let parts = table.parts(&key);
            Some((parts, table.place(table.first(&parts), parts.number)?))
        });
        // They come while the guard is announced.
        if let Some((_, place)) = place {
            prefetch(&place.entry[VERSION]);
            prefetch(&place.slot[CELLS]);
        }
        let guard = region.memory.enter();
        let when = self.when(&guard);
        let found = place.and_then(|(parts, place)| place.read_slot(&parts));
        match found.filter(|found| found.when == when).and_then(|found| self.cells(found)) {
            Some(cells) => Ok(SeriesGuard { cells, guard }),
            None => self.search(key, guard, when),
        }
    }

    /// Whether it can hold all series that the family has. If it cannot, a look-up often misses, and
    /// then takes longer than without the cache.
    #[inline]
    pub fn has_room_for_all(&self) -> bool {
        let series = self.family.region.family_word(self.family.id, FAMILY_SERIES);
        series.load(Relaxed) <= MOST
    }

    #[inline]
    fn table(&self) -> Option<&Table> {
        self.table.get()
    }

    /// The table, made if there is none yet. No thread waits for one that makes it.
    pub(crate) fn table_for(&self, combinations: u32) -> Option<&Table> {
        if self.is_claimed.load(Relaxed) || self.is_claimed.swap(true, Relaxed) {
            return self.table();
        }
        let region = self.family.region;
        let limit = region.family_word(self.family.id, FAMILY_LIMIT).load(Relaxed);
        let most = limit.min(region.memory.sections.series_max());
        let _ = self.table.set(Table::new(most, combinations)?);
        self.table()
    }

    /// Looks in the other entries, and at the record where one is out of date.
    #[cold]
    #[inline(never)]
    fn search(&self, key: Key, guard: Guard, when: u64) -> Result<SeriesGuard, Miss<'_>> {
        if let Some(table) = self.table() {
            let parts = table.parts(&key);
            let places = table.block(&parts).filter_map(|n| table.place(n, parts.number));
            for place in places {
                let Some(mut found) = place.read_slot(&parts) else { continue };
                if found.is_old(when) {
                    let Some(created) = place.creation(found) else { continue };
                    found.cells &= !MARKED;
                    if !self.is_still_there(&guard, found, created) {
                        break;
                    }
                    self.write(table, place, &parts, found.id, when);
                }
                let Some(cells) = self.cells(found) else { break };
                return Ok(SeriesGuard { cells, guard });
            }
        }
        Err(Miss { cache: self, key, guard, when })
    }

    /// The cells that a slot names: where they lie was looked at when it was written.
    #[inline]
    fn cells(&self, found: CachedSlot) -> Option<Cells> {
        let Family { region, head, .. } = self.family;
        let run = CellRun::unpack(found.cells)?;
        let words = region.memory.map.words(run.at, run.count)?;
        Some(Cells::new(words, Copies::of(region.series(found.id), run, head.combine)))
    }

    /// How many series went, and which sweep it is: read under a guard.
    #[inline]
    fn when(&self, guard: &Guard) -> u64 {
        let sweep = guard.sweep & ((1 << SWEEP_BITS) - 1);
        self.removals.load(Acquire) << SWEEP_BITS | sweep
    }

    /// Whether a record is still that of the slot's series. If so, the record is marked as looked
    /// up.
    fn is_still_there(&self, guard: &Guard, found: CachedSlot, created: u64) -> bool {
        let word = |at| self.family.region.series(found.id).word(at);
        let head = word(SERIES_HEAD).load(Acquire);
        record::state(head) == PUBLISHED
            && Head::unpack(head).family == self.family.id
            && word(SERIES_CREATED).load(Relaxed) == created
            && word(SERIES_CELLS).load(Relaxed) == found.cells
            && self.family.look_up(guard, found.id).is_ok()
    }

    /// Remembers a series that was just looked up, under the same guard.
    fn remember(&self, key: &Key, id: u32, when: u64) {
        let Some(table) = self.table_for(key.combinations) else { return };
        let series = self.family.region.family_word(self.family.id, FAMILY_SERIES);
        table.grow(series.load(Relaxed));
        let parts = table.parts(key);
        let places = || table.block(&parts).filter_map(|n| table.place(n, parts.number));
        let own = places().find(|place| parts.is_in(place.entry));
        // An entry that was of use since the last sweep stays: where there are more
        // series than room, they would only drive each other out.
        let place = own.or_else(|| places().find(|place| is_free_since(place.entry, when)));
        if let Some(place) = place {
            self.write(table, place, &parts, id, when);
        }
    }

    /// Writes the slot of a series that was looked up, unless a thread is removing it. The count in
    /// `when` was read before.
    fn write(&self, table: &Table, place: Place, parts: &Parts, id: u32, when: u64) {
        let Place { n, entry, slot, created } = place;
        let word = |at| self.family.region.series(id).word(at).load(Relaxed);
        let head = self.family.region.series(id).word(SERIES_HEAD).load(Acquire);
        let Head { removing, hidden, .. } = Head::unpack(head);
        if record::state(head) != PUBLISHED || removing || hidden {
            return;
        }
        let cells = word(SERIES_CELLS);
        let run = CellRun::unpack(cells);
        if run.is_none_or(|run| !self.family.region.memory.is_in_its_part(run)) {
            return;
        }
        let version = entry[VERSION].load(Acquire);
        let is_its_own = parts.is_in(entry);
        if version % 2 == 1
            || entry[VERSION].compare_exchange(version, version + 1, Acquire, Relaxed).is_err()
        {
            return;
        }
        fence(Release);
        if version == 0 {
            table.taken.fetch_add(1, Relaxed);
        }
        if version == 0 || !is_its_own {
            for (to, word) in entry[KEY..].iter().zip(parts.words) {
                to.store(word, Relaxed);
            }
            entry[WITHIN + ID].store(u64::from(parts.tag), Relaxed);
            table.row(n).for_each(|other| other.slot[CELLS].store(0, Relaxed));
        } else if entry[WHEN].load(Relaxed) != when {
            let others = table.row(n).map(|other| &other.slot[CELLS]);
            others.filter(|cells| cells.load(Relaxed) != 0).for_each(|cells| {
                cells.fetch_or(MARKED, Relaxed);
            });
        }
        entry[WHEN].store(when, Relaxed);
        slot[CELLS].store(cells, Relaxed);
        slot[ID].store(u64::from(id) << 32 | u64::from(parts.tag), Relaxed);
        created.store(word(SERIES_CREATED), Relaxed);
        entry[VERSION].store(version + 2, Release);
    }
}

impl fmt::Debug for LookupCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LookupCache").field("family", &self.family.id).finish_non_exhaustive()
    }
}

/// A key that is not in the cache, with the guard under which to look for its series.
#[derive(Debug)]
pub struct Miss<'a> {
    cache: &'a LookupCache,
    key: Key,
    guard: Guard,
    when: u64,
}

impl Miss<'_> {
    /// As [`Family::series`], by the label text that the key stands for, which is
    /// remembered if its series was there.
    ///
    /// # Errors
    ///
    /// As [`Family::series`].
    pub fn get_or_insert(self, text: &[u8]) -> Result<SeriesGuard, Overflow> {
        let Self { cache, key, guard, when } = self;
        let (found, cells) = cache.family.get_or_insert(&guard, text)?;
        if let Some(id) = found {
            cache.remember(&key, id, when);
        }
        Ok(SeriesGuard { cells, guard })
    }
}

/// Whether an entry is empty, or was of use last before the sweep in `when`.
fn is_free_since(entry: &Entry, when: u64) -> bool {
    entry[VERSION].load(Relaxed) == 0
        || (entry[WHEN].load(Relaxed) ^ when) << (64 - SWEEP_BITS) != 0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::lookup::register::FamilySpec;
    use crate::testing::family;

    #[test]
    fn a_child_that_was_forked_while_a_thread_made_the_table_waits_for_nobody() {
        let (region, family) = family(FamilySpec::default());
        let cache = LookupCache::of(family);
        cache.is_claimed.store(true, Relaxed);
        for _ in 0..4 {
            let found = cache.get(Key::new(0, 1, 0, [1, 0, 0]));
            let series = found.unwrap_or_else(|miss| miss.get_or_insert(b"a").unwrap());
            series.at(0).add(1);
        }
        assert!(cache.table().is_none());
        let snapshot = region.snapshot();
        let values = snapshot.series(&snapshot.families()[0]).map(|series| series.values[0]);
        assert!(values.eq([4]));
    }
}
