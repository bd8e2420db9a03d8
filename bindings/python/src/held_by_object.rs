//! A series as another object than its child uses it.

use std::sync::Arc;

use talea::Hold;

/// A metric of a series, and what has the series stay.
pub(crate) struct HeldByObject<M> {
    pub(crate) metric: M,
    _hold: Option<Arc<Hold>>,
}

impl<M> HeldByObject<M> {
    pub(crate) fn new(metric: M, hold: Option<Arc<Hold>>) -> Self {
        Self { metric, _hold: hold }
    }
}
