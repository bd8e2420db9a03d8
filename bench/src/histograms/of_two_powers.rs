//! H2 histograms, whose buckets divide each octave evenly: that of `histogram` with atomic
//! counts, and metriken's, which has one for each thread. Octaves are divided by 128, as
//! in their documentation. They keep no sum.

use anyhow::{Result, anyhow};
use histogram::{AtomicHistogram, Histogram};
use metriken::ShardedCounterHistogram;

use super::latencies::Latencies;
use crate::randomness::Sequence;

pub(crate) struct H2(AtomicHistogram);

impl Latencies for H2 {
    const NAME: &'static str = "histogram";
    const HAS_SUM: bool = false;
    type Value = u64;

    fn new() -> Result<Self> {
        Ok(Self(AtomicHistogram::new(7, 64).map_err(|error| anyhow!("{error}"))?))
    }

    fn observe_each<const LEN: usize>(&self, thread: usize, n: u64, values: &Sequence<u64, LEN>) {
        // Only a value out of range is refused, and there is none.
        values.walk(thread, n, |value| {
            let _ = self.0.increment(value);
        });
    }

    fn count(&self) -> Result<u64> {
        Ok(count(&self.0.load()))
    }

    fn quantile(&self, q: f64) -> Result<Option<f64>> {
        quantile(&self.0.load(), q)
    }
}

pub(crate) struct Metriken(Box<ShardedCounterHistogram>);

impl Latencies for Metriken {
    const NAME: &'static str = "metriken";
    const HAS_SUM: bool = false;
    type Value = u64;

    fn new() -> Result<Self> {
        Ok(Self(Box::new(ShardedCounterHistogram::new(7, 64))))
    }

    fn observe_each<const LEN: usize>(&self, thread: usize, n: u64, values: &Sequence<u64, LEN>) {
        values.walk(thread, n, |value| {
            let _ = self.0.increment(value);
        });
    }

    fn count(&self) -> Result<u64> {
        Ok(self.0.load().map_or(0, |loaded| count(&loaded)))
    }

    fn quantile(&self, q: f64) -> Result<Option<f64>> {
        self.0.load().map_or(Ok(None), |loaded| quantile(&loaded, q))
    }
}

fn count(loaded: &Histogram) -> u64 {
    loaded.as_slice().iter().sum()
}

/// The middle of its bucket.
fn quantile(loaded: &Histogram, q: f64) -> Result<Option<f64>> {
    let bucket = loaded.quantile_bucket(q).map_err(|error| anyhow!("{error}"))?;
    Ok(bucket.map(|bucket| bucket.start().midpoint(bucket.end()) as f64 / 1e9))
}
