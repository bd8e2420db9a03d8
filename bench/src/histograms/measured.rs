//! The histogram of measured: thresholds, and a sum.

use anyhow::Result;
use measured::metric::histogram::{HistogramState, Thresholds};
use std::sync::atomic::Ordering::Relaxed;

use super::latencies::Latencies;
use crate::randomness::Sequence;
use crate::thresholds::{self, THRESHOLDS};

pub(crate) struct Measured(measured::Histogram<14>);

impl Latencies for Measured {
    const NAME: &'static str = "measured";
    type Value = f64;

    fn new() -> Result<Self> {
        Ok(Self(measured::Histogram::with_metadata(Thresholds::with_buckets(THRESHOLDS))))
    }

    fn observe_each<const LEN: usize>(&self, thread: usize, n: u64, values: &Sequence<f64, LEN>) {
        values.walk(thread, n, |value| self.0.observe(value));
    }

    fn count(&self) -> Result<u64> {
        Ok(count_of_measured(&self.0.get_metric()))
    }

    fn quantile(&self, q: f64) -> Result<Option<f64>> {
        let state = self.0.get_metric();
        let state = state.inner.read();
        let counts = state.buckets.iter().chain([&state.inf]).scan(0, |sum, count| {
            *sum += count.load(Relaxed);
            Some(*sum)
        });
        let at_most: Vec<_> = THRESHOLDS.into_iter().chain([f64::INFINITY]).zip(counts).collect();
        Ok(thresholds::quantile(&at_most, q))
    }
}

pub(crate) fn count_of_measured<const N: usize>(state: &HistogramState<N>) -> u64 {
    let state = state.inner.read();
    let below: u64 = state.buckets.iter().map(|bucket| bucket.load(Relaxed)).sum();
    below + state.inf.load(Relaxed)
}
