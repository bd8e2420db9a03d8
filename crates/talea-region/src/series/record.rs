//! Series records: their words and their states, from taken to free again.
//!
//! ```text
//!   free ──take──▶ building ──publish──▶ public ──remove──▶ removed
//!    ▲                │                                        │ unlink
//!    │                ▼ discard                                ▼
//!    └────────────  clearing  ◀──── unreachable ───────── unlinked
//! ```
//!
//! A process that builds or clears a record owns it and is named in it, by slot and the slot's
//! generation; so records that a dead process owned are found and taken over (`reclaim/sweep.rs`). Every
//! other step is one compare-and-swap of the head, which any process may do.
//!
//! A record names what it owns before anything else can happen, and stops naming it before it is
//! freed: a process that is killed in between leaks that one run of text or cells, and nothing is
//! ever freed twice. The record itself is not
//! lost: one that is free and yet taken is freed by a sweep.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use crate::layout::*;
use crate::memory::runs::CellRun;
use crate::memory::slots::GENERATION;
use crate::primitive::Word;
use crate::region::Region;

/// The states of a record, in the low three bits of its head. The whole head of a free record is 0.
pub(crate) const FREE: u64 = 0;
pub(crate) const BUILDING: u64 = 1;
pub(crate) const PUBLISHED: u64 = 2;
pub(crate) const REMOVED: u64 = 3;
pub(crate) const UNLINKED: u64 = 4;
pub(crate) const CLEARING: u64 = 5;

pub(crate) fn state(head: u64) -> u64 {
    head & 0x07
}

/// The head of a series that was published, unpacked from
/// `state:3 | turn:5 | permanent:1 | hidden:1 | removing:1 | looked_up:21 | family:32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// It stays as long as its family.
    pub(crate) permanent: bool,
    /// It is left out of snapshots until its value changes.
    pub(crate) hidden: bool,
    /// A thread was about to remove it; from then on it is not remembered in lookup caches.
    pub(crate) removing: bool,
    /// Changed by a process that keeps the series while another is about to remove it.
    pub(crate) turn: u8,
    /// When it was last looked up.
    pub(crate) looked_up: SweepStamp,
    pub(crate) family: u32,
}

/// The low 21 bits of the number of a sweep: sweeps of four years, as they begin at least a minute apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SweepStamp(u32);

/// Where a head has its stamp.
const SWEEP_SHIFT: u32 = 11;
const SWEEP_STAMPS: u32 = 1 << 21;

impl SweepStamp {
    /// A thread whose sweep is older than a stamp, because another one began meanwhile, is fewer sweeps
    /// behind.
    const AHEAD: u32 = 1 << 10;

    #[inline]
    pub(crate) fn of(sweep: u64) -> Self {
        Self(sweep as u32 % SWEEP_STAMPS)
    }

    /// How many sweeps began between this one and a sweep; 0 if this one is the later.
    ///
    /// Four years of sweeps have different stamps. Sweeps move a stamp forward that is older than half of
    /// that ([`moved_forward`](Self::moved_forward)), so no age comes to the end of them.
    pub(crate) fn sweeps_until(self, sweep: u64) -> u64 {
        let sweeps = Self::of(sweep).0.wrapping_sub(self.0) % SWEEP_STAMPS;
        if sweeps < SWEEP_STAMPS - Self::AHEAD { u64::from(sweeps) } else { 0 }
    }

    /// The stamp that takes the place of this one, if it is two years old: it is one year old.
    pub(crate) fn moved_forward(self, sweep: u64) -> Option<Self> {
        let is_old = self.sweeps_until(sweep) > u64::from(SWEEP_STAMPS / 2);
        is_old.then(|| Self::of(sweep.wrapping_sub(u64::from(SWEEP_STAMPS / 4))))
    }
}

/// The bits `hidden` and `removing` of a head.
pub(crate) const HIDDEN: u64 = 1 << 9;
pub(crate) const REMOVING: u64 = 1 << 10;
const TURN: u64 = 3;
const TURNS: u64 = 1 << 5;

