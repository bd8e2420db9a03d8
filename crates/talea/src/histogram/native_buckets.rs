//! Native buckets as a reader sees them.

use super::buckets::{COARSEST, coarser, growth, upper_bound};

/// The native (exponential) buckets of a histogram: bucket *i* of schema *n* holds (β^(i−1), β^i]
/// with β = 2^(2^−n), in the shown unit; negative values are bucketed in the same way by their
/// absolute value. Empty buckets are left out.
///
/// Each quantile computed from them is within (β − 1) / (β + 1) of the exact one: at schema 3
/// within 4.33 %, at 5 within 1.08 %, at 8 within 0.14 %.
///
/// There is one exception, of floats beyond 2^64. A series has places for 64 octaves of floats of each
/// sign, and an octave can be in eight of them. Floats of one that finds none are in buckets of schema −4, and
/// those beyond 2^64 all in the last of these, which begins at 2^1008. It takes nine octaves with exponents that
/// differ by multiples of 8.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NativeBuckets {
    pub(crate) schema: i8,
    pub(crate) zero_threshold: f64,
    pub(crate) zero: u64,
    /// Ascending by bucket.
    pub(crate) positive: Vec<(i32, u64)>,
    pub(crate) negative: Vec<(i32, u64)>,
    pub(crate) nan: u64,
}

impl NativeBuckets {
    /// Buckets of positive values from elsewhere, such as a file: the schema (−4 to 8; clamped), up to which value
    /// observations count as zero, how many do, and the buckets with their observations. Buckets of the same number
    /// add up.
    pub fn new(schema: i8, zero_threshold: f64, zero: u64, positive: Vec<(i32, u64)>) -> Self {
        let mut by_bucket = std::collections::BTreeMap::<i32, u64>::new();
        for (bucket, count) in positive {
            let here = by_bucket.entry(bucket).or_default();
            *here = here.wrapping_add(count);
        }
        let positive = by_bucket.into_iter().filter(|(_, count)| *count > 0).collect();
        let schema = schema.clamp(COARSEST, 8);
        Self { schema, zero_threshold, zero, positive, ..Self::default() }
    }

    /// The schema, −4 to 8: how fine the buckets are.
    pub fn schema(&self) -> i8 {
        self.schema
    }

    /// The ratio of an upper bound to the one below it.
    pub fn growth(&self) -> f64 {
        growth(self.schema)
    }

    /// A value whose distance from 0 is at most this counts as zero.
    pub fn zero_threshold(&self) -> f64 {
        self.zero_threshold
    }

    /// Observations that count as zero.
    pub fn zero_count(&self) -> u64 {
        self.zero
    }

    /// The buckets of positive values with their observations, ascending.
    pub fn positive(&self) -> &[(i32, u64)] {
        &self.positive
    }

    /// The buckets of negative values, by how far they are from 0.
    pub fn negative(&self) -> &[(i32, u64)] {
        &self.negative
    }

    /// Observations: those in buckets, and those that are no number.
    pub fn count(&self) -> u64 {
        let sides = self.positive.iter().chain(&self.negative).map(|&(_, count)| count);
        sides.fold(self.zero.wrapping_add(self.nan), u64::wrapping_add)
    }

    /// The upper bound of a bucket of positive values, in the shown unit.
    pub fn upper_bound(&self, bucket: i32) -> f64 {
        upper_bound(bucket, self.schema)
    }

    /// As [`HistogramSnapshot::quantile`](crate::HistogramSnapshot::quantile).
    pub(crate) fn quantile(&self, q: f64) -> Option<f64> {
        let count = self.count().wrapping_sub(self.nan);
        if count == 0 {
            return None;
        }
        let rank = rank(q.clamp(0.0, 1.0), count);
        let mut below = 0_u64;
        let found = self.ascending().find(|&(_, here)| {
            below = below.saturating_add(here);
            below >= rank
        });
        found.map(|(place, _)| match place {
            Place::Zero => 0.0,
            Place::Positive(bucket) => self.middle(bucket),
            Place::Negative(bucket) => -self.middle(bucket),
        })
    }

