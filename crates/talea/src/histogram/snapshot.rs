//! A histogram as a reader sees it.

use crate::histogram::native_buckets::NativeBuckets;

/// The buckets and the sum of a histogram, or of several that have the same thresholds, at one
/// instant; or the observations between two. The cost of each question is linear in the buckets.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramSnapshot {
    /// Upper bounds in the shown unit, ascending; `+Inf` is not among them.
    pub(crate) thresholds: Vec<f64>,
    /// Observations in each bucket, not cumulative; one more than thresholds.
    pub(crate) buckets: Vec<u64>,
    /// The sum of those that are finite, in the shown unit.
    pub(crate) finite_sum: f64,
    pub(crate) beyond: NonFinite,
    /// These observations in native buckets, if there are any.
    pub(crate) native: Option<NativeBuckets>,
}

impl HistogramSnapshot {
    /// A histogram of native buckets alone, and the sum of their observations; it merges with a snapshot of a
    /// histogram whose [`Bucketing`](crate::Bucketing) is native.
    pub fn of_native(native: NativeBuckets, sum: f64) -> Self {
        Self {
            thresholds: Vec::new(),
            buckets: vec![native.count()],
            finite_sum: sum,
            beyond: NonFinite::default(),
            native: Some(native),
        }
    }

    /// Observations.
    pub fn count(&self) -> u64 {
        total(&self.buckets)
    }

    /// Their sum, in the shown unit (seconds, bytes). An observation that was under way
    /// on another thread may be in only one of the count and the sum.
    pub fn sum(&self) -> f64 {
        self.beyond.sum(self.finite_sum)
    }

