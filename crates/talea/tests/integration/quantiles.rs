//! Claims about quantiles, beside exact ones: those of sorted data. `TALEA_VALUES` sets
//! how many values there are of each distribution; a million by default, a few where a
//! processor is emulated.
use std::time::Duration;

use crate::support::exact_buckets::{is_above, observed};
use crate::support::metrics;
use crate::support::random::Random;
use talea::{Bucketing, Count, Floats, HistogramSnapshot, Opts, Seconds};

const PER_SECOND: f64 = 1e9;

fn values() -> usize {
    let emulated = std::env::var_os("TALEA_TEST_RUNNER").is_some();
    let usual = if emulated { 20_000 } else { 1_000_000 };
    std::env::var("TALEA_VALUES").map_or(usual, |n| n.parse().unwrap())
}

fn opts(schema: i8) -> Opts<'static> {
    metrics::opts("x").schema(schema).max_buckets(u32::MAX)
}

/// The snapshot of a histogram that observed so many nanoseconds each time.
fn timed(opts: Opts<'_>, nanos: &[u64]) -> HistogramSnapshot {
    observed::<Seconds>(opts, nanos.iter().map(|&n| Duration::from_nanos(n)))
}

/// Nanoseconds as seconds, ascending.
fn sorted(mut nanos: Vec<u64>) -> Vec<f64> {
    nanos.sort_unstable();
    nanos.into_iter().map(|n| n as f64 / PER_SECOND).collect()
}

/// The largest error of all quantiles that are asked for, in parts of the value, beside
/// the largest that there may be.
fn worst(what: &str, shown: &HistogramSnapshot, sorted: &[f64]) -> (f64, f64) {
    let native = shown.native().unwrap();
    let bound = (native.growth() - 1.0) / (native.growth() + 1.0);
    let count = sorted.len() as u64;
    assert_eq!((shown.count(), native.count()), (count, count), "{what}");
    let mut worst = 0.0_f64;
    for n in (1..=999).map(|n| n * 10).chain([9_999]) {
        let q = n as f64 / 10_000.0;
        // The smallest value that a share q does not exceed.
        let exact = sorted[(n * count).div_ceil(10_000) as usize - 1];
        let estimate = shown.quantile(q).unwrap();
        if exact == 0.0 {
            assert_eq!(estimate, 0.0, "{what} at {q}");
            continue;
        }
        let error = ((estimate - exact) / exact).abs();
        assert!(
            error <= bound * (1.0 + 1e-9),
            "{what} at {q}: {estimate}, where {exact} is exact: off by {error}, at most {bound}"
        );
        worst = worst.max(error);
    }
    (worst, bound)
}

/// Durations in nanoseconds of the named distribution.
fn distribution(name: &str, count: usize) -> Vec<u64> {
    let mut random = Random::new(7);
    let mut each = |draw: &mut dyn FnMut(&mut Random) -> f64| -> Vec<u64> {
        (0..count).map(|_| (draw(&mut random) as u64).max(1)).collect()
    };
    match name {
        "uniform" => each(&mut |random| random.share() * 1e9),
        "exponential" => each(&mut |random| -random.share().ln() * 5e6),
        "log-normal" => each(&mut |random| 3e6 * (1.5 * random.normal()).exp()),
        "bimodal" => each(&mut |random| match random.below(10) {
            0 => 2e9 + 1e8 * random.normal(),
            _ => 2e5 + 4e4 * random.normal(),
        }),
        "constant" => vec![7_654_321; count],
        "adversarial" => adversarial(count),
        "real" => {
            let real: Vec<u64> = include_str!("../data/latencies")
                .lines()
                .filter(|line| !line.starts_with('#'))
                .map(|line| line.parse().unwrap())
                .collect();
            (0..count).map(|_| real[random.below(real.len() as u64) as usize]).collect()
        }
        other => panic!("a distribution {other:?}"),
    }
}

/// Values that lie at the bounds of the finest buckets, on both sides, where a bucket's
/// middle is farthest off; each is there until the very rank of a quantile, and the next
/// one is far enough that a rank too many shows. A few are as small and as large as can be.
fn adversarial(count: usize) -> Vec<u64> {
    let step = 2_f64.powf(9.0 / 256.0);
    let first = 2_f64.powi(-20);
    let mut all: Vec<u64> = (0..count)
        .map(|n| {
            let group = n * 1000 / count;
            let bound = first * step.powi(group as i32) * PER_SECOND;
            bound as u64 + u64::from(group % 2 == 1)
        })
        .collect();
    let few = count / 100_000;
    all[..few].fill(1);
    all[count - few..].fill(u64::MAX);
    all
}

const ALL: [&str; 7] =
    ["uniform", "exponential", "log-normal", "bimodal", "constant", "adversarial", "real"];

fn check(name: &str, count: usize, schema: i8) {
    let all = distribution(name, count);
    let shown = timed(opts(schema), &all);
    assert_eq!(shown.native().unwrap().schema(), schema);
    let (worst, bound) = worst(&format!("{name}, schema {schema}"), &shown, &sorted(all));
    println!("{count} values, {name}, schema {schema}: off by {worst:.6}, at most {bound:.6}");
}

