//! Series records: what their words say, and their way from being taken to being
//! free again.
//!
//! ```text
//!   free ──take──▶ building ──publish──▶ public ──remove──▶ removed
//!    ▲                │                                        │ unlink
//!    │                ▼ discard                                ▼
//!    └────────────  clearing  ◀──── out of sight ──────── unlinked
//! ```
//!
//! A process that builds or clears a record owns it and is named in it, by slot and the slot's
//! generation; so records that a dead process owned are found and taken over (`sweep.rs`). Every
//! other step is one compare-and-swap of the head, which any process may do.
//!
//! A record names what it owns before anything else can happen, and stops naming it before it is
//! freed: a process that is killed in between leaks that one run of text or cells, and nothing is
//! ever freed twice. The record itself is not
//! lost: one that is free and yet taken is freed by a sweep.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::cells::Storage;
use crate::layout::*;
use crate::primitive::AtomicU64;
use crate::region::Region;
use crate::source::{self, Source};

/// What a record is, in the low eight bits of its head; that of a free one is 0.
pub(crate) const FREE: u64 = 0;
pub(crate) const BUILDING: u64 = 1;
pub(crate) const PUBLISHED: u64 = 2;
pub(crate) const REMOVED: u64 = 3;
pub(crate) const UNLINKED: u64 = 4;
pub(crate) const CLEARING: u64 = 5;

/// The state in a head.
pub(crate) fn state(head: u64) -> u64 {
    head & 0xFF
}

/// The head of a series that was published, unpacked from
/// `state:8 | lasting:1 | hidden:1 | going:1 | 0:5 | looked_up:16 | family:32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// It stays as long as its family.
    pub(crate) lasting: bool,
    /// It is left out of snapshots until its value changes.
    pub(crate) hidden: bool,
    /// Somebody was about to remove it; from then on it is not remembered in memos.
    pub(crate) going: bool,
    /// The low bits of the number of the sweep during which it was last looked up.
    pub(crate) looked_up: u16,
    pub(crate) family: u32,
}

/// The bit of a head that says `hidden`.
pub(crate) const HIDDEN: u64 = 1 << 9;

impl Head {
    pub(crate) fn pack(self, state: u64) -> u64 {
        state
            | u64::from(self.lasting) << 8
            | if self.hidden { HIDDEN } else { 0 }
            | u64::from(self.going) << 10
            | u64::from(self.looked_up) << 16
            | u64::from(self.family) << 32
    }

    pub(crate) fn unpack(head: u64) -> Self {
        Self {
            lasting: head >> 8 & 1 == 1,
            hidden: head & HIDDEN != 0,
            going: head >> 10 & 1 == 1,
            looked_up: (head >> 16) as u16,
            family: (head >> 32) as u32,
        }
    }
}

/// The head of a record that somebody has alone:
/// `state:8 | slot:9 | generation:15 | family:32`.
fn owned_head(state: u64, slot: u64, generation: u64, family: u32) -> u64 {
    state | slot << 8 | generation << 17 | u64::from(family) << 32
}

/// Bits of a slot's generation that a head has room for.
const GENERATION: u64 = (1 << 15) - 1;

/// Where a series' cells lie: `offset:40 | storage:8 | count:16`. The offset is
/// that of the first cell, of the first copy where there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellRun {
    pub(crate) at: u64,
    pub(crate) storage: Storage,
    pub(crate) count: u64,
}

impl CellRun {
    pub(crate) fn pack(self) -> u64 {
        self.at << 24 | (self.storage as u64) << 16 | self.count
    }

    #[inline]
    pub(crate) fn unpack(word: u64) -> Option<Self> {
        let storage = Storage::from_u8((word >> 16) as u8)?;
        Some(Self { at: word >> 24, storage, count: word & 0xFFFF })
    }

    /// Granules that it takes of its pool.
    pub(crate) fn granules(self) -> u64 {
        match self.storage {
            Storage::Stripes => STRIPES * stripe_len(self.count) / WORD,
            Storage::Single | Storage::Striped | Storage::Owned => self.count,
        }
    }
}

/// How many copies a striped series has that found no room in the planes.
pub(crate) const STRIPES: u64 = 4;

/// How far these lie from each other: no two share a cache line.
pub(crate) fn stripe_len(cells: u64) -> u64 {
    (cells * WORD).next_multiple_of(LINE)
}

