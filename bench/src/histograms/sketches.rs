//! Sketches for one thread, behind a mutex: DDSketch with its defaults, and a t-digest of
//! 100 centroids. Both know the sum.

use anyhow::{Result, anyhow};
use sketches_ddsketch::{Config, DDSketch};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tdigest::TDigest;

use super::latencies::Latencies;
use crate::randomness::Sequence;

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) struct DdSketch(Mutex<DDSketch>);

impl Latencies for DdSketch {
    const NAME: &'static str = "sketches-ddsketch";
    type Value = f64;

    fn new() -> Result<Self> {
        Ok(Self(Mutex::new(DDSketch::new(Config::defaults()))))
    }

    fn observe_each<const LEN: usize>(&self, thread: usize, n: u64, values: &Sequence<f64, LEN>) {
        values.walk(thread, n, |value| locked(&self.0).add(value));
    }

    fn count(&self) -> Result<u64> {
        Ok(locked(&self.0).count() as u64)
    }

    fn quantile(&self, q: f64) -> Result<Option<f64>> {
        locked(&self.0).quantile(q).map_err(|error| anyhow!("{error:?}"))
    }
}

pub(crate) struct Digest(Mutex<TDigest>);

impl Latencies for Digest {
    const NAME: &'static str = "tdigest";
    type Value = f64;

    fn new() -> Result<Self> {
        Ok(Self(Mutex::new(TDigest::new_with_size(100))))
    }

    fn observe_each<const LEN: usize>(&self, thread: usize, n: u64, values: &Sequence<f64, LEN>) {
        values.walk(thread, n, |value| locked(&self.0).push(value));
    }

    fn count(&self) -> Result<u64> {
        Ok(locked(&self.0).count() as u64)
    }

    fn quantile(&self, q: f64) -> Result<Option<f64>> {
        let mut digest = locked(&self.0);
        digest.flush();
        Ok(digest.estimate_quantile(q))
    }
}
