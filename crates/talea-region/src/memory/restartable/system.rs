//! Restartable sequences of Linux.

mod area;
#[macro_use]
mod sequences;
#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
mod processor;

pub(crate) use area::{cpu, detect, disable, enabled};
