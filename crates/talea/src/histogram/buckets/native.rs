//! Native (exponential) buckets: their bounds, and which bucket a value is in.
//!
//! With schema *n*, bucket *i* holds (β^(i−1), β^i], β = 2^(2^−n). (Prometheus' native histograms;
//! OpenTelemetry's exponential ones number them one lower.) The bounds here are the floats nearest
//! to the exact ones; in the tables of Prometheus and its Go client (1.24) 341 of 511 are up to
//! four units in the last place off, nearly all of them lower, so values in between are in another
//! bucket there.
//!
//! Implementation details. Within each octave [2^e, 2^(e+1)) the bounds lie at the same relative
//! places. So a value is shifted until its first bit is bit 63, and compared with the octave's 2^n
//! bounds, shifted by as much. A table by the first bits after that one says how many bounds are
//! below them; at most one bound shares these bits, which one comparison settles. This is exact: a
//! bound, though no integer, is above an integer exactly if its integer part is at least that.
//! Values are kept as integers in parts of the shown unit (nanoseconds of seconds), which moves the
//! bounds within the octave.

pub(crate) const FINEST: u8 = 8;
pub(crate) const COARSEST: i8 = -4;

/// How an octave of kept values is divided by one schema, 0 to 8.
#[derive(Debug)]
pub(crate) struct Level {
    schema: u32,
    /// The bounds of an octave, ascending; then one that is above all.
    bounds: Box<[u64]>,
    /// The native bucket of the first value of octave 0.
    first: i64,
}

/// The table of a value's first bits: the entry is at the number that its first schema + 2 bits
/// make. So the entries of the schemas from 0 on follow each other, behind two that are unused.
#[derive(Debug)]
pub(crate) struct Starts(Box<[Start]>);

/// The entry of a value's first bits.
#[derive(Debug)]
struct Start {
    /// How many bounds are below all values that begin so.
    below: usize,
    /// The one after these.
    next: u64,
}

impl Level {
    /// The level for stored values of which `per_unit` make one shown unit; it must be positive and
    /// finite.
    pub(crate) fn new(schema: u8, per_unit: f64) -> Self {
        let (mantissa, exponent) = split(per_unit);
        let count = 1_usize << schema;
        let products: Vec<u128> =
            (0..count).map(|n| u128::from(mantissa) * u128::from(root(n as u64, schema))).collect();
        // Both factors have 53 bits, so the product has 105 or 106. Those with fewer are
        // the first, and of the next octave's bounds the last.
        let longer = products.iter().position(|&product| product >> 105 == 1).unwrap_or(count);
        let high = products[longer..].iter().map(|product| (product >> 42) as u64);
        let low = products[..longer].iter().map(|product| (product >> 41) as u64);
        let bounds: Box<[u64]> = high.chain(low).chain([u64::MAX]).collect();
        Self {
            schema: u32::from(schema),
            first: longer as i64 - i64::from(exponent) * count as i64,
            bounds,
        }
    }

    /// By the first schema + 1 bits after the first of a value.
    fn starts(&self) -> impl Iterator<Item = Start> {
        let slots = 2 * self.bounds().len() as u64;
        (0..slots).map(move |slot| {
            let start = (1 << 63) + slot * ((1 << 63) / slots);
            let below = self.bounds().partition_point(|&bound| bound < start);
            Start { below, next: self.bounds[below] }
        })
    }

    /// The bounds of an octave, ascending, shifted as values are.
    pub(crate) fn bounds(&self) -> &[u64] {
        &self.bounds[..1 << self.schema]
    }

    /// The native bucket of a value that is above `below` bounds of its octave.
    #[inline]
    pub(crate) fn bucket(&self, octave: i64, below: usize) -> i32 {
        ((octave << self.schema) + self.first + below as i64) as i32
    }
}

impl Starts {
    /// The table of levels, which are indexed by their schema without gaps.
    pub(crate) fn new(levels: &[Level]) -> Self {
        let nothing = [const { Start { below: 0, next: u64::MAX } }; 2];
        Self(nothing.into_iter().chain(levels.iter().flat_map(Level::starts)).collect())
    }

    /// By how much a value is shifted for its number by a schema.
    pub(crate) fn shift(schema: u32) -> u32 {
        62 - schema
    }

