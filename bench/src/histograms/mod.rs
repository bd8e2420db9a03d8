//! Histograms of Talea and of others, each as its documentation recommends, behind one
//! trait: what `observe-kept` times, and what `latencies.rs` asks for quantiles.
//!
//! Those with thresholds have the same ones. Those with buckets by a rule have that which
//! is their default, or that of their documentation's example.

mod by_metrics;
mod by_prometheus;
mod by_prometheus_client;
mod by_talea;
mod hdr;
mod measured;
mod of_two_powers;
mod sketches;
mod thresholds;

use std::time::Duration;

use anyhow::Result;

use crate::randomness::Sequence;

pub(crate) use by_metrics::ByMetrics;
pub(crate) use by_prometheus::ByPrometheus;
pub(crate) use by_prometheus_client::{ClientClassic, ClientDual, ClientNative, count_in_text};
pub(crate) use by_talea::{TaleaClassic, TaleaDual, TaleaNative};
pub(crate) use hdr::Hdr;
pub(crate) use measured::{Measured, count_of_measured};
pub(crate) use of_two_powers::{H2, Metriken};
pub(crate) use sketches::{DdSketch, Digest};
pub(crate) use thresholds::THRESHOLDS;

/// A histogram of latencies, its handle kept.
pub(crate) trait Latencies: Send + Sync + Sized + 'static {
    const NAME: &'static str;
    /// Whether it knows the sum of its observations.
    const HAS_SUM: bool;
    /// The type of an observation: a `Duration`, seconds, or nanoseconds.
    type Value: Copy + Send + Sync;

    /// One of its own.
    fn new() -> Result<Self>;

    fn value(latency: Duration) -> Self::Value;

    /// Observes `n` of these values, as thread number `thread`.
    fn observe_each<const LEN: usize>(
        &self,
        thread: usize,
        n: u64,
        values: &Sequence<Self::Value, LEN>,
    );

    /// How many observations it knows of.
    fn count(&self) -> Result<u64>;

    /// What a share `q` of them does not exceed, in seconds; `None` where the library
    /// exposes nothing to compute it from.
    fn quantile(&self, q: f64) -> Result<Option<f64>>;
}
