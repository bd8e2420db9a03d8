//! Without 64-bit atomics tokio does not count what its workers did.

use talea::{Error, Registry};
use tokio::runtime::RuntimeMetrics;

pub(super) struct Work;

impl Work {
    pub(super) fn register(_: &Registry, _: &str) -> Result<Self, Error> {
        Ok(Self)
    }

    pub(super) fn follow(&self, _: &RuntimeMetrics) {}
}
