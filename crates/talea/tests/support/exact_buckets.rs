//! Where values belong, found by comparing them with each bound, exactly.

use std::collections::BTreeMap;

use super::descriptors::raise_limit;
use super::metrics;
use talea::{Histogram, HistogramSnapshot, NativeBuckets, Opts, Unit, Value};

/// The snapshot of a histogram that observed these.
pub(crate) fn observed<U: Unit>(
    opts: Opts<'_>,
    values: impl IntoIterator<Item = U::Value>,
) -> HistogramSnapshot {
    raise_limit();
    let (registry, histogram) = metrics::alone::<Histogram<U>>(opts);
    values.into_iter().for_each(|value| histogram.observe(value));
    let snapshot = registry.snapshot();
    let series = snapshot.families().next().unwrap().series().next().unwrap();
    let Value::Histogram(shown) = series.value() else { panic!("{series:?}") };
    shown
}

/// A number that is exact: a mantissa times a power of two.
#[derive(Clone, Copy)]
struct Scaled(u64, i32);

/// A positive float.
fn scaled(x: f64) -> Scaled {
    let (exponent, fraction) = ((x.to_bits() >> 52) as i32, x.to_bits() & ((1 << 52) - 1));
    match exponent {
        0 => Scaled(fraction, -1074),
        _ => Scaled(fraction | 1 << 52, exponent - 1075),
    }
}

/// Whether an integer is above a bound in a unit of which it counts so many parts.
pub(crate) fn is_above(kept: u64, bound: f64, per_unit: f64) -> bool {
    if bound.is_infinite() {
        return false;
    }
    let (Scaled(a, e), Scaled(b, f)) = (scaled(bound), scaled(per_unit));
    let (product, exponent) = (u128::from(a) * u128::from(b), e + f);
    // An integer is above a number where it is above its integer part.
    match exponent {
        0.. if product.leading_zeros() < exponent as u32 => false,
        0.. => u128::from(kept) > product << exponent,
        -127..=-1 => u128::from(kept) > product >> -exponent,
        _ => kept > 0,
    }
}

/// The native bucket of something positive: near a guess, the first that it is not above.
fn bucket(native: &NativeBuckets, guess: f64, is_above: impl Fn(f64) -> bool) -> i32 {
    let guess = (guess.log2() / native.growth().log2()).ceil() as i32;
    let near = guess - 2..=guess + 2;
    let found = near.clone().find(|&n| !is_above(native.upper_bound(n))).unwrap();
    assert!(found > *near.start(), "the guess is near");
    found
}

/// Native buckets of either side, and what is in none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Native {
    pub(crate) positive: BTreeMap<i32, u64>,
    pub(crate) negative: BTreeMap<i32, u64>,
    pub(crate) zero: u64,
    pub(crate) count: u64,
}

impl Native {
    pub(crate) fn of(native: &NativeBuckets) -> Self {
        Self {
            positive: native.positive().iter().copied().collect(),
            negative: native.negative().iter().copied().collect(),
            zero: native.zero_count(),
            count: native.count(),
        }
    }

    /// Where whole numbers belong, in buckets as fine as those of `like`.
    pub(crate) fn of_whole(like: &NativeBuckets, per_unit: f64, all: &[u64]) -> Self {
        let mut native = Self::default();
        for &kept in all {
            native.count += 1;
            // A value up to the zero threshold counts as zero.
            if !is_above(kept, like.zero_threshold(), per_unit) {
                native.zero += 1;
                continue;
            }
            let n = bucket(like, kept as f64 / per_unit, |bound| is_above(kept, bound, per_unit));
            *native.positive.entry(n).or_default() += 1;
        }
        native
    }

    /// Where floats belong.
    pub(crate) fn of_floats(like: &NativeBuckets, all: &[f64]) -> Self {
        let mut native = Self::default();
        for &x in all {
            native.count += 1;
            if x.abs() <= like.zero_threshold() {
                native.zero += 1;
            } else if !x.is_nan() {
                let side = if x > 0.0 { &mut native.positive } else { &mut native.negative };
                // Infinity is in the bucket after the largest float.
                let finite = x.abs().min(f64::MAX);
                let n = bucket(like, finite, |bound| finite > bound) + i32::from(x.is_infinite());
                *side.entry(n).or_default() += 1;
            }
        }
        native
    }

    /// These buckets merged into the coarser `schema`.
    pub(crate) fn folded(&self, from: i8, schema: i8) -> Self {
        let fold = |side: &BTreeMap<i32, u64>| {
            let mut out = BTreeMap::new();
            for (&n, count) in side {
                let n = (f64::from(n) / f64::from(1_u32 << (from - schema))).ceil() as i32;
                *out.entry(n).or_default() += count;
            }
            out
        };
        let (positive, negative) = (fold(&self.positive), fold(&self.negative));
        Self { positive, negative, ..self.clone() }
    }
}

/// How many values are in each classic bucket, by what each is above.
pub(crate) fn classic<T>(
    thresholds: usize,
    all: &[T],
    is_above: impl Fn(&T, usize) -> bool,
) -> Vec<u64> {
    let mut counts = vec![0; thresholds + 1];
    for value in all {
        let n = (0..thresholds).find(|&n| !is_above(value, n)).unwrap_or(thresholds);
        counts[n] += 1;
    }
    counts
}

/// The count of each classic bucket of a snapshot.
pub(crate) fn shown_classic(snapshot: &HistogramSnapshot) -> Vec<u64> {
    let mut before = 0;
    let each = snapshot.cumulative().map(|(_, n)| n - std::mem::replace(&mut before, n));
    each.collect()
}