    /// How many are at most `x`, with the bucket of `x` spread evenly over its logarithm.
    pub(crate) fn count_below(&self, x: f64) -> f64 {
        let share = |lower: f64, upper: f64| {
            if x >= upper {
                1.0
            } else if x <= lower {
                0.0
            } else if lower > 0.0 {
                (x / lower).ln() / (upper / lower).ln()
            } else {
                (x - lower) / (upper - lower)
            }
        };
        let positive = self.positive.iter().map(|&(bucket, count)| {
            let lower = self.upper_bound(bucket - 1);
            // No observation beyond the largest float is at most a finite value.
            let upper = self.upper_bound(bucket);
            let here =
                if upper.is_infinite() { f64::from(x == upper) } else { share(lower, upper) };
            count as f64 * here
        });
        let negative = self.negative.iter().map(|&(bucket, count)| {
            let (upper, lower) = (-self.upper_bound(bucket - 1), -self.upper_bound(bucket));
            let here = if x >= upper {
                1.0
            } else if x <= lower {
                0.0
            } else {
                1.0 - (x / upper).ln() / (lower / upper).ln()
            };
            count as f64 * here
        });
        let zero = if x >= self.zero_threshold { 1.0 } else { share(-self.zero_threshold, 0.0) };
        positive.chain(negative).sum::<f64>() + self.zero as f64 * zero
    }

    /// Every bucket, ascending by its values, with its observations.
    fn ascending(&self) -> impl Iterator<Item = (Place, u64)> + '_ {
        let negative = self.negative.iter().rev().map(|&(bucket, n)| (Place::Negative(bucket), n));
        let positive = self.positive.iter().map(|&(bucket, n)| (Place::Positive(bucket), n));
        negative.chain([(Place::Zero, self.zero)]).chain(positive)
    }

    /// As far, in parts of itself, from the lower bound of a bucket as from the upper.
    fn middle(&self, bucket: i32) -> f64 {
        // The upper bound of the last buckets is not a float.
        self.upper_bound(bucket - 1) * (2.0 * self.growth() / (self.growth() + 1.0))
    }
}

/// A bucket by its sign and its number.
#[derive(Clone, Copy)]
enum Place {
    Negative(i32),
    Zero,
    Positive(i32),
}

/// How many of `count`, from 1 on, a share of them is, rounded up.
pub(crate) fn rank(q: f64, count: u64) -> u64 {
    let exact = q * count as f64;
    // Shares such as 0.07 are no floats: 7 of 100 would be a little more than 7.
    let nearest = exact.round();
    let is_meant = (exact - nearest).abs() <= exact * f64::EPSILON;
    (if is_meant { nearest } else { exact.ceil() } as u64).clamp(1, count)
}

impl NativeBuckets {
    /// Reduces them if there are more than `most`: first values of at most `widest_zero` counts as
    /// zero, then buckets are joined by twos.
    pub(crate) fn fit(&mut self, most: usize, widest_zero: f64) {
        let most = most.max(1);
        if self.len() > most && widest_zero > self.zero_threshold {
            self.widen_zero(widest_zero);
        }
        while self.len() > most && self.schema > COARSEST {
            self.coarsen(self.schema - 1);
        }
    }

    fn len(&self) -> usize {
        self.positive.len() + self.negative.len()
    }

    /// Moves all buckets that are at most so far from 0 into the zero bucket.
    fn widen_zero(&mut self, widest: f64) {
        for side in [&self.positive, &self.negative] {
            let bounds = side.iter().map(|&(bucket, _)| upper_bound(bucket, self.schema));
            let reached = bounds.take_while(|&bound| bound <= widest);
            self.zero_threshold = reached.fold(self.zero_threshold, f64::max);
        }
        self.count_as_zero();
    }

    /// Moves the buckets that are within the zero bucket into it.
    fn count_as_zero(&mut self) {
        let Self { schema, zero_threshold: reach, zero, positive, negative, .. } = self;
        for side in [positive, negative] {
            let first = side.partition_point(|&(bucket, _)| upper_bound(bucket, *schema) <= *reach);
            side.drain(..first).for_each(|(_, count)| *zero = zero.wrapping_add(count));
        }
    }

    /// Joins buckets until they have a coarser schema.
    pub(crate) fn coarsen(&mut self, schema: i8) {
        let by = self.schema - schema;
        if by <= 0 {
            return;
        }
        for side in [&mut self.positive, &mut self.negative] {
            side.iter_mut().for_each(|(bucket, _)| *bucket = coarser(i64::from(*bucket), by));
            join(side);
        }
        self.schema = schema;
        self.count_as_zero();
    }

    /// The coarser schema and the wider zero of two, which both then have.
    fn align(&mut self, other: &mut Self) {
        let schema = self.schema.min(other.schema);
        self.coarsen(schema);
        other.coarsen(schema);
        if self.zero_threshold == other.zero_threshold {
            return;
        }
        let mut zero = self.zero_threshold.max(other.zero_threshold);
        // If the zero bucket of one ends within a bucket, the other may hold more in that. So that
        // bucket, and its counterpart of the other sign, is added to the zero bucket of both.
        while let Some(end) = self.end_of_cut(zero).or(other.end_of_cut(zero)) {
            zero = end;
        }
        for one in [self, other] {
            one.widen_zero(zero);
            one.zero_threshold = zero;
        }
    }

