//! Atomics: the standard ones, or those of a model checker, so that what it
//! checks is what ships.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, fence};
