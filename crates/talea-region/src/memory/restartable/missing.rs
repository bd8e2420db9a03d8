//! Neither restartable sequences nor a system that has them: no add finds a plane.

use super::{CpuTable, RestartableAdd, Undone};
use crate::memory::amount::Amount;
use crate::primitive::{AtomicU64, Word};

pub(crate) fn detect() {}

pub(crate) fn disable() {}

pub(crate) fn enabled() -> bool {
    false
}

pub(crate) fn cpu() -> Option<u64> {
    None
}

impl<A: Amount> RestartableAdd for A {
    #[inline]
    fn add_in_sequence(self, _: &AtomicU64, _: &&CpuTable) -> bool {
        false
    }

    #[inline]
    fn count_in_sequences(self, [one, _]: [Word; 2], _: &&CpuTable) -> Result<(), Undone> {
        Err(Undone { first: Some(one) })
    }
}
