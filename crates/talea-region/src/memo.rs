//! Memos: what a process remembers of its look-ups.
//!
//! A look-up by label text goes through the index, a record and the text: three
//! places far from each other. A memo is a table of this process that leads from a
//! key straight to the cells. What the key says is up to who makes it; one key must
//! always stand for the same label text.
//!
//! ```text
//!   entry, a cache line:
//!   version | id:32 numbers:32 | key, three words | when | cells | creation
//!   when:   removals:42 | sweep:22
//! ```
//!
//! Implementation details. An entry says that its series was public, and nobody was
//! about to remove it, when its family had counted so many *removals*, in such a
//! sweep. Why it may be believed while both are the same:
//!
//! - Whoever removes a series first marks its head as *going*, then counts a removal,
//!   then removes it, each with release. The mark stays as long as the series does.
//! - Whoever writes an entry enters, reads the count, and then looks at the head; if
//!   the series is going, there is no entry. So the removal of a series is counted
//!   after the count in its entries: had the writer read it, it would have seen the
//!   mark that came before.
//! - Whoever uses an entry enters, and then reads the count. Is it that of the entry,
//!   the series was not out of everybody's sight when the guard was announced: a
//!   removal whose record may be used again was counted before its stamp, and the
//!   fences of `guard.rs` show such a count to everybody who enters after it. From
//!   then on the guard sees to it. And a look-up that begins after a removal has
//!   ended reads that count, so it finds what comes after.
//! - The sweep is compared as well: the head says that the series was looked up during
//!   that sweep, since the writer saw to that. So a look-up by an entry is as good
//!   for `sweep.rs` as one that writes to the head.
//!
//! Where only the count or the sweep is another, the record tells: it is the same
//! series if it is public and was created at the same time, which no two lives of a
//! record have in common. Then the entry is renewed.
//!
//! Entries are written under a version, which is odd meanwhile; who reads one takes
//! it only if the version was even and the same before and after. A writer that finds
//! it odd writes nothing, so nobody waits. The child of a process that forked while a
//! thread was writing never uses that entry. All else is as good there as in its
//! parent: entries name places in the region, and the guard is the child's own.

use std::fmt;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::cells::Cells;
use crate::error::Overflow;
use crate::families::Family;
use crate::guard::Guard;
use crate::hash::fold;
use crate::layout::*;
use crate::mapping::{self, LINE_WORDS};
use crate::primitive::{AtomicU64, fence, prefetch};
use crate::record::{self, CellRun, Head, PUBLISHED};
use crate::series::Looked;

/// Words of an entry.
const ENTRY: usize = LINE_WORDS;
/// Odd while somebody writes; 0 where nobody ever did.
const VERSION: usize = 0;
/// `id:32 | numbers:32`, the latter from the key.
const ID: usize = VERSION + 1;
const KEY: usize = ID + 1;
const WHEN: usize = KEY + Key::WORDS;
const CELLS: usize = WHEN + 1;
const CREATED: usize = CELLS + 1;
const _: () = assert!(CREATED + 1 == ENTRY);

/// A key is in one of so many entries, which lie in one block.
const BLOCK: u64 = 4;
/// The most entries: 4 MiB.
const MOST: u64 = if cfg!(loom) { BLOCK } else { 1 << 16 };
/// Entries that there are at first: 4 KiB.
const FIRST: u64 = if cfg!(loom) { BLOCK } else { 64 };

const SWEEP_BITS: u32 = 22;

/// What a series is remembered by: 28 bytes, in which each label text has to be
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    numbers: u32,
    words: [u64; Self::WORDS],
}

impl Key {
    /// Words that a key has beside its numbers.
    pub const WORDS: usize = 3;

    /// The key of these bits.
    #[inline]
    pub fn new(numbers: u32, words: [u64; Self::WORDS]) -> Self {
        Self { numbers, words }
    }

    #[inline]
    fn hash(&self) -> u64 {
        const K: [u64; 3] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93, 0xA076_1D64_78BD_642F];
        let [a, b, c] = self.words;
        fold(a ^ K[0], b ^ K[1]) ^ fold(c ^ K[2], u64::from(self.numbers) ^ K[0])
    }

    /// Whether an entry is about this key; of one that is being written, anything.
    #[inline]
    fn is_in(&self, entry: &Entry) -> bool {
        let word = |n: usize| entry[KEY + n].load(Relaxed) ^ self.words[n];
        let numbers = entry[ID].load(Relaxed) as u32 ^ self.numbers;
        // One branch for all of it: which word differs is not foreseeable.
        word(0) | word(1) | word(2) | u64::from(numbers) == 0
    }
}

