//! A series in a snapshot, as it is stored.

/// Half a cache line: there are many.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeriesCopy {
    /// Where its text lies in that of all, packed.
    pub(super) text: u64,
    /// Its value, where its family's series are one cell and nothing else; otherwise where
    /// its values begin.
    pub(super) values: u64,
    pub(super) created: u64,
    /// Its family's place among the families of the snapshot.
    pub(super) family: u32,
    /// The number of its owner or, with the highest bit set, that of its details.
    pub(super) beside: u32,
}

/// Neither.
pub(super) const NOTHING: u32 = u32::MAX;
pub(super) const HAS_DETAILS: u32 = 1 << 31;
