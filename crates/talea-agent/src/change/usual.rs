//! What is usual: a distribution that slowly follows what is observed, and the classes that a test makes of it.

use std::collections::BTreeMap;

use super::cusum::Ratios;

/// Values in buckets of 4.4 %, as the native histograms of schema 4 have them.
const BUCKETS_AN_OCTAVE: f64 = 16.0;
/// The bucket of 0.
const ZERO: i16 = -i16::MAX;

/// What was observed in a step, or is usual: counts by bucket.
pub(super) type Counts = BTreeMap<i16, f64>;

/// Counts of a step as they are kept, in little memory.
pub(super) type Packed = Box<[(i16, f32)]>;

pub(super) fn packed(counts: Counts) -> Packed {
    counts.into_iter().map(|(bucket, count)| (bucket, count as f32)).collect()
}

/// The bucket of a value.
pub(super) fn bucket_of(value: f64) -> i16 {
    // As a cast saturates, what is beyond is in the last one.
    if value > 0.0 { (value.log2() * BUCKETS_AN_OCTAVE).ceil().max(-32_000.0) as i16 } else { ZERO }
}

/// The upper bound of a bucket.
pub(super) fn bound_of(bucket: i16) -> f64 {
    if bucket == ZERO { 0.0 } else { (f64::from(bucket) / BUCKETS_AN_OCTAVE).exp2() }
}

/// The smallest value of a bucket that a share of all counts is not above.
pub(super) fn quantile(counts: &Counts, quantile: f64) -> Option<f64> {
    let rank = counts.values().sum::<f64>() * quantile;
    let mut below = 0.0;
    let at = counts
        .values()
        .position(|count: &f64| {
            below += count;
            below >= rank
        })
        .unwrap_or(counts.len().saturating_sub(1));
    counts.keys().nth(at).map(|bucket| bound_of(*bucket))
}

/// The shares of what is above that classes begin at.
const LEVELS: [f64; 8] = [0.75, 0.5, 0.25, 0.1, 0.03, 0.01, 0.003, 0.001];
/// A class has at most so much of the class below it, or it is none by itself.
const APART: f64 = 0.75;
/// By how many standard errors a share is taken larger than it was found: it is an estimate.
const ERRORS: f64 = 2.0;

/// A distribution that forgets.
#[derive(Clone, Debug, Default)]
pub(super) struct Usual {
    counts: Counts,
    total: f64,
}

impl Usual {
    pub(super) fn total(&self) -> f64 {
        self.total
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(super) fn into_counts(self) -> Counts {
        self.counts
    }

    pub(super) fn add(&mut self, counts: &Packed) {
        for (bucket, count) in counts {
            *self.counts.entry(*bucket).or_default() += f64::from(*count);
            self.total += f64::from(*count);
        }
    }

    /// Keeps this share of all, as long as that leaves enough.
    pub(super) fn forget(&mut self, share: f64, enough: f64) {
        if self.total * share < enough {
            return;
        }
        self.counts.retain(|_, count| {
            *count *= share;
            *count > 0.001
        });
        self.total = self.counts.values().sum();
    }

    /// Classes above quantiles, where a value has to be greater than a quantile by a factor.
    pub(super) fn classes(&self, factor: f64) -> Classes {
        let margin = (factor.log2() * BUCKETS_AN_OCTAVE).ceil() as i16;
        let mut classes = Classes::default();
        let mut above = self.total;
        let mut levels = LEVELS.iter().map(|level| level * self.total).peekable();
        let mut shares: Vec<f64> = Vec::new();
        for (bucket, count) in &self.counts {
            above -= count;
            if levels.next_if(|level| above <= *level).is_none() {
                continue;
            }
            while levels.next_if(|level| above <= *level).is_some() {}
            let share = at_most(above.max(0.0) / self.total, self.total);
            if share < shares.last().map_or(0.95, |last| last * APART) {
                classes.bounds.push(bucket.saturating_add(margin));
                shares.push(share);
            }
        }
        classes.ratios = Ratios::of(&shares);
        classes
    }
}

/// A share that was found among so many, and may be greater by chance.
pub(super) fn at_most(share: f64, among: f64) -> f64 {
    let more = ERRORS * (share * (1.0 - share) / among).sqrt() + ERRORS * ERRORS / (2.0 * among);
    (share + more).min(1.0)
}

/// Classes of values, by the last bucket of each.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes {
    bounds: Vec<i16>,
    pub(super) ratios: Ratios,
}

impl Classes {
    /// Nothing can be told apart.
    pub(super) fn are_one(&self) -> bool {
        self.bounds.is_empty()
    }

    /// How many observations of a step are in each class.
    pub(super) fn count(&self, counts: &Counts) -> Vec<f64> {
        let mut classes = vec![0.0; self.bounds.len() + 1];
        for (bucket, count) in counts {
            classes[self.bounds.partition_point(|bound| bound < bucket)] += count;
        }
        classes
    }
}
