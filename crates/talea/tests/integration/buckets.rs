//! Claims about which buckets an observation is in: beside bounds that it is compared
//! with, one after the other.
#![cfg(not(miri))]

use crate::support::exact_buckets::{self, Native, observed, shown_classic};
use crate::support::metrics::opts;
use crate::support::random::neighbours;
use proptest::collection::vec;
use proptest::prelude::*;
use talea::{Floats, Opts, Unit};

/// Whole numbers of which so many make one of the shown unit.
macro_rules! units {
    ($($name:ident $per_unit:expr),*) => {$(
        #[derive(Clone, Copy)]
        enum $name {}

        impl Unit for $name {
            type Value = u64;
            const SUFFIX: &'static str = "";
            const PER_UNIT: f64 = $per_unit;
            const BUCKETS: &'static [f64] = &[1.0];
            fn kept(value: u64) -> u64 {
                value
            }
        }
    )*};
}

units!(Ones 1.0, Nanos 1e9, Cents 100.0, Thousands 0.001, Thirds 3.0, Odd 7.3e-5, Bits 0.125);

const ALL: fn(&Case) = |case| {
    whole::<Ones>(case);
    whole::<Nanos>(case);
    whole::<Cents>(case);
    whole::<Thousands>(case);
    whole::<Thirds>(case);
    whole::<Odd>(case);
    whole::<Bits>(case);
};

#[derive(Clone, Debug)]
struct Case {
    thresholds: Vec<u64>,
    values: Vec<u64>,
    schema: i8,
}

fn fine(thresholds: &[f64], schema: i8) -> Opts<'_> {
    opts("x").buckets(thresholds).schema(schema).max_buckets(u32::MAX)
}

fn whole<U: Unit<Value = u64>>(case: &Case) {
    // A threshold is stored as it is, unless a float cannot represent it.
    let kept = |shown: &f64| (shown * U::PER_UNIT).round() as u64;
    let mut as_shown: Vec<f64> =
        case.thresholds.iter().map(|&kept| kept as f64 / U::PER_UNIT).collect();
    as_shown.sort_by(f64::total_cmp);
    as_shown.dedup_by_key(|shown| kept(shown));
    let thresholds: Vec<u64> = as_shown.iter().map(kept).collect();
    let near = |n: &u64| [n.saturating_sub(1), *n, n.saturating_add(1)];
    let mut values: Vec<u64> = thresholds.iter().flat_map(near).collect();
    values.extend(case.values.iter().flat_map(near));
    let found = observed::<U>(fine(&as_shown, case.schema), values.iter().copied());

    let classic =
        exact_buckets::classic(thresholds.len(), &values, |value, n| *value > thresholds[n]);
    assert_eq!(shown_classic(&found), classic, "{thresholds:?}");
    let native = found.native().unwrap();
    assert_eq!(native.schema(), case.schema);
    assert_eq!(Native::of(native), Native::of_whole(native, U::PER_UNIT, &values));
}

fn floats(thresholds: &[f64], values: &[f64], schema: i8) {
    let mut thresholds = thresholds.to_vec();
    thresholds.sort_by(f64::total_cmp);
    thresholds.dedup();
    let near = thresholds.iter().chain(values).flat_map(|&x| neighbours(x));
    let values: Vec<f64> = near.collect();
    let found = observed::<Floats>(fine(&thresholds, schema), values.iter().copied());

    // NaN is above nothing and at most nothing: it is only among all.
    let classic = exact_buckets::classic(thresholds.len(), &values, |value: &f64, n: usize| {
        value.is_nan() || *value > thresholds[n]
    });
    assert_eq!(shown_classic(&found), classic, "{thresholds:?} {values:?}");
    let native = found.native().unwrap();
    assert_eq!(native.schema(), schema, "{thresholds:?} {values:?}");
    assert_eq!(Native::of(native), Native::of_floats(native, &values), "{values:?}");
}

fn any_whole() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => (0..64_u32, any::<u64>()).prop_map(|(bits, n)| n >> bits),
        1 => (0..64_u32).prop_map(|bit| 1 << bit),
        // Next to each other.
        2 => 1_000..1_064_u64,
        1 => Just(u64::MAX),
    ]
}

/// Within fewer octaves than a series has places for.
fn any_float() -> impl Strategy<Value = f64> {
    let sign = || prop_oneof![Just(1.0), Just(-1.0)];
    prop_oneof![
        4 => (sign(), -24..24_i32, 1.0..2.0).prop_map(|(s, e, m)| s * m * 2_f64.powi(e)),
        1 => (sign(), -24..24_i32).prop_map(|(s, e)| s * 2_f64.powi(e)),
        1 => (sign(), 1.0..1.01).prop_map(|(s, m)| s * m),
        1 => prop_oneof![Just(0.0), Just(-0.0), Just(5e-324), Just(-1e-39)],
    ]
}

fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => any_float(),
        1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY)],
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_whole_number_is_in_the_buckets_whose_bounds_it_lies_between(
        thresholds in vec(any_whole().prop_map(|n| n.clamp(1, u64::MAX / 2)), 1..30),
        values in vec(any_whole(), 0..60),
        schema in -4..=8_i8,
    ) {
        ALL(&Case { thresholds, values, schema });
    }

    #[test]
    fn a_float_is_in_the_buckets_whose_bounds_it_lies_between(
        thresholds in vec(any_float(), 1..30),
        values in vec(any_value(), 0..60),
        schema in -4..=8_i8,
    ) {
        floats(&thresholds, &values, schema);
    }
}

#[test]
fn of_each_octave_the_bounds_of_the_finest_buckets_divide_what_is_observed() {
    let bounds = (0..64 * 256).map(|n| 2_f64.powf(f64::from(n) / 256.0) as u64);
    for schema in [0, 3, 8] {
        let values = bounds.clone().step_by(7).collect();
        whole::<Ones>(&Case { thresholds: vec![1_000_000], values, schema });
    }
}

#[test]
fn many_thresholds_of_one_octave_divide_it_as_few_do() {
    for count in 1..40_u64 {
        let thresholds: Vec<u64> = (0..count).map(|n| 1030 + 20 * n).collect();
        ALL(&Case { thresholds, values: (1000..2100).collect(), schema: 5 });
    }
}

#[test]
fn every_octave_of_floats_has_its_buckets() {
    for exponent in (-1022..=1023).step_by(5) {
        let first = 2_f64.powi(exponent);
        let all = [first, first * 1.37, -first, -first * 1.9];
        floats(&[first * 1.37], &all[..], 4);
    }
}