impl Head {
    pub(crate) fn pack(self, state: u64) -> u64 {
        state
            | u64::from(self.permanent) << 8
            | if self.hidden { HIDDEN } else { 0 }
            | if self.removing { REMOVING } else { 0 }
            | (u64::from(self.turn) % TURNS) << TURN
            | u64::from(self.looked_up.0) << SWEEP_SHIFT
            | u64::from(self.family) << 32
    }

    pub(crate) fn unpack(head: u64) -> Self {
        Self {
            permanent: head >> 8 & 1 == 1,
            hidden: head & HIDDEN != 0,
            removing: head & REMOVING != 0,
            turn: (head >> TURN & (TURNS - 1)) as u8,
            looked_up: SweepStamp::of(head >> SWEEP_SHIFT),
            family: (head >> 32) as u32,
        }
    }
}

/// The head of a record that one process owns: `state:8 | slot:11 | generation:13 | family:32`.
fn owned_head(state: u64, slot: u64, generation: u64, family: u32) -> u64 {
    debug_assert!(slot <= SLOT_COUNT && generation <= GENERATION, "{slot} {generation}");
    state | slot << 8 | generation << 19 | u64::from(family) << 32
}

/// A series of a region, by the number of its record.
#[derive(Clone, Copy)]
pub(crate) struct Series<'a> {
    pub(crate) region: &'a Region,
    pub(crate) id: u32,
}

impl Series<'_> {
    #[inline]
    pub(crate) fn word(self, at: u64) -> Word {
        let Sections { records, .. } = self.region.memory.sections;
        let id = u64::from(self.id).min(records.len / RECORD_LEN - 1);
        self.region.memory.word_at(records.at + id * RECORD_LEN + at)
    }

    /// The number of its family, which stands in the same place in every state.
    #[inline]
    pub(crate) fn family(self) -> u32 {
        Head::unpack(self.word(SERIES_HEAD).load(Acquire)).family
    }

    /// Where its cells lie; `None` if it has none, or is damaged and they cannot lie there.
    pub(crate) fn run(self) -> Option<CellRun> {
        let run = CellRun::unpack(self.word(SERIES_CELLS).load(Acquire))?;
        self.region.memory.is_in_its_part(run).then_some(run)
    }

    /// The number of a cell, given by its first copy, and the run that it is in.
    pub(crate) fn place_of(self, cell: Word) -> Option<(usize, CellRun)> {
        let run = CellRun::unpack(self.word(SERIES_CELLS).load(Acquire))?;
        let n = self.region.memory.offset_of(cell)?.checked_sub(run.at)? / WORD;
        Some((n as usize, run))
    }
}

impl Region {
    /// The series whose record has a number.
    #[inline]
    pub(crate) fn series(&self, id: u32) -> Series<'_> {
        Series { region: self, id }
    }

    /// A free record for a series of a family, in the hands of this process.
    pub(crate) fn take_record(&self, family: u32) -> Option<u32> {
        let building = self.own_head(BUILDING, family);
        loop {
            let id = (self.memory.take(&self.memory.sections.records, 1)? / RECORD_LEN) as u32;
            // The bit of the pool is a hint; the head decides which process owns the record.
            let head = self.series(id).word(SERIES_HEAD);
            if head.compare_exchange(FREE, building, AcqRel, Relaxed).is_ok() {
                // A sweep that found the bit before the head changed may have cleared the record.
                self.memory.note_taken(&self.memory.sections.records, u64::from(id));
                return Some(id);
            }
        }
    }

    /// The head of a record that this process has alone.
    pub(crate) fn own_head(&self, state: u64, family: u32) -> u64 {
        let slot = self.memory.own_slot();
        owned_head(state, slot, self.memory.generation(slot), family)
    }

    /// Whether the process that owns a record is dead.
    pub(crate) fn is_abandoned(&self, head: u64) -> bool {
        self.memory.has_ended(head >> 8 & 0x7FF, head >> 19 & GENERATION)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_head_survives_packing() {
        for n in 0..3 {
            let [permanent, hidden, removing] = [0, 1, 2].map(|bit| bit == n);
            let head = Head {
                permanent,
                hidden,
                removing,
                turn: 31,
                looked_up: SweepStamp::of(0x1A_BCDE),
                family: u32::MAX - 1,
            };
            let packed = head.pack(PUBLISHED);
            assert_eq!((state(packed), Head::unpack(packed)), (PUBLISHED, head));
        }
    }
}
