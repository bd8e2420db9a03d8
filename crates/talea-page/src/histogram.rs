//! Histograms: classic and native buckets.

use super::Exemplar;

/// A histogram with its classic buckets, and with native ones if it has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// All observations.
    pub count: u64,
    /// Their sum; NaN if the page does not have it, as OpenMetrics with thresholds below zero.
    pub sum: f64,
    /// The classic buckets, ascending by their upper bounds. The last one is for +Inf, which holds
    /// all observations: a histogram with native buckets only has it alone.
    pub classic: Vec<Bucket>,
    /// The native buckets.
    pub native: Option<Native>,
    /// The exemplars of the native buckets.
    pub exemplars: Vec<Exemplar>,
}

/// A classic bucket.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bucket {
    /// The largest value in it.
    pub upper_bound: f64,
    /// The number of observations of at most `upper_bound`: those in the buckets before it are counted
    /// too.
    pub cumulative_count: u64,
    /// The latest exemplar in it.
    pub exemplar: Option<Exemplar>,
}

/// Native (exponential) buckets: bucket *i* of schema *n* holds (β^(i−1), β^i] with β = 2^(2^−n).
/// Source: Prometheus' specification of native histograms, 1.0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Native {
    /// How fine the buckets are, from −4 to 8.
    pub schema: i32,
    /// A value whose distance from 0 is at most this counts as zero.
    pub zero_threshold: f64,
    /// Observations that count as zero.
    pub zero_count: u64,
    /// The buckets of positive values with their observations, ascending. Empty buckets are left out.
    pub positive: Vec<(i32, u64)>,
    /// The buckets of negative values, by their absolute value.
    pub negative: Vec<(i32, u64)>,
}

impl Histogram {
    /// Whether it has classic buckets beside the one that holds all observations.
    pub fn has_classic(&self) -> bool {
        self.classic.len() > 1
    }
}
