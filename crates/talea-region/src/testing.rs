//! Set-up that tests beside the code share.

use crate::config::Config;
use crate::layout::*;
use crate::lookup::register::FamilySpec;
use crate::region::Region;
#[cfg(target_os = "linux")]
use crate::series::cell::Cell;
use crate::series::family::Family;
use crate::source::Source;

/// A region of 1 MiB.
pub(crate) fn region() -> &'static Region {
    Region::anonymous(Config::with_len(1 << 20)).unwrap()
}

pub(crate) fn family(spec: FamilySpec<'_>) -> (&'static Region, Family) {
    let region = region();
    (region, region.family(spec).unwrap().family)
}

#[cfg(target_os = "linux")]
pub(crate) fn cell(spec: FamilySpec<'_>) -> (&'static Region, Cell) {
    let (region, family) = family(spec);
    (region, family.permanent_series(b"").unwrap().at(0))
}

/// Numbers that are the same in each run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // The high bits are the random ones.
        self.0.rotate_left(32)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        u64::from(self.next() as u32 >> 1) % end
    }
}

/// A mapped region as a source without shorter ways of its own. A function is asked whether a record,
/// by its number, is unchanged.
pub(crate) struct Watched<F>(pub(crate) &'static Region, pub(crate) F);

impl<F: Fn(u64) -> bool> Source for Watched<F> {
    fn sections(&self) -> &Sections {
        self.0.memory.sections()
    }

    fn words(&self, at: u64, count: u64) -> Option<impl Iterator<Item = u64>> {
        self.0.memory.words(at, count)
    }

    fn lives(&self, slot: u64) -> bool {
        self.0.memory.lives(slot)
    }

    fn stands(&self, record: u64) -> bool {
        (self.1)((record - self.sections().records.at) / RECORD_LEN)
    }
}
