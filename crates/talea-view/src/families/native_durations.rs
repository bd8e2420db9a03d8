//! The native buckets of a service's histogram of durations: their bounds are close together, so a
//! quantile is known within a few per cent.

use std::collections::BTreeMap;

use super::durations::Between;
use super::protobuf::Histogram;

/// The schemas of exponential buckets: of schema *n*, bucket *i* ends at 2^(i · 2^-n). Source:
/// Prometheus' specification of native histograms, 1.0.
const SCHEMAS: std::ops::RangeInclusive<i32> = -4..=8;
/// The most buckets that are read; the service may be anybody's.
const MOST_BUCKETS: usize = 100_000;

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
    pub(super) fn of(histogram: &Histogram) -> Option<Self> {
        let schema = histogram.schema.filter(|schema| SCHEMAS.contains(schema))?;
        let mut buckets = BTreeMap::new();
        let (mut index, mut count) = (0i32, 0i64);
        let mut deltas = histogram.positive_delta.iter().take(MOST_BUCKETS);
        for span in &histogram.positive_span {
            index = index.checked_add(span.offset)?;
            for delta in deltas.by_ref().take(span.length as usize) {
                count = count.checked_add(*delta)?;
                if count > 0 {
                    buckets.insert(index, count as f64);
                }
                index = index.checked_add(1)?;
            }
        }
        let (zero_threshold, zeros) = (histogram.zero_threshold, histogram.zero_count as f64);
        Some(Self { schema, zero_threshold, zeros, buckets })
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
    use super::super::protobuf;
    use super::*;

    /// The buckets that a service shows of some durations.
    fn shown(schema: i8, micros: impl IntoIterator<Item = u64>) -> NativeDurations {
        let registry = Registry::for_test().unwrap();
        let opts = Opts::new("took", "T.").bucketing(Bucketing::Dual).schema(schema);
        let opts = opts.max_buckets(1024);
        let took: Histogram<Seconds> = registry.register(opts).unwrap();
        micros.into_iter().for_each(|micros| took.observe(Duration::from_micros(micros)));
        let families = super::super::of_snapshot(&registry.snapshot()).unwrap();
        NativeDurations::of(families[0].metric[0].histogram.as_ref().unwrap()).unwrap()
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

    #[test]
    fn a_histogram_that_makes_no_sense_is_read_as_far_as_it_does() {
        use super::super::protobuf::BucketSpan;
        let of = |schema, spans: &[(i32, u32)], deltas: &[i64]| {
            let span = |&(offset, length): &(i32, u32)| BucketSpan { offset, length };
            NativeDurations::of(&protobuf::Histogram {
                schema,
                positive_span: spans.iter().map(span).collect(),
                positive_delta: deltas.to_vec(),
                ..protobuf::Histogram::default()
            })
        };
        assert_eq!(of(None, &[(0, 1)], &[1]), None);
        assert_eq!(of(Some(-53), &[(0, 1)], &[1]), None, "buckets of its own");
        assert_eq!(of(Some(3), &[(i32::MAX, 2), (i32::MAX, 1)], &[1, 1, 1]), None);
        assert_eq!(of(Some(3), &[(0, 2)], &[i64::MAX, i64::MAX]), None);
        let short = of(Some(3), &[(0, u32::MAX)], &[2, -5]).unwrap();
        assert_eq!(short.buckets, BTreeMap::from([(0, 2.0)]));
    }
}