    /// Their mean; `None` if there are none.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum() / count as f64)
    }

    /// The native buckets, unless it has only classic ones.
    pub fn native(&self) -> Option<&NativeBuckets> {
        self.native.as_ref()
    }

    /// The smallest value that a share `q` (0 to 1) of the observations does not exceed; `None` if
    /// there are none. A `q` out of range is clamped.
    ///
    /// With native buckets it is the middle of the value's bucket: within (β − 1) / (β + 1) of the
    /// exact one, see [`NativeBuckets`]; in the zero bucket it is 0. With classic buckets alone it
    /// is interpolated within its bucket as Prometheus' `histogram_quantile` does, and the error is
    /// at most the width of the bucket; a value above the last threshold counts as the last
    /// threshold.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        match &self.native {
            Some(native) => native.quantile(q),
            None => self.classic_quantile(q),
        }
    }

    fn classic_quantile(&self, q: f64) -> Option<f64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = q.clamp(0.0, 1.0) * count as f64;
        let mut below = 0_u64;
        for (n, &upper) in self.thresholds.iter().enumerate() {
            let here = self.buckets[n];
            let up_to_here = below.wrapping_add(here);
            if here > 0 && up_to_here as f64 >= rank {
                let lower = self.lower_bound(n);
                let share = ((rank - below as f64) / here as f64).max(0.0);
                return Some(lower + (upper - lower) * share);
            }
            below = up_to_here;
        }
        self.thresholds.last().copied()
    }

    /// From where the observations of a bucket are taken to be spread: the first one's are
    /// not negative, unless its threshold is.
    fn lower_bound(&self, n: usize) -> f64 {
        match n.checked_sub(1) {
            Some(below) => self.thresholds[below],
            None => self.thresholds[0].min(0.0),
        }
    }

    /// The observations since an earlier snapshot of the same histogram. If it is not an earlier
    /// one of the same (it has other thresholds, or higher counts), the result is empty.
    pub fn diff(&self, earlier: &Self) -> Self {
        let native = match (&self.native, &earlier.native) {
            (Some(now), Some(then)) => now.diff(then).map(Some),
            (None, None) => Some(None),
            _ => None,
        };
        let grew = self.thresholds == earlier.thresholds
            && self.buckets.iter().zip(&earlier.buckets).all(|(now, then)| now >= then);
        let thresholds = self.thresholds.clone();
        match native {
            Some(native) if grew => Self {
                thresholds,
                buckets: self.buckets.iter().zip(&earlier.buckets).map(|(a, b)| a - b).collect(),
                finite_sum: self.finite_sum - earlier.finite_sum,
                beyond: self.beyond.diff(earlier.beyond),
                native,
            },
            _ => Self {
                thresholds,
                buckets: vec![0; self.buckets.len()],
                finite_sum: 0.0,
                beyond: NonFinite::default(),
                native: self.native.as_ref().map(NativeBuckets::emptied),
            },
        }
    }

    /// Each bucket's upper bound with the observations up to it, as `le` has
    /// them; the last is `+Inf` with the count.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let bounds = self.thresholds.iter().copied().chain([f64::INFINITY]);
        bounds.zip(&self.buckets).scan(0_u64, |total, (bound, here)| {
            *total = total.wrapping_add(*here);
            Some((bound, *total))
        })
    }

    /// An estimate of how many observations are at most `x`, in the shown unit. It is exact if `x`
    /// is a threshold. Otherwise it interpolates within the native bucket of `x`, on a logarithmic
    /// scale. Without native buckets it interpolates linearly within the classic bucket; then no
    /// observation above the last threshold counts as at most a finite `x`.
    pub fn count_below(&self, x: f64) -> f64 {
        if let Some(n) = self.thresholds.iter().position(|&threshold| threshold == x) {
            return total(&self.buckets[..=n]) as f64;
        }
        if x == f64::INFINITY {
            return self.count() as f64;
        }
        match &self.native {
            Some(native) => native.count_below(x),
            None => self.classic_count_below(x),
        }
    }

    fn classic_count_below(&self, x: f64) -> f64 {
        let mut below = 0.0;
        for (n, &upper) in self.thresholds.iter().enumerate() {
            let here = self.buckets[n] as f64;
            if x < upper {
                let lower = self.lower_bound(n);
                let share = if upper > lower { (x - lower) / (upper - lower) } else { 0.0 };
                return below + here * share.clamp(0.0, 1.0);
            }
            below += here;
        }
        below
    }

    /// Adds another histogram's observations; one of other thresholds, or of which one has
    /// native buckets and the other none, is left out, and false returned. Of native
    /// buckets the coarser schema is kept.
    pub fn merge(&mut self, other: &Self) -> bool {
        if self.thresholds != other.thresholds || self.native.is_some() != other.native.is_some() {
            return false;
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine = mine.wrapping_add(*theirs);
        }
        self.finite_sum += other.finite_sum;
        self.beyond.add(other.beyond);
        if let (Some(mine), Some(theirs)) = (&mut self.native, &other.native) {
            mine.merge(theirs);
        }
        true
    }
}

/// All of some buckets. Counts come to their end and begin anew, as a counter does: it takes
/// centuries to count so far, but a region that others write to may hold anything.
fn total(buckets: &[u64]) -> u64 {
    buckets.iter().fold(0, |total, here| total.wrapping_add(*here))
}

/// The counts of observations that are not finite numbers. They are not added to the stored sum, so
/// that it stays a number; the shown sum takes them into account.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct NonFinite {
    pub(crate) nan: u64,
    pub(crate) minus_infinity: u64,
    pub(crate) infinity: u64,
}

impl NonFinite {
    /// The sum of all, those that are finite having this.
    pub(crate) fn sum(self, finite: f64) -> f64 {
        match (self.nan, self.minus_infinity, self.infinity) {
            (0, 0, 0) => finite,
            (0, 0, _) => f64::INFINITY,
            (0, _, 0) => f64::NEG_INFINITY,
            _ => f64::NAN,
        }
    }

    fn add(&mut self, other: Self) {
        self.nan = self.nan.wrapping_add(other.nan);
        self.minus_infinity = self.minus_infinity.wrapping_add(other.minus_infinity);
        self.infinity = self.infinity.wrapping_add(other.infinity);
    }