    /// How many bounds of its octave are below a value that is shifted until its first bit is bit
    /// 63, by the schema with this [`shift`](Self::shift); `None` if there is no such bucket.
    #[inline(always)]
    pub(crate) fn below(&self, shift: u32, shifted: u64) -> Option<usize> {
        let start = self.0.get((shifted >> shift) as usize)?;
        Some(start.below + usize::from(start.next < shifted))
    }
}

/// The bucket, of a schema from −4 to 8, that a positive finite value is in.
pub(crate) fn bucket_of(x: f64, schema: i8) -> i32 {
    let (mantissa, exponent) = split(x);
    let fine = schema.max(0) as u8;
    let count = 1_i64 << fine;
    // x = mantissa · 2^(exponent − 53), the mantissa of 53 bits; so are the roots.
    let below = partition(count as u64, |n| root(n, fine) < mantissa);
    coarser((i64::from(exponent) - 1) * count + below as i64, fine as i8 - schema)
}

/// The number of leading values of 0..count that satisfy a condition.
fn partition(count: u64, is: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, count);
    while low < high {
        let mid = low.midpoint(high);
        if is(mid) { low = mid + 1 } else { high = mid }
    }
    low
}

/// The upper bound of a bucket: +∞ beyond the largest float.
pub(crate) fn upper_bound(bucket: i32, schema: i8) -> f64 {
    let fine = schema.max(0) as u8;
    let bucket = i64::from(bucket) << (fine as i8 - schema);
    let count = 1 << fine;
    let (octave, n) = (bucket.div_euclid(count), bucket.rem_euclid(count));
    let mantissa = root(n as u64, fine) as f64 / (1_u64 << 52) as f64;
    // In two steps, since the last of them may be too small for a normal float.
    let half = octave / 2;
    mantissa * power_of_two(half) * power_of_two(octave - half)
}

/// 2^n; beyond what is a normal float, 0 or +∞.
pub(crate) fn power_of_two(n: i64) -> f64 {
    match n {
        -1022..=1023 => f64::from_bits(((n + 1023) as u64) << 52),
        ..-1022 => 0.0,
        _ => f64::INFINITY,
    }
}

/// By how much each bound of a schema is larger than the one below.
pub(crate) fn growth(schema: i8) -> f64 {
    match schema {
        1.. => root(1, schema as u8) as f64 / (1_u64 << 52) as f64,
        _ => power_of_two(1 << -schema.max(COARSEST)),
    }
}

/// The bucket of a schema that is coarser by `steps`, which holds a bucket.
pub(crate) fn coarser(bucket: i64, by: i8) -> i32 {
    // ceil(i / 2) for each.
    ((bucket + (1 << by) - 1) >> by) as i32
}