impl Region {
    #[inline]
    pub(crate) fn series_word(&self, id: u32, at: u64) -> &'static AtomicU64 {
        let id = u64::from(id).min(self.s.series_max() - 1);
        self.mark(self.s.records.at + id * RECORD_LEN + at)
    }

    /// A free record for a series of a family, in the hands of this process.
    pub(crate) fn take_record(&self, family: u32) -> Option<u32> {
        let building = self.own_head(BUILDING, family);
        loop {
            let id = (self.take(&self.s.records, 1)? / RECORD_LEN) as u32;
            // The bit says where to look; whose the record is, its head decides.
            let head = self.series_word(id, SERIES_HEAD);
            if head.compare_exchange(FREE, building, AcqRel, Relaxed).is_ok() {
                return Some(id);
            }
        }
    }

    /// The head of a record that this process has alone.
    pub(crate) fn own_head(&self, state: u64, family: u32) -> u64 {
        let slot = self.own_slot();
        owned_head(state, slot, self.generation(slot), family)
    }

    /// Whether the process that owns a record is dead.
    pub(crate) fn is_abandoned(&self, head: u64) -> bool {
        self.has_ended(head >> 8 & 0x1FF, head >> 17 & GENERATION)
    }

    /// Whether the process is dead that had a slot in some generation.
    pub(crate) fn has_ended(&self, slot: u64, generation: u64) -> bool {
        // Of processes without a slot nobody can tell.
        slot < SLOT_COUNT && (generation != self.generation(slot) || !self.lives(slot))
    }

    pub(crate) fn generation(&self, slot: u64) -> u64 {
        if slot >= SLOT_COUNT {
            return 0;
        }
        self.mark(SLOTS + slot * SLOT_LEN + SLOT_GENERATION).load(Acquire) & GENERATION
    }

    /// Frees a record that this process has alone, and all that it names.
    pub(crate) fn clear(&self, id: u32) {
        let word = |at| self.series_word(id, at);
        // What is swapped for 0 is this call's to give back.
        self.drop_more(id);
        let run = CellRun::unpack(word(SERIES_CELLS).load(Relaxed));
        if let Some(run) = run.filter(|&run| self.is_in_its_pool(run)) {
            self.for_each_word(run, |cell| cell.store(0, Relaxed));
            word(SERIES_CELLS).store(0, Release);
            self.drop_cells(run);
        }
        let text = Span::unpack(word(SERIES_TEXT).swap(0, AcqRel));
        self.drop_text(text);
        let pins = word(SERIES_PINS).swap(0, AcqRel);
        self.drop_pins(pins);
        // The time of creation stays: the next one is later, so that a reader can
        // distinguish the two.
        for at in [SERIES_LINK, SERIES_MORE, SERIES_SINCE] {
            word(at).store(0, Relaxed);
        }
        // Who takes the bit in between finds a head that is not free, and leaves both
        // to the next sweep.
        self.give_back(&self.s.records, u64::from(id) * RECORD_LEN, 1);
        word(SERIES_HEAD).store(FREE, Release);
    }

    /// Takes cells for a series: where its family wants them, or where there is
    /// room.
    pub(crate) fn take_cells(&self, storage: Storage, count: u64) -> Option<CellRun> {
        let others: &[Storage] = match storage {
            // Where the planes are full, four copies keep most threads apart; and
            // one atomic cell counts as well.
            Storage::Striped => &[Storage::Stripes, Storage::Single],
            Storage::Owned | Storage::Stripes => &[Storage::Single],
            Storage::Single => &[],
        };
        [storage].iter().chain(others).find_map(|&storage| {
            let run = CellRun { at: 0, storage, count };
            let pool = self.pool_of(storage);
            let at = pool.at + self.take(&pool, run.granules())?;
            Some(CellRun { at, ..run })
        })
    }

    pub(crate) fn drop_cells(&self, run: CellRun) {
        let pool = self.pool_of(run.storage);
        if let Some(at) = run.at.checked_sub(pool.at) {
            self.give_back(&pool, at, run.granules());
        }
    }

    fn pool_of(&self, storage: Storage) -> Pool {
        match storage {
            Storage::Single | Storage::Stripes => self.s.singles,
            Storage::Striped => self.s.striped,
            Storage::Owned => self.s.owned,
        }
    }

    /// Whether a run lies where cells of its storage do. Nothing else may be added
    /// to, whatever a damaged record says; and other copies are found from the
    /// first one, so there it must lie.
    #[inline]
    pub(crate) fn is_in_its_pool(&self, run: CellRun) -> bool {
        let pool = self.pool_of(run.storage);
        let end = run.at.saturating_add(run.granules() * WORD);
        run.count > 0 && pool.at <= run.at && end <= pool.at + pool.len
    }

    /// Calls `each` with every word of every copy of a series' cells, as far as
    /// anybody ever had it.
    pub(crate) fn for_each_word(&self, run: CellRun, mut each: impl FnMut(&AtomicU64)) {
        let mut copy = |delta: u64| {
            let words = run.at.checked_add(delta).and_then(|at| self.map.words(at, run.count));
            words.into_iter().flatten().for_each(&mut each);
        };
        match run.storage {
            Storage::Single => copy(0),
            Storage::Stripes => (0..STRIPES).for_each(|n| copy(n * stripe_len(run.count))),
            Storage::Striped => source::planes(self).for_each(copy),
            Storage::Owned => self.blocks().for_each(copy),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn heads_and_runs_survive_packing() {
        for n in 0..3 {
            let [lasting, hidden, going] = [0, 1, 2].map(|bit| bit == n);
            let head = Head { lasting, hidden, going, looked_up: 0xABCD, family: u32::MAX - 1 };
            let packed = head.pack(PUBLISHED);
            assert_eq!((state(packed), Head::unpack(packed)), (PUBLISHED, head));
        }
        for storage in [Storage::Single, Storage::Striped, Storage::Owned, Storage::Stripes] {
            let run = CellRun { at: MAX_LEN - 8, storage, count: 65_535 };
            assert_eq!(CellRun::unpack(run.pack()), Some(run));
        }
        assert_eq!(CellRun::unpack(9 << 16), None);
    }
}
