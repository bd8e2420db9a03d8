//! A histogram of latencies, of any library.

use std::time::Duration;

use anyhow::Result;

use crate::randomness::Sequence;

/// A histogram of latencies, its handle kept.
pub(crate) trait Latencies: Send + Sync + Sized + 'static {
    const NAME: &'static str;
    /// Whether it knows the sum of its observations.
    const HAS_SUM: bool = true;
    type Value: Observation;

    /// Makes one of its own.
    fn new() -> Result<Self>;

    /// Observes `n` of these values, as thread number `thread`.
    fn observe_each<const LEN: usize>(
        &self,
        thread: usize,
        n: u64,
        values: &Sequence<Self::Value, LEN>,
    );

    fn count(&self) -> Result<u64>;

    /// The value that a share `q` of them does not exceed, in seconds; `None` if the library
    /// exposes nothing to compute it from.
    fn quantile(&self, q: f64) -> Result<Option<f64>>;
}

/// A latency in the form that a library takes.
pub(crate) trait Observation: Copy + Send + Sync + 'static {
    fn of(latency: Duration) -> Self;
}

impl Observation for Duration {
    fn of(latency: Duration) -> Self {
        latency
    }
}

/// Seconds.
impl Observation for f64 {
    fn of(latency: Duration) -> Self {
        latency.as_secs_f64()
    }
}

/// Nanoseconds.
impl Observation for u64 {
    fn of(latency: Duration) -> Self {
        latency.as_nanos() as u64
    }
}
