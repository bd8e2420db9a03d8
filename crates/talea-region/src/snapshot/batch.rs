//! Copies of some plain series, which go to the snapshot together.

use super::series_copy::{NOTHING, SeriesCopy};
use crate::layout::GROUP;

/// Series that are copied together: those of a group of records.
pub(super) const SERIES: usize = GROUP as usize;
pub(super) const TEXTS: usize = 8 * SERIES;

#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) series: [SeriesCopy; SERIES],
    pub(super) texts: [u64; TEXTS],
}

impl Default for Batch {
    fn default() -> Self {
        let none = SeriesCopy { text: 0, values: 0, created: 0, family: 0, beside: NOTHING };
        Self { series: [none; SERIES], texts: [0; TEXTS] }
    }
}
