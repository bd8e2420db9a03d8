//! hdrhistogram's histogram, with a recorder for each thread, as its documentation says: from
//! 1 ns to a minute, to 2 digits. It keeps no sum.

use anyhow::Result;
use hdrhistogram::Histogram;
use hdrhistogram::sync::{Recorder, SyncHistogram};
use std::sync::{Mutex, MutexGuard};

use super::latencies::Latencies;
use super::sketches::locked;
use crate::randomness::Sequence;

pub(crate) struct Hdr {
    merged: Mutex<SyncHistogram<u64>>,
    /// One for each thread.
    recorders: [Mutex<Option<Recorder<u64>>>; 2],
}

impl Hdr {
    /// Ends the recorders, which hands over their values.
    fn merged(&self) -> MutexGuard<'_, SyncHistogram<u64>> {
        self.recorders.iter().for_each(|recorder| *locked(recorder) = None);
        let mut merged = locked(&self.merged);
        merged.refresh();
        merged
    }
}

impl Latencies for Hdr {
    const NAME: &'static str = "hdrhistogram";
    const HAS_SUM: bool = false;
    type Value = u64;

    fn new() -> Result<Self> {
        let merged = Histogram::new_with_bounds(1, 60_000_000_000, 2)?.into_sync();
        Ok(Self { merged: Mutex::new(merged), recorders: Default::default() })
    }

    fn observe_each<const LEN: usize>(&self, thread: usize, n: u64, values: &Sequence<u64, LEN>) {
        let mut recorder = locked(&self.recorders[thread % self.recorders.len()]);
        let recorder = recorder.get_or_insert_with(|| locked(&self.merged).recorder());
        values.walk(thread, n, |value| recorder.saturating_record(value));
    }

    fn count(&self) -> Result<u64> {
        Ok(self.merged().len())
    }

    fn quantile(&self, q: f64) -> Result<Option<f64>> {
        Ok(Some(self.merged().value_at_quantile(q) as f64 / 1e9))
    }
}
