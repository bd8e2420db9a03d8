//! The participants of the test in which everything happens at once.

pub(crate) mod clients;
pub(crate) mod page;
pub(crate) mod writers;

use std::time::Duration;

/// How long anything may take that has to happen, before it counts as hung.
pub(crate) const SOON: Duration = Duration::from_secs(60);
