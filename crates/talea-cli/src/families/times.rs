//! Histograms of durations, as far as quantiles can be read from them.

use serde::{Deserialize, Serialize};

use super::durations::{Between, Durations};
use super::native_durations::NativeDurations;
use super::protobuf::Histogram;

/// How long requests took, by all that a service shows of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Times {
    pub(crate) durations: Durations,
    /// `None` if the service shows none.
    native: Option<Native>,
}

/// Native buckets, in the unit of the metric.
#[derive(Clone, Debug, PartialEq)]
struct Native {
    buckets: NativeDurations,
    seconds: f64,
}

/// The buckets of a histogram that some quantiles lie in, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Quantiles {
    pub p50_ms: Option<Between>,
    pub p90_ms: Option<Between>,
    pub p99_ms: Option<Between>,
}

impl Quantiles {
    pub(crate) fn by(quantile_ms: impl Fn(f64) -> Option<Between>) -> Self {
        let [p50_ms, p90_ms, p99_ms] = [0.5, 0.9, 0.99].map(quantile_ms);
        Self { p50_ms, p90_ms, p99_ms }
    }

    pub(crate) fn each(&self) -> [Option<Between>; 3] {
        [self.p50_ms, self.p90_ms, self.p99_ms]
    }
}

impl Times {
    /// Adds a histogram whose unit has so many seconds.
    pub(crate) fn add_histogram(&mut self, histogram: &Histogram, seconds: f64) {
        self.durations.sum += histogram.sample_sum * seconds;
        self.durations.count += histogram.sample_count as f64;
        for bucket in &histogram.bucket {
            self.durations.add(bucket.upper_bound * seconds, bucket.cumulative_count as f64);
        }
        // A text has this bucket, protobuf need not.
        if histogram.bucket.last().is_some_and(|last| last.upper_bound < f64::INFINITY) {
            self.durations.add(f64::INFINITY, histogram.sample_count as f64);
        }
        if let Some(buckets) = NativeDurations::of(histogram) {
            self.add_native(&Native { buckets, seconds });
        }
    }

    /// Buckets in another unit are left out: their bounds are others.
    fn add_native(&mut self, other: &Native) {
        match &mut self.native {
            None => self.native = Some(other.clone()),
            Some(native) if native.seconds == other.seconds => {
                native.buckets.add(&other.buckets, 1.0);
            }
            Some(_) => {}
        }
    }

    /// The observations since an earlier reading of the same series. One that counts less than before, or
    /// in other buckets, began anew.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let anew = Self::default();
        let thresholds = |of: &Self| of.durations.below.iter().map(|it| it.0).collect::<Vec<_>>();
        let goes_on = before.durations.count <= self.durations.count
            && thresholds(before) == thresholds(self);
        let before = if goes_on { before } else { &anew };
        let mut grown = Self::default();
        grown.durations.add_increase(&before.durations, &self.durations);
        grown.native = self.native.clone();
        if let (Some(native), Some(before)) = (&mut grown.native, &before.native) {
            native.buckets.add(&before.buckets, -1.0);
        }
        grown
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.durations.add_increase(&Durations::default(), &other.durations);
        if let Some(native) = &other.native {
            self.add_native(native);
        }
    }

    /// The bucket that a quantile lies in, in milliseconds, by the finest buckets that there are; `None`
    /// if nothing was observed.
    pub(crate) fn quantile_ms(&self, quantile: f64) -> Option<Between> {
        match &self.native {
            None => self.durations.quantile_ms(quantile),
            Some(native) => {
                let found = native.buckets.quantile(quantile);
                found.map(|found| found.times(native.seconds * 1e3))
            }
        }
    }

    /// The buckets that hold something, of the finest that there are, in seconds.
    pub(crate) fn buckets(&self) -> Vec<(Between, f64)> {
        let (buckets, seconds) = match &self.native {
            None => (self.durations.buckets(), 1.0),
            Some(native) => (native.buckets.buckets(), native.seconds),
        };
        let filled = buckets.into_iter().filter(|(_, count)| *count > 0.0);
        filled.map(|(bucket, count)| (bucket.times(seconds), count)).collect()
    }

    pub(crate) fn quantiles(&self) -> Quantiles {
        Quantiles::by(|quantile| self.quantile_ms(quantile))
    }
}

#[cfg(test)]
mod tests {
    use super::super::protobuf::Bucket;
    use super::*;

    #[test]
    fn a_histogram_in_other_buckets_began_anew() {
        let of = |bounds: &[f64], count| {
            let mut times = Times::default();
            let bucket =
                |&upper_bound| Bucket { cumulative_count: count, upper_bound, exemplar: None };
            let bucket = bounds.iter().map(bucket).collect();
            let histogram = Histogram { sample_count: count, bucket, ..Histogram::default() };
            times.add_histogram(&histogram, 1.0);
            times
        };
        for (bounds, expected) in [([0.1, 1.0], 20.0), ([0.2, 1.0], 120.0)] {
            let grown = of(&bounds, 120).since(&of(&[0.1, 1.0], 100));
            let in_buckets: f64 = grown.buckets().iter().map(|(_, count)| count).sum();
            assert_eq!((grown.durations.count, in_buckets), (expected, expected));
        }
    }

    #[test]
    fn what_is_above_the_last_threshold_counts_also_without_a_bucket() {
        let bucket = |upper_bound, cumulative_count| Bucket {
            cumulative_count,
            upper_bound,
            exemplar: None,
        };
        for last in [None, Some(bucket(f64::INFINITY, 100))] {
            let buckets = [bucket(0.1, 10), bucket(1.0, 40)].into_iter().chain(last.clone());
            let mut times = Times::default();
            let histogram =
                Histogram { sample_count: 100, bucket: buckets.collect(), ..Histogram::default() };
            times.add_histogram(&histogram, 1.0);
            let found = times.quantiles();
            assert_eq!(found.p50_ms, Some(Between { low: 1e3, high: None }));
            assert_eq!(times.quantile_ms(0.3), Some(Between { low: 100.0, high: Some(1e3) }));
        }
    }
}
