//! Family records: their contents, and the processes that use them.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::layout::*;
use crate::primitive::Word;
use crate::region::Region;
use crate::series::segment::MadeSegment;
use crate::source::Source;
use crate::values::{Combine, Number, Storage};

pub(crate) const BUILDING: u64 = 1;
pub(crate) const PUBLISHED: u64 = 2;
/// Defined otherwise by a later version of the service; readers leave it out.
pub(crate) const RETIRED: u64 = 3;
/// Ended by its name; readers leave it out, and once registered again it counts from 0.
pub(crate) const ENDED: u64 = 4;

/// A registered family. A plain number beside its region: copy it freely.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    pub(crate) region: &'static Region,
    pub(crate) id: u32,
    pub(crate) head: FamilyHead,
}

impl Family {
    /// Its number, which no other family of the region has.
    pub fn number(&self) -> u32 {
        self.id
    }

    /// Whether it was [ended](Region::end_families), and not registered since. Cost: a load.
    #[inline]
    pub fn is_ended(&self) -> bool {
        self.region.family_word(self.id, FAMILY_HEAD).load(Acquire) & 0xFF == ENDED
    }

    /// Takes back that this process uses the family, where registering it failed for
    /// another reason: its name can be defined otherwise then.
    pub fn give_up(&self) {
        let region = self.region;
        // A process without a slot cannot distinguish its own use from the use by others.
        if let slot @ 0..SLOT_COUNT = region.memory.own_slot() {
            let word = region.family_word(self.id, FAMILY_USERS + slot / 64 * WORD);
            word.fetch_and(!(1 << (slot % 64)), AcqRel);
        }
    }
}

/// Equal where they are the same family of the same region.
impl PartialEq for Family {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.region, other.region) && self.id == other.id
    }
}

/// The first word of a record, unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FamilyHead {
    pub(crate) kind: u8,
    pub(crate) storage: Storage,
    pub(crate) number: Number,
    pub(crate) combine: Combine,
    pub(crate) cells: u16,
    pub(crate) segments: u16,
}

impl FamilyHead {
    pub(crate) fn pack(self, state: u64) -> u64 {
        state
            | u64::from(self.kind) << 8
            | (self.storage as u64) << 16
            | (self.number as u64) << 24
            | (self.combine as u64) << 28
            | u64::from(self.cells) << 32
            | u64::from(self.segments) << 48
    }

    pub(crate) fn unpack(word: u64) -> Option<(u64, Self)> {
        let storage = Storage::from_u8((word >> 16) as u8)?;
        let number = Number::from_u64(word >> 24 & 0xF)?;
        let combine = Combine::from_u8((word >> 28 & 0xF) as u8)?;
        let (cells, segments) = ((word >> 32) as u16, (word >> 48) as u16);
        let head = Self { kind: (word >> 8) as u8, storage, number, combine, cells, segments };
        (cells > 0).then_some((word & 0xFF, head))
    }
}

impl Region {
    /// The state of a family and its head; `None` if it has no valid one.
    #[inline]
    pub(crate) fn family_head(&self, id: u32) -> Option<(u64, FamilyHead)> {
        FamilyHead::unpack(self.family_word(id, FAMILY_HEAD).load(Acquire))
    }

    /// The segment that each series of a family is made with.
    pub(crate) fn made_segment(&self, id: u32) -> MadeSegment {
        MadeSegment::unpack(self.family_word(id, FAMILY_MADE).load(Relaxed))
    }

    pub(crate) fn is_published(&self, id: u32) -> bool {
        matches!(self.family_head(id), Some((PUBLISHED, _)))
    }

    /// The public families whose names, with the minutes after which their series expire, are wanted.
    pub(crate) fn families_where(
        &self,
        mut wants: impl FnMut(&[u8], u32) -> bool,
    ) -> impl Iterator<Item = u32> {
        (0..self.memory.families_used() as u32).filter(move |&id| {
            let mut name = Vec::new();
            self.is_published(id) && {
                self.memory.read_text(self.family_span(id, FAMILY_NAME), &mut name);
                wants(&name, self.idling(id).sweeps)
            }
        })
    }

