//! Histograms of durations, as far as quantiles can be read from them.

use serde::{Deserialize, Serialize};

use super::durations::{Between, quantile_of};
use super::native_durations::NativeDurations;
use talea_page::Histogram;

/// How long requests took. Services count in buckets of their own: those that agree are added up, and
/// the others are kept beside them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// In seconds.
    pub sum: f64,
    pub count: f64,
    histograms: Vec<Buckets>,
}

/// The finest buckets of a histogram.
#[derive(Clone, Debug, PartialEq)]
enum Buckets {
    /// Thresholds in seconds, each with the requests above the one before.
    Classic(Vec<(f64, f64)>),
    /// In the unit of the metric, which has so many seconds.
    Native { buckets: NativeDurations, seconds: f64 },
}

impl Buckets {
    fn of(histogram: &Histogram, seconds: f64) -> Self {
        if let Some(buckets) = NativeDurations::of(histogram) {
            return Self::Native { buckets, seconds };
        }
        let (mut classic, mut below) = (Vec::new(), 0);
        for bucket in &histogram.classic {
            let here = bucket.cumulative_count.saturating_sub(below);
            classic.push((bucket.upper_bound * seconds, here as f64));
            below = bucket.cumulative_count;
        }
        // A text has this bucket, protobuf need not.
        if classic.last().is_none_or(|last| last.0 < f64::INFINITY) {
            let here = histogram.count.saturating_sub(below);
            classic.push((f64::INFINITY, here as f64));
        }
        Self::Classic(classic)
    }

    /// Whether buckets can be added up one by one.
    fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Classic(one), Self::Classic(other)) => {
                one.iter().map(|it| it.0).eq(other.iter().map(|it| it.0))
            }
            (Self::Native { seconds, .. }, Self::Native { seconds: other, .. }) => seconds == other,
            _ => false,
        }
    }

    /// Adds buckets that agree, so many times.
    fn add(&mut self, other: &Self, times: f64) {
        match (self, other) {
            (Self::Classic(one), Self::Classic(other)) => {
                one.iter_mut().zip(other).for_each(|(it, other)| it.1 += other.1 * times);
            }
            (Self::Native { buckets, .. }, Self::Native { buckets: other, .. }) => {
                buckets.add(other, times);
            }
            _ => {}
        }
    }

    /// Each bucket by itself, in seconds.
    fn each(&self) -> Vec<(Between, f64)> {
        match self {
            Self::Native { buckets, seconds } => {
                let all = buckets.buckets().into_iter();
                all.map(|(bucket, count)| (bucket.times(*seconds), count)).collect()
            }
            Self::Classic(classic) => {
                let lows = [0.0].into_iter().chain(classic.iter().map(|it| it.0));
                lows.zip(classic)
                    .map(|(low, &(high, count))| {
                        let high = high.is_finite().then_some(high);
                        (Between { low, high }, count)
                    })
                    .collect()
            }
        }
    }
}

/// The buckets of a histogram that some quantiles lie in, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quantiles {
    pub p50_ms: Option<Between>,
    pub p90_ms: Option<Between>,
    pub p99_ms: Option<Between>,
}

impl Quantiles {
    pub fn by(quantile_ms: impl Fn(f64) -> Option<Between>) -> Self {
        let [p50_ms, p90_ms, p99_ms] = [0.5, 0.9, 0.99].map(quantile_ms);
        Self { p50_ms, p90_ms, p99_ms }
    }

    pub fn each(&self) -> [Option<Between>; 3] {
        [self.p50_ms, self.p90_ms, self.p99_ms]
    }
}

impl Times {
    /// Adds a histogram whose unit has so many seconds.
    pub fn add_histogram(&mut self, histogram: &Histogram, seconds: f64) {
        self.sum += histogram.sum * seconds;
        self.count += histogram.count as f64;
        self.add_buckets(&Buckets::of(histogram, seconds));
    }

    fn add_buckets(&mut self, other: &Buckets) {
        match self.histograms.iter_mut().find(|it| it.agrees(other)) {
            Some(known) => known.add(other, 1.0),
            None => self.histograms.push(other.clone()),
        }
    }

    /// The observations since an earlier reading of the same series. One that counts less than before, or
    /// in other buckets, began anew.
    pub fn since(&self, before: &Self) -> Self {
        let all_agree = self.histograms.len() == before.histograms.len()
            && self.histograms.iter().zip(&before.histograms).all(|(one, other)| one.agrees(other));
        if before.count > self.count || !all_agree {
            return self.clone();
        }
        let mut grown = self.clone();
        grown.sum -= before.sum;
        grown.count -= before.count;
        for (now, before) in grown.histograms.iter_mut().zip(&before.histograms) {
            now.add(before, -1.0);
        }
        grown
    }

    pub fn add(&mut self, other: &Self) {
        self.sum += other.sum;
        self.count += other.count;
        other.histograms.iter().for_each(|it| self.add_buckets(it));
    }

