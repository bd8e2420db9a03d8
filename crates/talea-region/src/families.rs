//! Families: a name, what it means to those above, and how its cells are kept.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::cells::{Number, Storage};
use crate::error::FamilyError;
use crate::hash::hash;
use crate::index::Record;
use crate::layout::*;
use crate::region::{Region, unix_nanos};

/// The hash domain of family names; series use their family's number.
const NAMES: u64 = u64::MAX;

pub(crate) const BUILDING: u64 = 1;
pub(crate) const PUBLISHED: u64 = 2;

/// What a family is registered with.
#[derive(Clone, Copy, Debug)]
pub struct FamilySpec<'a> {
    /// The name that it is found by.
    pub name: &'a [u8],
    /// What the layers above keep with it; the region compares it and no more.
    pub definition: &'a [u8],
    /// A number for the layers above.
    pub kind: u8,
    /// How cells are stored.
    pub storage: Storage,
    /// What cells count in.
    pub number: Number,
    /// Cells of one series, 1 to 65,535.
    pub cells: u32,
    /// Series that it may have; further ones overflow.
    pub limit: u64,
}

/// A registered family. A plain number beside its region: copy it freely.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    pub(crate) region: &'static Region,
    pub(crate) id: u32,
    pub(crate) head: FamilyHead,
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
    pub(crate) cells: u32,
}

impl FamilyHead {
    fn pack(self, state: u64) -> u64 {
        state
            | u64::from(self.kind) << 8
            | (self.storage as u64) << 16
            | (self.number as u64) << 24
            | u64::from(self.cells) << 32
    }

    pub(crate) fn unpack(word: u64) -> Option<(u64, Self)> {
        let storage = match word >> 16 & 0xFF {
            0 => Storage::Single,
            1 => Storage::Striped,
            2 => Storage::Owned,
            _ => return None,
        };
        let number = match word >> 24 & 0xFF {
            0 => Number::Integer,
            1 => Number::Float,
            _ => return None,
        };
        let cells = (word >> 32) as u32;
        let head = Self { kind: (word >> 8) as u8, storage, number, cells };
        (1..=u32::from(u16::MAX)).contains(&cells).then_some((word & 0xFF, head))
    }
}

impl Region {
    /// Registers a family, or finds the one of the same name and definition.
    /// Any number of threads and processes may do so at once.
    ///
    /// # Errors
    ///
    /// The name is taken by another definition; the region is full; the sizes
    /// are out of range.
    pub fn family(&'static self, spec: FamilySpec<'_>) -> Result<Family, FamilyError> {
        let head = FamilyHead {
            kind: spec.kind,
            storage: spec.storage,
            number: spec.number,
            cells: spec.cells,
        };
        if spec.name.len().max(spec.definition.len()) as u64 > Span::MAX_LEN
            || !(1..=u32::from(u16::MAX)).contains(&spec.cells)
        {
            return Err(FamilyError::TooLong);
        }
        let hash = hash(self.seed, NAMES, spec.name);
        let is = |id| self.text_is(self.family_span(id, FAMILY_NAME), spec.name);
        let vacancy = match self.find(Record::Family, hash, is) {
            Ok(id) => return self.check(id, head, spec.definition),
            Err(vacancy) => vacancy,
        };
        let (id, spans) = self.build_family(head, &spec).ok_or(FamilyError::Full)?;
        match self.publish(vacancy, Record::Family, hash, id, is) {
            Some(winner) if winner == id => {
                self.family_word(id, FAMILY_HEAD).store(head.pack(PUBLISHED), Release);
                Ok(Family { region: self, id, head })
            }
            told => {
                self.family_word(id, FAMILY_HEAD).store(0, Relaxed);
                self.drop_text(spans[1]);
                self.drop_text(spans[0]);
                self.give_back(M_FAMILIES, u64::from(id), 1);
                self.check(told.ok_or(FamilyError::Full)?, head, spec.definition)
            }
        }
    }

    fn build_family(&self, head: FamilyHead, spec: &FamilySpec<'_>) -> Option<(u32, [Span; 2])> {
        let name = self.store_text(spec.name)?;
        let definition = self.store_text(spec.definition)?;
        let used = self.mark(M_FAMILIES);
        let id = used
            .fetch_update(Relaxed, Relaxed, |n| (n < self.s.family_max).then_some(n + 1))
            .ok()? as u32;
        let put = |at, value| self.family_word(id, at).store(value, Relaxed);
        put(FAMILY_NAME, name.pack());
        put(FAMILY_DEFINITION, definition.pack());
        put(FAMILY_CREATED, unix_nanos());
        put(FAMILY_SERIES, 0);
        put(FAMILY_LIMIT, spec.limit);
        put(FAMILY_DROPPED, 0);
        put(FAMILY_HEAD, head.pack(BUILDING));
        Some((id, [name, definition]))
    }

    /// A family that exists already: is it the one that was asked for?
    fn check(
        &'static self,
        id: u32,
        head: FamilyHead,
        definition: &[u8],
    ) -> Result<Family, FamilyError> {
        let word = self.family_word(id, FAMILY_HEAD);
        let same = matches!(FamilyHead::unpack(word.load(Acquire)), Some((_, theirs)) if theirs == head)
            && self.text_is(self.family_span(id, FAMILY_DEFINITION), definition);
        if !same {
            return Err(FamilyError::Conflict);
        }
        // Its maker may have died between publishing it and saying so.
        word.store(head.pack(PUBLISHED), Release);
        Ok(Family { region: self, id, head })
    }

    pub(crate) fn family_word(&self, id: u32, at: u64) -> &'static std::sync::atomic::AtomicU64 {
        let id = u64::from(id).min(self.s.family_max - 1);
        self.mark(self.s.families + id * FAMILY_LEN + at)
    }

    pub(crate) fn family_span(&self, id: u32, at: u64) -> Span {
        Span::unpack(self.family_word(id, at).load(Relaxed))
    }
}