    /// Whether this process or another one uses a family.
    pub(crate) fn user(&self, id: u32) -> User {
        let own = self.memory.own_slot();
        if own < SLOT_COUNT && self.is_user(id, own) {
            return User::This;
        }
        let is_used = self.family_word(id, FAMILY_ALWAYS_USED).load(Acquire) != 0
            || (self.memory.slots_used())
                .any(|slot| self.is_user(id, slot) && self.memory.lives(slot));
        if is_used { User::Another } else { User::None }
    }

    /// Whether the process that had a slot last registered a family.
    fn is_user(&self, id: u32, slot: u64) -> bool {
        let users = self.family_word(id, FAMILY_USERS + slot / 64 * WORD).load(Acquire);
        users >> (slot % 64) & 1 == 1
    }

    /// Whether a living process registered it.
    pub(crate) fn is_in_use(&self, id: u32) -> bool {
        !matches!(self.user(id), User::None)
    }

    pub(crate) fn use_family(&self, id: u32) {
        match self.memory.own_slot() {
            SLOT_COUNT => self.family_word(id, FAMILY_ALWAYS_USED).store(1, Release),
            slot => {
                let word = self.family_word(id, FAMILY_USERS + slot / 64 * WORD);
                word.fetch_or(1 << (slot % 64), AcqRel);
            }
        }
    }

    /// Notes that a slot has a new owner, which uses the families of its parent, or none yet. The slot
    /// still has the time at which the one before started.
    pub(crate) fn inherit_families(&self, slot: u64, parent: Option<u64>) {
        let started = self.memory.slot_word_at(slot, SLOT_STARTED).load(Relaxed);
        for id in 0..self.memory.families_used() as u32 {
            let users = |slot: u64| self.family_word(id, FAMILY_USERS + slot / 64 * WORD);
            let bit = |slot: u64| 1_u64 << (slot % 64);
            let inherited = parent
                .filter(|&parent| parent < SLOT_COUNT)
                .is_some_and(|parent| users(parent).load(Acquire) & bit(parent) != 0);
            if users(slot).load(Acquire) & bit(slot) != 0 {
                self.family_word(id, FAMILY_LAST_USED).fetch_max(started, AcqRel);
            }
            if inherited {
                users(slot).fetch_or(bit(slot), AcqRel);
            } else {
                users(slot).fetch_and(!bit(slot), AcqRel);
            }
        }
    }

    pub(crate) fn idling(&self, family: u32) -> Idling {
        Idling::unpack(self.family_word(family, FAMILY_IDLE).load(Acquire))
    }

    pub(crate) fn family_word(&self, id: u32, at: u64) -> Word {
        let id = u64::from(id).min(self.memory.sections.family_max - 1);
        self.memory.word_at(self.memory.sections.families + id * FAMILY_LEN + at)
    }

    pub(crate) fn family_span(&self, id: u32, at: u64) -> Span {
        Span::unpack(self.family_word(id, at).load(Relaxed))
    }
}

pub(crate) enum User {
    This,
    Another,
    None,
}

/// The settings of a family for sweeps.
#[derive(Clone, Copy)]
pub(crate) struct Idling {
    /// Sweeps after which an idle series is removed; 0 for never.
    pub(crate) sweeps: u32,
    /// Whether the values say how much happened; a kept series whose value does not change is
    /// hidden then.
    pub(crate) accumulates: bool,
    /// Whether other definitions of its name stand beside it even while no process uses one of them.
    pub(crate) allows_others: bool,
}

impl Idling {
    pub(crate) fn pack(self) -> u64 {
        u64::from(self.sweeps)
            | u64::from(self.accumulates) << 32
            | u64::from(self.allows_others) << 33
    }

    pub(crate) fn unpack(word: u64) -> Self {
        Self {
            sweeps: word as u32,
            accumulates: word >> 32 & 1 == 1,
            allows_others: word >> 33 & 1 == 1,
        }
    }
}