    /// The mean in milliseconds; `None` if there were no requests, or one took no finite time.
    pub fn mean_ms(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count * 1e3).filter(|mean| mean.is_finite())
    }

    /// The interval that a quantile lies in, in milliseconds, by the finest buckets that there are;
    /// `None` if nothing was observed.
    pub fn quantile_ms(&self, quantile: f64) -> Option<Between> {
        quantile_of(&self.buckets(), quantile).map(|found| found.times(1e3))
    }

    /// The buckets that hold something, of the finest that there are, in seconds. Those of services
    /// that count in other buckets overlap.
    pub fn buckets(&self) -> Vec<(Between, f64)> {
        let all = self.histograms.iter().flat_map(Buckets::each);
        all.filter(|(_, count)| *count > 0.0).collect()
    }

    pub fn quantiles(&self) -> Quantiles {
        Quantiles::by(|quantile| self.quantile_ms(quantile))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_page::Bucket;

    #[test]
    fn a_histogram_in_other_buckets_began_anew() {
        let of = |bounds: &[f64], count| {
            let mut times = Times::default();
            let classic = bounds
                .iter()
                .map(|&upper_bound| Bucket { cumulative_count: count, upper_bound, exemplar: None })
                .collect();
            let histogram = Histogram { count, classic, ..Histogram::default() };
            times.add_histogram(&histogram, 1.0);
            times
        };
        for (bounds, expected) in [([0.1, 1.0], 20.0), ([0.2, 1.0], 120.0)] {
            let grown = of(&bounds, 120).since(&of(&[0.1, 1.0], 100));
            let in_buckets: f64 = grown.buckets().iter().map(|(_, count)| count).sum();
            assert_eq!((grown.count, in_buckets), (expected, expected));
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
                Histogram { count: 100, classic: buckets.collect(), ..Histogram::default() };
            times.add_histogram(&histogram, 1.0);
            let found = times.quantiles();
            assert_eq!(found.p50_ms, Some(Between { low: 1e3, high: None }));
            assert_eq!(times.quantile_ms(0.3), Some(Between { low: 100.0, high: Some(1e3) }));
        }
    }

    fn classic(bounds: &[(f64, u64)]) -> Histogram {
        let count = bounds.last().map_or(0, |last| last.1);
        let classic = bounds
            .iter()
            .map(|&(upper_bound, cumulative_count)| Bucket {
                cumulative_count,
                upper_bound,
                exemplar: None,
            })
            .collect();
        Histogram { count, classic, ..Histogram::default() }
    }

    /// As a service shows so many durations of these milliseconds.
    fn native(schema: i8, millis: &[(u64, u64)]) -> Histogram {
        use talea::{Bucketing, Opts, Registry, Seconds};
        let registry = Registry::for_test().unwrap();
        let opts = Opts::new("took", "T.").bucketing(Bucketing::Native).schema(schema);
        let took: talea::Histogram<Seconds> = registry.register(opts).unwrap();
        for (millis, count) in millis {
            for _ in 0..*count {
                took.observe(std::time::Duration::from_millis(*millis));
            }
        }
        let families = registry.snapshot().to_families();
        families[0].series[0].value.histogram().unwrap().clone()
    }

    fn assert_holds(times: &Times, quantile: f64, seconds: f64, most: f64) {
        let found = times.quantile_ms(quantile).unwrap().times(1e-3);
        let high = found.high.unwrap_or(f64::INFINITY);
        assert!(found.low < seconds && seconds <= high * (1.0 + 1e-9), "{quantile}: {found:?}");
        assert!(high - found.low <= most, "{quantile}: {found:?} is too wide");
    }

    #[test]
    fn a_quantile_of_services_with_other_buckets_lies_where_all_of_them_allow() {
        // 100 of 50 ms, in other thresholds each; 10 of 2 s in the second.
        let one = classic(&[(0.1, 100), (1.0, 100)]);
        let other = classic(&[(0.025, 0), (0.06, 100), (0.5, 100), (5.0, 110)]);
        for order in [[&one, &other], [&other, &one]] {
            let mut all = Times::default();
            order.iter().for_each(|histogram| all.add_histogram(histogram, 1.0));
            assert_eq!(all.count, 210.0);
            assert_eq!(all.buckets().iter().map(|it| it.1).sum::<f64>(), 210.0);
            assert_holds(&all, 0.5, 0.05, 0.1);
            assert_holds(&all, 0.99, 2.0, 4.5);
        }
    }

    #[test]
    fn native_and_classic_buckets_of_several_services_are_read_together() {
        let fine = native(5, &[(10, 100)]);
        let coarse = native(2, &[(10, 100), (900, 10)]);
        let classic = classic(&[(0.1, 100), (1.0, 150)]);
        let mut natives = Times::default();
        natives.add_histogram(&fine, 1.0);
        natives.add_histogram(&coarse, 1.0);
        // In the coarser buckets of the two.
        assert_holds(&natives, 0.5, 0.01, 0.003);
        assert_holds(&natives, 0.99, 0.9, 0.3);
        // None is left out beside buckets of another sort, or in another unit.
        let mut all = natives.clone();
        all.add_histogram(&classic, 1.0);
        let mut millis = native(5, &[(10, 1)]);
        millis.sum = 10.0;
        all.add_histogram(&millis, 1e-3);
        assert_eq!(all.count, 361.0);
        assert_eq!(all.buckets().iter().map(|it| it.1).sum::<f64>(), 361.0);
        assert_holds(&all, 0.5, 0.01, 0.003);
        let high = all.quantile_ms(1.0).unwrap().high.unwrap();
        assert!((900.0..1100.0).contains(&high), "{high}");
    }
}
