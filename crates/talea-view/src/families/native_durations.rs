//! The native buckets of a service's histogram of durations: their bounds are close together, so a
//! quantile is known within a few per cent.

use std::collections::BTreeMap;

use super::durations::Between;
use talea_page::Histogram;

/// The schemas of exponential buckets: of schema *n*, bucket *i* ends at 2^(i · 2^-n). Source:
/// Prometheus' specification of native histograms, 1.0.
const SCHEMAS: std::ops::RangeInclusive<i32> = -4..=8;

/// Counts in buckets, of positive values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NativeDurations {
    schema: i32,
    zero_threshold: f64,
    zeros: f64,
    buckets: BTreeMap<i32, f64>,
}

impl NativeDurations {
    /// Those of a histogram; `None` if it has none.
    pub(crate) fn of(histogram: &Histogram) -> Option<Self> {
        let native = histogram.native.as_ref().filter(|it| SCHEMAS.contains(&it.schema))?;
        let buckets = native.positive.iter().map(|&(index, count)| (index, count as f64));
        Some(Self {
            schema: native.schema,
            zero_threshold: native.zero_threshold,
            zeros: native.zero_count as f64,
            buckets: buckets.collect(),
        })
    }

    /// Adds others; the result has the coarser schema.
    pub(super) fn add(&mut self, others: &Self, times: f64) {
        if others.is_empty() {
            return;
        }
        if self.is_empty() {
            self.schema = others.schema;
        }
        let schema = self.schema.min(others.schema);
        self.lower(schema);
        let mut others = others.clone();
        others.lower(schema);
        self.zero_threshold = self.zero_threshold.max(others.zero_threshold);
        self.zeros += others.zeros * times;
        for (index, count) in others.buckets {
            *self.buckets.entry(index).or_default() += count * times;
        }
    }

    fn is_empty(&self) -> bool {
        self.buckets.is_empty() && self.zeros == 0.0
    }

    /// Goes to a coarser schema: two neighbours become one at each step.
    fn lower(&mut self, schema: i32) {
        while self.schema > schema {
            let mut buckets = BTreeMap::new();
            for (index, count) in std::mem::take(&mut self.buckets) {
                *buckets.entry((index + 1).div_euclid(2)).or_default() += count;
            }
            (self.buckets, self.schema) = (buckets, self.schema - 1);
        }
    }

    fn bucket(&self, index: i32) -> Between {
        let bound = |index: i32| (f64::from(index) * 2f64.powi(-self.schema)).exp2();
        Between { low: bound(index - 1), high: Some(bound(index)) }
    }

    /// Each bucket by itself, in the unit of the bounds.
    pub(super) fn buckets(&self) -> Vec<(Between, f64)> {
        let zeros = (Between { low: 0.0, high: Some(self.zero_threshold) }, self.zeros);
        let others = self.buckets.iter().map(|(index, count)| (self.bucket(*index), *count));
        [zeros].into_iter().chain(others).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use talea::{Bucketing, Histogram, Opts, Registry, Seconds};

    use super::super::durations::quantile_of;
    use super::*;

    /// The buckets that a service shows of some durations.
    fn shown(schema: i8, micros: impl IntoIterator<Item = u64>) -> NativeDurations {
        let registry = Registry::for_test().unwrap();
        let opts = Opts::new("took", "T.").bucketing(Bucketing::Dual).schema(schema);
        let opts = opts.max_buckets(1024);
        let took: Histogram<Seconds> = registry.register(opts).unwrap();
        micros.into_iter().for_each(|micros| took.observe(Duration::from_micros(micros)));
        let families = registry.snapshot().to_families();
        NativeDurations::of(families[0].series[0].value.histogram().unwrap()).unwrap()
    }

    fn quantile_in(of: &NativeDurations, quantile: f64) -> Option<Between> {
        quantile_of(&of.buckets(), quantile)
    }

    fn assert_holds(found: Option<Between>, micros: u64, error: f64) {
        let Some(Between { low, high: Some(high) }) = found else { panic!("{found:?}") };
        let expected = micros as f64 / 1e6;
        assert!(low < expected && expected <= high, "{expected} in {low} to {high}");
        assert!((high - low) / (high + low) <= error, "{low} to {high}");
    }

    #[test]
    fn a_quantile_is_known_within_the_error_of_the_schema() {
        // (2^(2^-schema) - 1) / (2^(2^-schema) + 1)
        for (schema, error) in [(0, 0.334), (3, 0.0434), (5, 0.0109)] {
            let durations = shown(schema, (1..=1000).map(|n| n * 10));
            for (quantile, micros) in [(0.0, 10), (0.5, 5_000), (0.99, 9_900), (1.0, 10_000)] {
                assert_holds(quantile_in(&durations, quantile), micros, error);
            }
        }
    }

    #[test]
    fn the_increase_since_a_reading_is_what_was_observed_meanwhile() {
        let mut now = shown(3, (1..=1000).map(|n| n * 10).chain([7_000_000; 100]));
        now.add(&shown(3, (1..=1000).map(|n| n * 10)), -1.0);
        for quantile in [0.0, 0.5, 1.0] {
            assert_holds(quantile_in(&now, quantile), 7_000_000, 0.0434);
        }
    }

    #[test]
    fn histograms_of_two_schemas_are_added_in_the_coarser_one() {
        let mut all = shown(5, [1_000; 10]);
        all.add(&shown(2, [1_000_000; 30]), 1.0);
        assert_eq!(all.schema, 2);
        assert_holds(quantile_in(&all, 0.2), 1_000, 0.0865);
        assert_holds(quantile_in(&all, 0.3), 1_000_000, 0.0865);
        let mut none = NativeDurations::default();
        none.add(&all, 1.0);
        assert_eq!(none, all);
        assert_eq!(quantile_in(&NativeDurations::default(), 0.5), None);
    }
}
