//! A histogram as a reader sees it.

/// The buckets and the sum of a histogram, or of several that have the same
/// thresholds, at one instant; or what was observed between two. The cost of each
/// question is linear in the buckets.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramSnapshot {
    /// Upper bounds in the shown unit, ascending; `+Inf` is not among them.
    pub(crate) thresholds: Vec<f64>,
    /// Observations in each bucket, not cumulative; one more than thresholds.
    pub(crate) buckets: Vec<u64>,
    /// The sum in the shown unit.
    pub(crate) sum: f64,
}

impl HistogramSnapshot {
    /// Observations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Their sum, in the shown unit (seconds, bytes). An observation that was under way
    /// on another thread may be in only one of the count and the sum.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Their mean; `None` where there are none.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum / count as f64)
    }

    /// The value that a share `q` (0 to 1) of the observations does not exceed,
    /// interpolated within its bucket as Prometheus' `histogram_quantile` does;
    /// `None` where there are none. What is above the last threshold counts as
    /// the last threshold; a `q` out of range counts as the nearest in it. The error is
    /// at most the width of its bucket.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = q.clamp(0.0, 1.0) * count as f64;
        let mut below = 0;
        for (n, &upper) in self.thresholds.iter().enumerate() {
            let here = self.buckets[n];
            if here > 0 && (below + here) as f64 >= rank {
                let lower = if n == 0 { 0.0 } else { self.thresholds[n - 1] };
                let share = ((rank - below as f64) / here as f64).max(0.0);
                return Some(lower + (upper - lower) * share);
            }
            below += here;
        }
        self.thresholds.last().copied()
    }

    /// What was observed since an earlier snapshot of the same histogram. Where
    /// it is not the same (other thresholds, or it counted more), nothing was.
    pub fn diff(&self, earlier: &Self) -> Self {
        let grew = self.thresholds == earlier.thresholds
            && self.buckets.iter().zip(&earlier.buckets).all(|(now, then)| now >= then);
        if !grew {
            return Self {
                thresholds: self.thresholds.clone(),
                buckets: vec![0; self.buckets.len()],
                sum: 0.0,
            };
        }
        Self {
            thresholds: self.thresholds.clone(),
            buckets: self
                .buckets
                .iter()
                .zip(&earlier.buckets)
                .map(|(now, then)| now - then)
                .collect(),
            sum: self.sum - earlier.sum,
        }
    }

    /// Each bucket's upper bound with the observations up to it, as `le` has
    /// them; the last is `+Inf` with the count.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let bounds = self.thresholds.iter().copied().chain([f64::INFINITY]);
        bounds.zip(&self.buckets).scan(0, |total, (bound, here)| {
            *total += here;
            Some((bound, *total))
        })
    }

    /// About how many observations are at most `x`, in the shown unit: exact where `x` is
    /// a threshold, else as if those of its bucket were spread evenly. Of those above the
    /// last threshold none is known to be at most a finite `x`.
    pub fn count_below(&self, x: f64) -> f64 {
        let mut below = 0.0;
        for (n, &upper) in self.thresholds.iter().enumerate() {
            let here = self.buckets[n] as f64;
            if x < upper {
                let lower = if n == 0 { 0.0 } else { self.thresholds[n - 1] };
                let share = (x - lower) / (upper - lower);
                return below + here * share.clamp(0.0, 1.0);
            }
            below += here;
        }
        if x == f64::INFINITY { self.count() as f64 } else { below }
    }

    /// Adds another histogram's observations; one of other thresholds is left
    /// out, and false returned.
    pub fn merge(&mut self, other: &Self) -> bool {
        if self.thresholds != other.thresholds {
            return false;
        }
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(mine, theirs)| *mine += theirs);
        self.sum += other.sum;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(buckets: [u64; 4], sum: f64) -> HistogramSnapshot {
        HistogramSnapshot { thresholds: vec![1.0, 2.0, 4.0], buckets: buckets.to_vec(), sum }
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
    fn what_is_below_is_counted_within_its_bucket_too() {
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
}
