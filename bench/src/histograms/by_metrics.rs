//! The histograms of metrics, as its Prometheus exporter keeps them: thresholds, and a sum.

use anyhow::Result;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::latencies::Latencies;
use crate::randomness::Sequence;
use crate::recorder;
use crate::thresholds;

static NEXT: AtomicU64 = AtomicU64::new(0);

pub(crate) struct ByMetrics {
    histogram: metrics::Histogram,
    n: String,
}

impl Latencies for ByMetrics {
    const NAME: &'static str = "metrics";
    type Value = f64;

    fn new() -> Result<Self> {
        recorder::installed();
        let n = NEXT.fetch_add(1, Relaxed).to_string();
        Ok(Self { histogram: metrics::histogram!("kept_seconds", "n" => n.clone()), n })
    }

    fn observe_each<const LEN: usize>(&self, thread: usize, n: u64, values: &Sequence<f64, LEN>) {
        let mut left = n;
        values.walk(thread, n, |value| {
            self.histogram.record(value);
            left -= 1;
            recorder::keep_up(thread, left);
        });
    }

    fn count(&self) -> Result<u64> {
        recorder::total("kept_seconds_count")
    }

    fn quantile(&self, q: f64) -> Result<Option<f64>> {
        let text = recorder::installed().render();
        thresholds::quantile_in_text(&text, "kept_seconds", &[("n", &self.n)], q)
    }
}
