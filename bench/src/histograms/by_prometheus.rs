//! The histogram of prometheus: thresholds, and a sum.

use anyhow::Result;
use prometheus::core::Metric;

use super::latencies::Latencies;
use crate::randomness::Sequence;
use crate::thresholds::{self, THRESHOLDS};

pub(crate) struct ByPrometheus(prometheus::Histogram);

impl Latencies for ByPrometheus {
    const NAME: &'static str = "prometheus";
    type Value = f64;

    fn new() -> Result<Self> {
        let opts = prometheus::HistogramOpts::new("kept_seconds", "Time.");
        let histogram = prometheus::Histogram::with_opts(opts.buckets(THRESHOLDS.to_vec()))?;
        Ok(Self(histogram))
    }

    fn observe_each<const LEN: usize>(&self, thread: usize, n: u64, values: &Sequence<f64, LEN>) {
        values.walk(thread, n, |value| self.0.observe(value));
    }

    fn count(&self) -> Result<u64> {
        Ok(self.0.get_sample_count())
    }

    fn quantile(&self, q: f64) -> Result<Option<f64>> {
        let shown = self.0.metric();
        let buckets = shown.get_histogram().get_bucket();
        let at_most: Vec<_> =
            buckets.iter().map(|b| (b.upper_bound(), b.cumulative_count())).collect();
        let all = (f64::INFINITY, self.0.get_sample_count());
        Ok(thresholds::quantile(&[at_most, vec![all]].concat(), q))
    }
}