    fn diff(self, earlier: Self) -> Self {
        Self {
            nan: self.nan.saturating_sub(earlier.nan),
            minus_infinity: self.minus_infinity.saturating_sub(earlier.minus_infinity),
            infinity: self.infinity.saturating_sub(earlier.infinity),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(buckets: [u64; 4], sum: f64) -> HistogramSnapshot {
        let (thresholds, buckets) = (vec![1.0, 2.0, 4.0], buckets.to_vec());
        let beyond = NonFinite::default();
        HistogramSnapshot { thresholds, buckets, finite_sum: sum, beyond, native: None }
    }

    #[test]
    fn a_quantile_is_interpolated_within_its_bucket() {
        let h = some([10, 0, 10, 0], 40.0);
        for (q, expected) in
            [(0.0, 0.0), (0.25, 0.5), (0.5, 1.0), (0.75, 3.0), (1.0, 4.0), (7.0, 4.0)]
        {
            assert_eq!(h.quantile(q), Some(expected), "{q}");
        }
        assert_eq!(some([0, 0, 0, 5], 99.0).quantile(0.5), Some(4.0));
        assert_eq!(some([0; 4], 0.0).quantile(0.5), None);
        assert_eq!(some([0; 4], 0.0).mean(), None);
    }

    #[test]
    fn observations_below_a_value_are_estimated_within_its_bucket() {
        let h = some([10, 0, 10, 5], 99.0);
        for (x, expected) in [
            (f64::NEG_INFINITY, 0.0),
            (-1.0, 0.0),
            (0.5, 5.0),
            (1.0, 10.0),
            (1.5, 10.0),
            (3.0, 15.0),
            (4.0, 20.0),
            (9.0, 20.0),
            (f64::INFINITY, 25.0),
        ] {
            assert_eq!(h.count_below(x), expected, "{x}");
        }
    }

    #[test]
    fn a_difference_holds_what_came_between() {
        let (then, now) = (some([1, 0, 2, 0], 7.0), some([4, 0, 2, 1], 20.0));
        assert_eq!(now.diff(&then), some([3, 0, 0, 1], 13.0));
        assert_eq!(then.diff(&now), some([0; 4], 0.0), "a histogram that restarted");
        let cumulative: Vec<_> = now.cumulative().collect();
        assert_eq!(cumulative, [(1.0, 4), (2.0, 4), (4.0, 6), (f64::INFINITY, 7)]);
    }

    #[test]
    fn counts_that_nobody_can_have_counted_begin_anew_and_break_nothing() {
        let native = NativeBuckets {
            zero: u64::MAX,
            positive: vec![(1, u64::MAX), (2, 5)],
            negative: vec![(1, u64::MAX)],
            nan: u64::MAX,
            ..NativeBuckets::default()
        };
        let beyond = NonFinite { nan: u64::MAX, minus_infinity: u64::MAX, infinity: u64::MAX };
        for native in [None, Some(native)] {
            let mut h = some([u64::MAX, u64::MAX, 5, u64::MAX], f64::NAN);
            (h.native, h.beyond) = (native, beyond);
            assert_eq!(h.count(), 2);
            let counts: Vec<u64> = h.cumulative().map(|(_, count)| count).collect();
            assert_eq!(counts, [u64::MAX, u64::MAX - 1, 3, 2]);
            assert_eq!(h.count_below(2.0), (u64::MAX - 1) as f64);
            let other = h.clone();
            assert!(h.merge(&other));
            assert_eq!(h.buckets, [u64::MAX - 1, u64::MAX - 1, 10, u64::MAX - 1]);
            assert_eq!(h.beyond.nan, u64::MAX - 1);
            assert_eq!(h.diff(&other).count(), 0, "it counted more before");
            for q in [0.0, 0.5, 0.99, 1.0, f64::NAN] {
                let _ = (h.quantile(q), other.quantile(q));
            }
            for x in [f64::NEG_INFINITY, -1.0, 0.0, 0.5, 1.5, 9.0, f64::INFINITY, f64::NAN] {
                let _ = (h.count_below(x), other.count_below(x));
            }
        }
    }
}
