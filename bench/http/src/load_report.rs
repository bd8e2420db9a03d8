//! The report of a load generator.

/// The percentiles that `wrk --latency` prints.
pub(crate) const PERCENTILES: [u8; 4] = [50, 75, 90, 99];

/// A generator's report, and its memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LoadReport {
    /// Requests that were answered.
    pub(crate) requests: u64,
    pub(crate) per_second: f64,
    /// In microseconds, of [`PERCENTILES`]; none if the generator does not report all of them.
    pub(crate) latency: Option<[f64; PERCENTILES.len()]>,
    /// Bytes of memory that the generator had at most.
    pub(crate) memory: u64,
}
