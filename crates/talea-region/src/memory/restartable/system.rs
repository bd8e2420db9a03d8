//! Restartable sequences of Linux.

mod area;
#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
mod sequences;

pub(crate) use area::{cpu, detect, disable, enabled};
pub(crate) use sequences::{add, add_float, count, count_float};
