//! The hash index: from a name or a label text to its record.
//!
//! Open addressing with linear probing in a table that is fixed at creation.
//! A place goes once from empty to taken, by compare-and-swap; that is the
//! instant at which a record is published. Two that bring the same key walk the
//! same places and meet at the first empty one, so one of them wins and the
//! other finds the winner's record. A place never takes another key.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire},
};

use crate::layout::WORD;
use crate::region::Region;

/// What a place names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    Family,
    Series,
}

/// A taken place: `1:1 | family:1 | tag:30 | id:32`; 0 is empty.
fn entry(record: Record, hash: u64, id: u32) -> u64 {
    kind_and_tag(record, hash) | u64::from(id)
}

fn kind_and_tag(record: Record, hash: u64) -> u64 {
    // The place comes from the low bits, the tag from the high ones.
    1 << 63 | u64::from(record == Record::Family) << 62 | (hash >> 34) << 32
}

/// Where a search ended without the key.
pub(crate) struct Vacancy {
    place: u64,
    probed: u64,
}

impl Region {
    /// Finds the record whose tag fits and for which `is` holds.
    #[inline]
    pub(crate) fn find(
        &self,
        record: Record,
        hash: u64,
        is: impl FnMut(u32) -> bool,
    ) -> Result<u32, Vacancy> {
        self.find_from(
            Vacancy { place: hash & (self.s.index_len - 1), probed: 0 },
            record,
            hash,
            is,
        )
    }

    #[inline]
    fn find_from(
        &self,
        mut at: Vacancy,
        record: Record,
        hash: u64,
        mut is: impl FnMut(u32) -> bool,
    ) -> Result<u32, Vacancy> {
        let wanted = kind_and_tag(record, hash);
        while at.probed < self.s.index_len {
            let seen = self.place(at.place).load(Acquire);
            if seen == 0 {
                return Err(at);
            }
            if seen & !u64::from(u32::MAX) == wanted && is(seen as u32) {
                return Ok(seen as u32);
            }
            at = Vacancy { place: (at.place + 1) & (self.s.index_len - 1), probed: at.probed + 1 };
        }
        Err(at)
    }

    /// Publishes a finished record at the end of a search, unless somebody else
    /// published the same key meanwhile. Returns whose record it is now, or
    /// `None` where the index is full.
    pub(crate) fn publish(
        &self,
        mut at: Vacancy,
        record: Record,
        hash: u64,
        id: u32,
        mut is: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let fresh = entry(record, hash, id);
        while at.probed < self.s.index_len {
            if self.place(at.place).compare_exchange(0, fresh, AcqRel, Acquire).is_ok() {
                return Some(id);
            }
            match self.find_from(at, record, hash, &mut is) {
                Ok(theirs) => return Some(theirs),
                Err(vacancy) => at = vacancy,
            }
        }
        None
    }

    #[inline]
    fn place(&self, n: u64) -> &'static AtomicU64 {
        self.mark(self.s.index + n * WORD)
    }
}