    /// The end of the bucket that this value is in, if there is one.
    fn end_of_cut(&self, zero: f64) -> Option<f64> {
        let mut all = self.positive.iter().chain(&self.negative);
        all.find_map(|&(bucket, _)| {
            let end = self.upper_bound(bucket);
            (self.upper_bound(bucket - 1) < zero && zero < end).then_some(end)
        })
    }

    /// Buckets of the same schema and zero threshold, without observations.
    pub(crate) fn emptied(&self) -> Self {
        let (schema, zero_threshold) = (self.schema, self.zero_threshold);
        Self { schema, zero_threshold, ..Self::default() }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        self.align(&mut other);
        self.zero = self.zero.wrapping_add(other.zero);
        self.nan = self.nan.wrapping_add(other.nan);
        for (mine, theirs) in
            [(&mut self.positive, other.positive), (&mut self.negative, other.negative)]
        {
            mine.extend(theirs);
            join(mine);
        }
    }

    /// The observations since an earlier state; `None` if it is not an earlier one.
    pub(crate) fn diff(&self, earlier: &Self) -> Option<Self> {
        let mut found = self.clone();
        found.take_away(earlier).then_some(found)
    }

    /// As [`diff`](Self::diff), in memory that is reused, unless all observations are since then.
    pub(crate) fn since<'a>(&'a self, earlier: &Self, memory: &'a mut Self) -> Option<&'a Self> {
        if self.is_aligned_with(earlier) && earlier.is_empty() {
            return Some(self);
        }
        memory.copy(self);
        memory.take_away(earlier).then_some(memory)
    }

    /// Becomes another, in the same memory.
    pub(crate) fn copy(&mut self, other: &Self) {
        let Self { schema, zero_threshold, zero, positive, negative, nan } = other;
        self.positive.clone_from(positive);
        self.negative.clone_from(negative);
        (self.schema, self.zero_threshold) = (*schema, *zero_threshold);
        (self.zero, self.nan) = (*zero, *nan);
    }

    /// Becomes one without observations, in the same memory.
    pub(crate) fn clear(&mut self, schema: i8, zero_threshold: f64) {
        self.positive.clear();
        self.negative.clear();
        (self.schema, self.zero_threshold) = (schema, zero_threshold);
        (self.zero, self.nan) = (0, 0);
    }

    fn is_empty(&self) -> bool {
        (self.zero, self.nan, self.len()) == (0, 0, 0)
    }

    fn is_aligned_with(&self, other: &Self) -> bool {
        (self.schema, self.zero_threshold) == (other.schema, other.zero_threshold)
    }

    /// Subtracts an earlier state; false if it is not an earlier one.
    fn take_away(&mut self, earlier: &Self) -> bool {
        if self.is_aligned_with(earlier) {
            return self.take_away_aligned(earlier).is_some();
        }
        let mut then = earlier.clone();
        self.align(&mut then);
        self.take_away_aligned(&then).is_some()
    }

    fn take_away_aligned(&mut self, then: &Self) -> Option<()> {
        self.zero = self.zero.checked_sub(then.zero)?;
        self.nan = self.nan.checked_sub(then.nan)?;
        let sides = [(&mut self.positive, &then.positive), (&mut self.negative, &then.negative)];
        for (mine, theirs) in sides {
            let mut theirs = theirs.iter().peekable();
            for (bucket, count) in mine.iter_mut() {
                if theirs.peek().is_some_and(|(other, _)| other < bucket) {
                    return None;
                }
                if let Some((_, before)) = theirs.next_if(|(other, _)| other == bucket) {
                    *count = count.checked_sub(*before)?;
                }
            }
            if theirs.next().is_some() {
                return None;
            }
            mine.retain(|&(_, count)| count > 0);
        }
        Some(())
    }
}

/// Sorts buckets and has each of them once.
pub(crate) fn join(buckets: &mut Vec<(i32, u64)>) {
    if buckets.is_sorted_by(|one, next| one.0 < next.0) {
        return;
    }
    buckets.sort_unstable_by_key(|&(bucket, _)| bucket);
    buckets.dedup_by(|next, one| {
        let same = next.0 == one.0;
        if same {
            one.1 = one.1.wrapping_add(next.1);
        }
        same
    });
}