/// A positive finite float as a mantissa of 53 bits, the first of them set, and an
/// exponent: x = mantissa · 2^(exponent − 53).
fn split(x: f64) -> (u64, i32) {
    let bits = x.to_bits() & (u64::MAX >> 1);
    let (exponent, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    if exponent > 0 {
        return (fraction | 1 << 52, exponent - 1022);
    }
    let shift = fraction.leading_zeros() as i32 - 11;
    (fraction << shift, -1021 - shift)
}

/// 2^(n / 2^schema) · 2^52 to the nearest integer, for n below 2^schema.
fn root(n: u64, schema: u8) -> u64 {
    FINEST_ROOTS[(n << (FINEST - schema)) as usize]
}

/// The bounds of the finest schema, which include the bounds of all others.
static FINEST_ROOTS: [u64; 1 << FINEST] = {
    let mut all = [0; 1 << FINEST];
    let mut n = 0;
    while n < all.len() {
        all[n] = exact_root(n);
        n += 1;
    }
    all
};

/// A product of square roots of 2 that are exact to 2^−120.
const fn exact_root(n: usize) -> u64 {
    let (mut product, mut k) = (1_u128 << 127, 0);
    while k < FINEST as usize {
        if n >> (FINEST as usize - 1 - k) & 1 == 1 {
            product = times(product, ROOTS[k]);
        }
        k += 1;
    }
    ((product + (1 << 74)) >> 75) as u64
}

/// 2^(1/2), 2^(1/4), … 2^(1/256), times 2^127.
const ROOTS: [u128; FINEST as usize] = [
    0xb504f333_f9de6484_597d89b3_754abe9f,
    0x9837f051_8db8a96f_46ad2318_2e42f6f6,
    0x8b95c1e3_ea8bd6e6_fbe46287_58a53c90,
    0x85aac367_cc487b14_c5c95b8c_2154c1b2,
    0x82cd8698_ac2ba1d7_3e2a475b_46520bff,
    0x8164d1f3_bc030773_7be56527_bd14def4,
    0x80b1ed4f_d999ab6c_25335719_b6e6fd20,
    0x8058d7d2_d5e5f6b0_94d589f6_08ee4aa2,
];

/// The product of two numbers of which 2^127 stands for 1; below 2 itself.
const fn times(one: u128, other: u128) -> u128 {
    // In halves of 64 bits, of which the lowest product carries into nothing that counts.
    let (a, b) = (one >> 64, one as u64 as u128);
    let (c, d) = (other >> 64, other as u64 as u128);
    let (ad, bc, low) = (a * d, b * c, u64::MAX as u128);
    let middle = ((b * d) >> 64) + (ad & low) + (bc & low);
    (a * c + (ad >> 64) + (bc >> 64) + (middle >> 64)) << 1 | (middle >> 63 & 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_growth_of_buckets_is_that_of_their_schema() {
        for schema in COARSEST..=FINEST as i8 {
            assert_eq!(growth(schema), 2_f64.powf(2_f64.powi(-i32::from(schema))), "{schema}");
        }
    }

    #[test]
    fn powers_of_two_are_those_that_floats_have() {
        for n in -1022..=1023 {
            assert_eq!(power_of_two(n), 2_f64.powi(n as i32), "{n}");
        }
        assert_eq!((power_of_two(1024), power_of_two(-2000)), (f64::INFINITY, 0.0));
    }

    /// x^(2^schema) beside 2^n, for a mantissa x: by what the digits of both are.
    fn power_is_above(mantissa: u64, schema: u8, n: u64) -> bool {
        let mut power = vec![mantissa as u32, (mantissa >> 32) as u32];
        for _ in 0..schema {
            power = square(&power);
        }
        // x = mantissa / 2^52, so x^(2^schema) > 2^n is mantissa^(2^schema) > 2^(n + 52·2^schema).
        let bit = n + (52 << schema);
        let highest = power.iter().rposition(|&digit| digit != 0).unwrap();
        let bits = highest as u64 * 32 + 32 - u64::from(power[highest].leading_zeros());
        let is_power_of_two =
            power[..highest].iter().all(|&digit| digit == 0) && power[highest].is_power_of_two();
        bits > bit + 1 || bits == bit + 1 && !is_power_of_two
    }

    fn square(x: &[u32]) -> Vec<u32> {
        let mut out = vec![0_u32; 2 * x.len()];
        for (i, &a) in x.iter().enumerate() {
            let mut carry = 0_u64;
            for (j, &b) in x.iter().enumerate() {
                let sum = u64::from(a) * u64::from(b) + u64::from(out[i + j]) + carry;
                out[i + j] = sum as u32;
                carry = sum >> 32;
            }
            out[i + x.len()] = carry as u32;
        }
        out
    }

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic alone, and much of it")]
    fn bounds_are_the_floats_nearest_to_the_roots_of_two() {
        for schema in 0..=FINEST {
            for n in 0..1 << schema {
                let (root, halved) = (root(n, schema), 2 * root(n, schema));
                // The exact one lies between half a step below and half a step above.
                assert!(n == 0 || power_is_above_halves(halved + 1, schema, n), "{schema} {n}");
                assert!(!power_is_above_halves(halved - 1, schema, n), "{schema} {n} {root}");
            }
        }
    }

    /// The comparison for a mantissa in half steps.
    fn power_is_above_halves(mantissa: u64, schema: u8, n: u64) -> bool {
        // (m / 2)^p > 2^(n + 52p) is m^p > 2^(n + 53p).
        power_is_above(mantissa, schema, n + (1 << schema))
    }

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic alone, and much of it")]
    fn a_value_is_in_the_bucket_whose_bounds_it_lies_between() {
        for schema in COARSEST..=FINEST as i8 {
            let fine = schema.max(0) as u32;
            for octave in [-1074, -1022, -128, -30, -1, 0, 1, 7, 63, 64, 512, 1023_i64] {
                let first = coarser(octave << fine, fine as i8 - schema);
                for bucket in first..=first + (1 << fine) {
                    let bound = upper_bound(bucket, schema);
                    if !bound.is_finite() || bound < f64::MIN_POSITIVE {
                        continue;
                    }
                    assert_eq!(bucket_of(bound, schema), bucket, "{schema} {bound}");
                    let above = f64::from_bits(bound.to_bits() + 1);
                    let below_it = f64::from_bits(bound.to_bits() - 1);
                    if above.is_finite() {
                        assert_eq!(bucket_of(above, schema), bucket + 1, "{schema} {above}");
                    }
                    let below = if below_it > upper_bound(bucket - 1, schema) { 0 } else { 1 };
                    assert_eq!(bucket_of(below_it, schema), bucket - below, "{schema}");
                }
            }
            assert_eq!(bucket_of(f64::MAX, schema), coarser(1024 << fine, fine as i8 - schema));
            assert_eq!(bucket_of(1.0, schema), 0);
        }
    }

    /// The formula of the format's description: a search among the bounds in [0.5, 1).
    fn by_the_description(x: f64, schema: i8, bounds: &[u64]) -> i32 {
        let (mantissa, exponent) = split(x);
        if schema > 0 {
            let n = bounds.partition_point(|&bound| bound < mantissa) as i32;
            return n + (exponent - 1) * (1 << schema);
        }
        // Powers of two lie on a bound: they are in the bucket below.
        let exponent = if mantissa == 1 << 52 { exponent - 1 } else { exponent };
        (exponent + (1 << -schema) - 1) >> -schema
    }

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic alone, and much of it")]
    fn an_octave_of_kept_values_is_divided_as_the_shown_values_are() {
        let units = [1.0, 1e9, 1e3, 100.0, 0.001, 1024.0, 1.0 / 3.0, 7.3e-5];
        for schema in 0..=FINEST {
            let roots: Vec<u64> = (0..1 << schema).map(|n| root(n, schema)).collect();
            for per_unit in units {
                let levels: Vec<_> = (0..=schema).map(|n| Level::new(n, per_unit)).collect();
                let (starts, level) = (Starts::new(&levels), levels.last().unwrap());
                let shift = Starts::shift(u32::from(schema));
                assert_eq!(starts.below(shift - 1, 1 << 63), None);
                assert!(level.bounds().is_sorted_by(|a, b| a < b));
                for octave in 0..64_u32 {
                    let (first, last) = (1_u64 << octave, u64::MAX >> (63 - octave));
                    let bounds = level.bounds().iter().map(|&bound| bound >> (63 - octave));
                    let around = bounds.flat_map(|bound| {
                        [bound.saturating_sub(1), bound, bound.saturating_add(1)]
                    });
                    for kept in around.chain([first, last, first + (last - first) / 3]) {
                        if !(first..=last).contains(&kept) || kept >= 1 << 53 {
                            continue;
                        }
                        let shifted = kept << (63 - octave);
                        let below = starts.below(shift, shifted).unwrap();
                        let all = level.bounds().partition_point(|&bound| bound < shifted);
                        assert_eq!(below, all, "{per_unit} {schema} {kept}");
                        let shown = kept as f64 / per_unit;
                        let bucket = level.bucket(i64::from(octave), below);
                        let expected = bucket_of(shown, schema as i8);
                        assert_eq!(expected, by_the_description(shown, schema as i8, &roots));
                        // Dividing may round to a bound what lies above it.
                        let rounded = shown == upper_bound(expected, schema as i8);
                        assert!(
                            bucket == expected || rounded && bucket == expected + 1,
                            "{per_unit} {kept}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_coarser_bucket_holds_two() {
        for (bucket, by, expected) in [(1, 1, 1), (2, 1, 1), (3, 1, 2), (0, 3, 0), (-1, 1, 0)] {
            assert_eq!(coarser(bucket, by), expected);
        }
        assert_eq!([-2, -3, -4].map(|bucket| coarser(bucket, 1)), [-1, -1, -2]);
        assert_eq!(coarser(-9, 2), -2);
    }

    #[test]
    fn the_smallest_and_the_largest_floats_have_buckets() {
        assert_eq!(bucket_of(f64::from_bits(1), 0), -1074);
        assert_eq!(bucket_of(f64::MIN_POSITIVE, 0), -1022);
        assert_eq!(upper_bound(1024, 0), f64::INFINITY);
        assert_eq!(upper_bound(-1074, 0), f64::from_bits(1));
        assert_eq!(upper_bound(i32::MAX, 8), f64::INFINITY);
        assert_eq!(upper_bound(i32::MIN, -4), 0.0);
    }
}