type Entry = [AtomicU64; ENTRY];

/// What an entry says of its series.
#[derive(Clone, Copy)]
struct Remembered {
    id: u32,
    when: u64,
    cells: u64,
    created: u64,
}

/// What this process remembers of look-ups in one family. It is never given back.
///
/// Memory: two to four entries of 64 bytes for each series that the family has, at
/// most 4 MiB, of which pages are there once they are used; none for series that
/// nobody looked up a second time.
pub struct Memo {
    family: Family,
    /// The family's count of removals.
    removals: &'static AtomicU64,
    /// A power of two of them.
    pub(crate) entries: &'static [Entry],
    /// How many entries are in use, less 1; what is the size of all but grows.
    last: AtomicU64,
}

impl Memo {
    /// A memo of a family, which remembers nothing yet; `None` where there is no memory
    /// for it.
    pub fn of(family: Family) -> Option<Self> {
        let limit = family.region.family_word(family.id, FAMILY_LIMIT).load(Relaxed);
        let entries = entries_for(limit.min(family.region.s.series_max()));
        Some(Self {
            family,
            removals: family.region.family_word(family.id, FAMILY_REMOVALS),
            entries: mapping::own_lines(entries)?,
            last: AtomicU64::new(FIRST.min(entries) - 1),
        })
    }

    /// The cells of the series that a key stands for, if that is remembered; else
    /// what finds them.
    ///
    /// Cost: a cache line of the memo, and this thread's guard.
    #[inline]
    pub fn find(&self, key: Key) -> Result<Looked, Unknown<'_>> {
        let region = self.family.region;
        let hash = key.hash();
        let entry = self.entries.get((hash & self.last.load(Relaxed)) as usize);
        // It comes while the guard is announced.
        if let Some(entry) = entry {
            prefetch(&entry[VERSION]);
        }
        let guard = region.enter();
        let when = self.when(&guard);
        let found = entry.and_then(|entry| recall(entry, &key)).filter(|found| found.when == when);
        match found.and_then(|found| self.cells(found)) {
            Some(cells) => Ok(Looked { cells, guard }),
            None => self.search(key, hash, guard, when),
        }
    }

    /// Looks in the other entries, and at the record where one is out of date.
    #[inline(never)]
    fn search(&self, key: Key, hash: u64, guard: Guard, when: u64) -> Result<Looked, Unknown<'_>> {
        for entry in self.block(hash) {
            let Some(found) = recall(entry, &key) else { continue };
            if found.when != when && !self.is_still_there(&guard, found) {
                break;
            }
            let Some(cells) = self.cells(found) else { break };
            if found.when != when {
                self.write(entry, &key, found.id, when);
            }
            return Ok(Looked { cells, guard });
        }
        Err(Unknown { memo: self, key, hash, guard, when })
    }

    #[inline]
    fn cells(&self, found: Remembered) -> Option<Cells> {
        let run = CellRun::unpack(found.cells)?;
        self.family.region.cells(found.id, run, self.family.head.combine)
    }

    /// How many series went, and which sweep it is: read under a guard.
    #[inline]
    fn when(&self, guard: &Guard) -> u64 {
        let sweep = guard.sweep() & ((1 << SWEEP_BITS) - 1);
        self.removals.load(Acquire) << SWEEP_BITS | sweep
    }

    /// Whether a record is still that of the series that an entry is about; if so, it
    /// is thereby looked up.
    fn is_still_there(&self, guard: &Guard, found: Remembered) -> bool {
        let word = |at| self.family.region.series_word(found.id, at);
        let head = word(SERIES_HEAD).load(Acquire);
        record::state(head) == PUBLISHED
            && Head::unpack(head).family == self.family.id
            && word(SERIES_CREATED).load(Relaxed) == found.created
            && word(SERIES_CELLS).load(Relaxed) == found.cells
            && self.family.look_up(guard, found.id).is_ok()
    }

    /// Remembers a series that was just looked up, under the same guard.
    fn remember(&self, key: &Key, hash: u64, id: u32, when: u64) {
        self.grow();
        let is_of_another_sweep =
            |entry: &Entry| (entry[WHEN].load(Relaxed) ^ when) << (64 - SWEEP_BITS) != 0;
        // An entry that was of use since the last sweep stays: where there are more
        // series than room, they would only drive each other out.
        let mut free = |entry: &&Entry| {
            key.is_in(entry) || entry[VERSION].load(Relaxed) == 0 || is_of_another_sweep(entry)
        };
        if let Some(entry) = self.block(hash).find(&mut free) {
            self.write(entry, key, id, when);
        }
    }

    /// Writes an entry about a series that is looked up, unless somebody is about to
    /// remove it. The count in `when` was read before.
    fn write(&self, entry: &Entry, key: &Key, id: u32, when: u64) {
        let word = |at| self.family.region.series_word(id, at).load(Relaxed);
        let head = self.family.region.series_word(id, SERIES_HEAD).load(Acquire);
        if record::state(head) != PUBLISHED || Head::unpack(head).going {
            return;
        }
        let version = entry[VERSION].load(Relaxed);
        if version % 2 == 1
            || entry[VERSION].compare_exchange(version, version + 1, Acquire, Relaxed).is_err()
        {
            return;
        }
        fence(Release);
        entry[ID].store(u64::from(id) << 32 | u64::from(key.numbers), Relaxed);
        for (to, word) in entry[KEY..].iter().zip(key.words) {
            to.store(word, Relaxed);
        }
        entry[WHEN].store(when, Relaxed);
        entry[CELLS].store(word(SERIES_CELLS), Relaxed);
        entry[CREATED].store(word(SERIES_CREATED), Relaxed);
        entry[VERSION].store(version + 2, Release);
    }

    /// Takes more entries into use where the family has more series. Those that lie
    /// elsewhere then are found anew.
    fn grow(&self) {
        let series = self.family.region.family_word(self.family.id, FAMILY_SERIES).load(Relaxed);
        let room = self.entries.len() as u64;
        let last = entries_for(series).min(room) - 1;
        if last > self.last.load(Relaxed) {
            self.last.fetch_max(last, Relaxed);
        }
    }

    /// The entries that a key can be in, the first one first.
    fn block(&self, hash: u64) -> impl Iterator<Item = &'static Entry> {
        let first = hash & self.last.load(Relaxed);
        let entries = self.entries;
        (0..BLOCK).filter_map(move |n| entries.get((first ^ n) as usize))
    }
}