#[test]
fn every_quantile_of_many_values_is_within_the_error_of_the_schema() {
    for name in ALL {
        for schema in [3, 8] {
            check(name, values(), schema);
        }
    }
}

#[test]
fn every_schema_keeps_its_error() {
    for name in ALL {
        (-4..=8).for_each(|schema| check(name, 5_000, schema));
    }
}

#[test]
fn negative_and_positive_floats_have_quantiles_within_the_error_too() {
    let mut random = Random::new(3);
    for schema in -4..=8 {
        let mut draw = || match random.below(8) {
            0 => 0.0,
            1 => -1e-12 * random.share(),
            2 => 1e6 * (2.0 * random.normal()).exp(),
            _ => random.normal(),
        };
        let mut all: Vec<f64> = (0..5_000).map(|_| draw()).collect();
        let shown = observed::<Floats>(opts(schema), all.iter().copied());
        assert_eq!(shown.native().unwrap().schema(), schema);
        all.sort_by(f64::total_cmp);
        worst(&format!("floats, schema {schema}"), &shown, &all);
        let ends = [-f64::MAX, f64::MAX];
        worst("the largest floats", &observed::<Floats>(opts(schema), ends), &ends);
    }
}

#[test]
fn a_histogram_without_options_has_quantiles_within_its_buckets() {
    for name in ALL {
        let all = distribution(name, 20_000);
        let shown = timed(metrics::opts("x"), &all);
        let schema = shown.native().unwrap().schema();
        assert!(schema == 3 || ["adversarial", "exponential"].contains(&name), "{name}: {schema}");
        worst(name, &shown, &sorted(all));
    }
}

#[test]
fn a_quantile_is_that_of_its_rank_however_its_share_rounds() {
    // 0.07 · 100 is 7.000000000000001 in floats.
    for count in [3_u64, 7, 10, 49, 100, 999, 1000] {
        let shown = observed::<Count>(opts(8), (0..count).map(|n| 1 << (n * 60 / count)));
        for rank in 1..=count {
            let exact = (1_u64 << ((rank - 1) * 60 / count)) as f64;
            let estimate = shown.quantile(rank as f64 / count as f64).unwrap();
            assert!((estimate / exact - 1.0).abs() < 0.002, "{rank} of {count}: {estimate}");
        }
    }
}

#[test]
fn native_buckets_alone_have_the_same_quantiles() {
    let all = distribution("log-normal", 5_000);
    let estimate_with = |bucketing| {
        let shown = timed(opts(5).bucketing(bucketing), &all);
        [0.001, 0.5, 0.99, 1.0].map(|q| shown.quantile(q).unwrap())
    };
    assert_eq!(estimate_with(Bucketing::Native), estimate_with(Bucketing::Dual));
}

#[test]
fn nan_has_no_rank_and_infinities_are_at_the_ends() {
    let nan = f64::NAN;
    let shown = observed::<Floats>(opts(3), [nan, f64::INFINITY, 1.0, nan, f64::NEG_INFINITY]);
    assert_eq!(shown.quantile(0.0), Some(f64::NEG_INFINITY));
    assert!((shown.quantile(0.5).unwrap() - 1.0).abs() < 0.05);
    assert_eq!(shown.quantile(1.0), Some(f64::INFINITY));
    assert_eq!(observed::<Floats>(opts(3), [nan]).quantile(0.5), None);
    assert_eq!(observed::<Floats>(opts(3), []).quantile(0.5), None);
}

#[test]
fn a_value_is_above_the_bounds_below_it_and_no_others() {
    // The basis of the claims about buckets.
    assert!(is_above(5, 2.0, 2.0) && !is_above(4, 2.0, 2.0));
    assert!(is_above(1, 2_f64.powi(-40), 1e9) && !is_above(1, 1.000_000_1e-9, 1e9));
    assert!(!is_above(u64::MAX, 2_f64.powi(64), 1.0) && is_above(u64::MAX, 2_f64.powi(63), 1.0));
    assert!(is_above(1, 5e-324, 1.0) && !is_above(u64::MAX, f64::MAX, 1e300));
}

#[test]
fn floats_of_more_octaves_than_places_are_within_the_error_up_to_2_to_the_64() {
    // All of these have the same eight places.
    let placed: Vec<f64> = (1..=8).map(|n| 2_f64.powi(64 * n - 100) * 1.5).collect();
    let last = 2_f64.powi(1008) * (2.0 * 65_536.0 / 65_537.0);
    for (further, shown_as) in [(2_f64.powi(-100) * 1.3, None), (2_f64.powi(476) * 1.3, Some(last))]
    {
        let shown = observed::<Floats>(opts(3), placed.iter().copied().chain([further]));
        assert_eq!(shown.native().unwrap().schema(), -4);
        match shown_as {
            None => {
                let mut all = placed.clone();
                all.insert(0, further);
                worst("places", &shown, &all);
            }
            Some(middle) => assert_eq!(shown.quantile(1.0), Some(middle)),
        }
    }
}
