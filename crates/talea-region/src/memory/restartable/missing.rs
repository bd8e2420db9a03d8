//! Neither restartable sequences nor a system that has them: no add finds a plane.

use crate::memory::restartable::{CpuTable, Undone};
use crate::primitive::{AtomicU64, Word};

pub(crate) fn detect() {}

pub(crate) fn disable() {}

pub(crate) fn enabled() -> bool {
    false
}

pub(crate) fn cpu() -> Option<u64> {
    None
}

#[inline]
pub(crate) fn add(_: &AtomicU64, _: &&CpuTable, _: u64) -> bool {
    false
}

#[inline]
pub(crate) fn add_float(_: &AtomicU64, _: &&CpuTable, _: f64) -> bool {
    false
}

#[inline]
pub(crate) fn count([one, _]: [Word; 2], _: &&CpuTable, _: u64) -> Result<(), Undone> {
    Err(Undone { first: Some(one) })
}

#[inline]
pub(crate) fn count_float([one, _]: [Word; 2], _: &&CpuTable, _: f64) -> Result<(), Undone> {
    Err(Undone { first: Some(one) })
}