impl fmt::Debug for Memo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memo").field("family", &self.family.id).finish_non_exhaustive()
    }
}

/// What is not remembered: the guard under which to look for it.
#[derive(Debug)]
pub struct Unknown<'a> {
    memo: &'a Memo,
    key: Key,
    hash: u64,
    guard: Guard,
    when: u64,
}

impl Unknown<'_> {
    /// As [`Family::series`], by the label text that the key stands for, which is
    /// remembered if its series was there.
    ///
    /// # Errors
    ///
    /// As [`Family::series`].
    pub fn series(self, text: &[u8]) -> Result<Looked, Overflow> {
        let Self { memo, key, hash, guard, when } = self;
        let (found, cells) = memo.family.found_or_made(&guard, text)?;
        if let Some(id) = found {
            memo.remember(&key, hash, id, when);
        }
        Ok(Looked { cells, guard })
    }
}

/// What an entry says, if it is about a key and nobody is writing to it.
#[inline]
fn recall(entry: &Entry, key: &Key) -> Option<Remembered> {
    let version = entry[VERSION].load(Acquire);
    let word = |n: usize| entry[n].load(Relaxed);
    let found = Remembered {
        id: (word(ID) >> 32) as u32,
        when: word(WHEN),
        cells: word(CELLS),
        created: word(CREATED),
    };
    let is_it = key.is_in(entry);
    fence(Acquire);
    let whole = version % 2 == 0 && version != 0 && entry[VERSION].load(Relaxed) == version;
    (is_it && whole).then_some(found)
}

/// So many that most keys find their first one free.
fn entries_for(series: u64) -> u64 {
    series.saturating_mul(2).clamp(BLOCK.max(FIRST), MOST).next_power_of_two()
}
