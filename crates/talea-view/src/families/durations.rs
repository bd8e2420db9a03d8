//! Classic histograms of durations, and the intervals that quantiles lie in.

use serde::{Deserialize, Serialize};

/// A histogram of durations, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Durations {
    pub sum: f64,
    pub count: f64,
    /// Thresholds in their order, each with the requests that took at most that long.
    pub below: Vec<(f64, f64)>,
}

/// An interval that a quantile lies in.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Between {
    /// Above this.
    pub low: f64,
    /// And at most this; none where that is not known either.
    pub high: Option<f64>,
}

impl Between {
    /// The value whose greatest relative error is the least, and that error; none if it would be
    /// above a tenth.
    pub fn estimate(self) -> Option<(f64, f64)> {
        let high = self.high?;
        let error = (high - self.low) / (high + self.low);
        (error <= 0.1).then(|| (2.0 * self.low * high / (self.low + high), error))
    }

    /// In another unit.
    pub fn times(self, factor: f64) -> Self {
        Self { low: self.low * factor, high: self.high.map(|high| high * factor) }
    }
}

/// The interval that a quantile of the values in some buckets lies in, whatever their bounds are.
/// They may overlap: then it is as narrow as the bounds of all of them say for certain. `None` if
/// there are no values.
pub fn quantile_of(buckets: &[(Between, f64)], quantile: f64) -> Option<Between> {
    let total: f64 = buckets.iter().map(|(_, count)| count.max(0.0)).sum();
    if total <= 0.0 {
        return None;
    }
    let rank = (quantile * total).max(f64::MIN_POSITIVE);
    let high_of = |bucket: &Between| bucket.high.unwrap_or(f64::INFINITY);
    let mut filled: Vec<&(Between, f64)> = buckets.iter().filter(|it| it.1 > 0.0).collect();
    // As many values are at most at a bound as are in the buckets that end there or below it.
    filled.sort_by(|one, other| high_of(&one.0).total_cmp(&high_of(&other.0)));
    let mut below = 0.0;
    let last = filled.last().map(|it| it.0.high);
    let high = filled
        .iter()
        .find(|it| {
            below += it.1;
            below >= rank
        })
        .map(|it| it.0.high)
        .or(last)?;
    // And no more are than are in the buckets that begin below it.
    filled.sort_by(|one, other| one.0.low.total_cmp(&other.0.low));
    let (mut low, mut begun) = (filled.first()?.0.low, 0.0);
    for (bucket, count) in filled {
        if bucket.low > low {
            if begun >= rank {
                break;
            }
            low = bucket.low;
        }
        begun += count;
    }
    Some(Between { low, high })
}

impl Durations {
    /// Adds requests that took at most `threshold` seconds.
    pub fn add(&mut self, threshold: f64, count: f64) {
        let at = self.below.partition_point(|(known, _)| *known < threshold);
        match self.below.get_mut(at).filter(|(known, _)| *known == threshold) {
            Some((_, known)) => *known += count,
            None => self.below.insert(at, (threshold, count)),
        }
    }

    /// Adds what was observed between two readings of one process.
    pub fn add_increase(&mut self, from: &Self, to: &Self) {
        self.sum += to.sum - from.sum;
        self.count += to.count - from.count;
        for (threshold, count) in &to.below {
            let before = from.below.iter().find(|(known, _)| known == threshold);
            self.add(*threshold, count - before.map_or(0.0, |(_, count)| *count));
        }
    }

    /// Their mean in milliseconds; none where there were none, or one was no finite number.
    pub fn mean_ms(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count * 1e3).filter(|mean| mean.is_finite())
    }

    /// Between which two thresholds a quantile lies, in milliseconds: more is not known of it. None
    /// where nothing was observed; a quantile above the last threshold has no upper end.
    pub fn quantile_ms(&self, quantile: f64) -> Option<Between> {
        let total = self.below.last().map(|(_, count)| *count).filter(|total| *total > 0.0)?;
        let at = self.below.iter().position(|(_, count)| *count >= quantile * total)?;
        let lower = at.checked_sub(1).map_or(0.0, |before| self.below[before].0);
        let upper = self.below[at].0;
        Some(Between { low: lower * 1e3, high: upper.is_finite().then_some(upper * 1e3) })
    }
}
