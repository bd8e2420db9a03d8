//! Incarnations: a series from its making to its removal.
//!
//! A caller that looked a series up and wants to come back to it later, without keeping it meanwhile,
//! notes its incarnation. Records are reused. The time of creation that a record holds grows with each
//! use (`lookup/series.rs`), so record and time together name one series for ever.
//!
//! Invariants:
//!
//! 1. A guard is entered before the record is read. So a record that is public then is not reclaimed
//!    before the guard ends, if it is removed meanwhile.
//! 2. The head is read before the time of creation. A later series of this record wrote its time
//!    before it was published; so where its head is read, its time is read as well, and differs.

use std::sync::atomic::Ordering::Acquire;

use super::cell::Cell;
use super::record::{self, PUBLISHED, Series};
use crate::layout::*;
use crate::memory::guard::Guard;
use crate::region::Region;

/// A series that was looked up, between two uses of it. It keeps nothing and may be sent anywhere.
#[derive(Clone, Copy, Debug)]
pub struct Incarnation {
    region: &'static Region,
    id: u32,
    created: u64,
    /// The slot of the process that noted it.
    slot: u64,
}

impl Incarnation {
    /// That of the series with this cell. The series must not be reclaimed meanwhile: the caller has the
    /// guard of its look-up.
    #[inline]
    pub fn of(cell: Cell) -> Self {
        let Series { region, id } = cell.series();
        let created = cell.series().word(SERIES_CREATED).load(Acquire);
        Self { region, id, created, slot: region.memory.own_slot() }
    }

    /// A guard, under which the cells belong to the series; `None` if it was removed since.
    #[inline]
    pub fn enter(&self) -> Option<Guard> {
        let series = self.region.series(self.id);
        let guard = self.region.memory.enter();
        let is_public = record::state(series.word(SERIES_HEAD).load(Acquire)) == PUBLISHED;
        (is_public && series.word(SERIES_CREATED).load(Acquire) == self.created).then_some(guard)
    }

    /// Whether this process noted it; false in a child that was made by `fork` since.
    #[inline]
    pub fn is_of_this_process(&self) -> bool {
        self.region.memory.own_slot() == self.slot
    }
}
