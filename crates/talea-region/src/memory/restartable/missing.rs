//! Neither restartable sequences nor a system that has them: no add finds a plane.

use crate::memory::restartable::{CpuTable, Done};
use crate::primitive::AtomicU64;

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
pub(crate) fn count(_: [&AtomicU64; 2], _: &&CpuTable, _: u64) -> Done {
    Done::NEITHER
}

#[inline]
pub(crate) fn count_float(_: [&AtomicU64; 2], _: &&CpuTable, _: f64) -> Done {
    Done::NEITHER
}
