//! The report of a load generator.

/// A generator's report, and its memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LoadReport {
    /// Requests that were answered.
    pub(crate) requests: u64,
    pub(crate) per_second: f64,
    /// Bytes of memory that the generator had at most.
    pub(crate) memory: u64,
}
