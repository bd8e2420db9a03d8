//! Claims about what a reader makes of histograms: together, since another time, and where
//! there is no room for all that was asked for.
#![cfg(not(miri))]

use std::thread;
use std::time::Duration;

use crate::support::exact_buckets::{Native, shown_classic};
use crate::support::metrics::{alone, opts, registry};
use crate::support::random::Random;
use talea::{
    Bucketing, Bytes, Config, Count, DynamicLabels, Family, Floats, Histogram, HistogramSnapshot,
    NativeBuckets, Opts, Registry, Seconds, Unit,
};

const WRITERS: u64 = 8;

fn shown(registry: &Registry, name: &str) -> HistogramSnapshot {
    registry.snapshot().histogram(name, &[]).unwrap()
}

type Options = fn(Opts<'_>) -> Opts<'_>;

/// Histograms of these names, with equal options.
fn named<U: Unit, const N: usize>(
    registry: &Registry,
    names: [&str; N],
    options: Options,
) -> [Histogram<U>; N] {
    names.map(|name| registry.register(options(opts(name))).unwrap())
}

/// The observations of one of several writers: durations of about so many powers of two.
fn times(writer: u64, count: u64, octaves: u64) -> impl Iterator<Item = Duration> {
    let mut random = Random::new(writer + 1);
    (0..count).map(move |_| Duration::from_nanos(random.next() >> (63 - random.below(octaves))))
}

/// Both of the same observations, as fine as the coarser.
#[track_caller]
fn check_same(one: &HistogramSnapshot, other: &HistogramSnapshot) {
    assert_eq!(shown_classic(one), shown_classic(other));
    let natives = [one, other].map(|shown| shown.native().unwrap());
    let schema = natives.map(NativeBuckets::schema).into_iter().min().unwrap();
    let [a, b] = natives.map(|native| Native::of(native).folded(native.schema(), schema));
    assert_eq!(a, b);
    assert!((one.sum() - other.sum()).abs() <= 1e-9 * one.sum().abs(), "{one:?} {other:?}");
}

/// Runs so many writers at once.
fn write(work: impl Fn(u64) + Sync) {
    let work = &work;
    thread::scope(|scope| (0..WRITERS).for_each(|n| drop(scope.spawn(move || work(n)))));
}

/// That one call counts in both what two calls do, where the other is made of such options.
fn check_in_both<U: Unit>(values: &[U::Value], options: Options) {
    let registry = registry();
    let [one, apart] = named::<U, 2>(&registry, ["one", "apart"], |opts| opts);
    let [other, other_apart] = named::<U, 2>(&registry, ["other", "other_apart"], options);
    for &value in values {
        one.observe_in_both(&other, value);
        apart.observe(value);
        other_apart.observe(value);
    }
    let shown = |name: &str| shown(&registry, &format!("{name}{}", U::SUFFIX));
    assert_eq!(shown("one"), shown("apart"));
    assert_eq!(shown("other"), shown("other_apart"));
    assert_eq!(shown("other").count(), values.len() as u64);
}

#[test]
fn one_call_records_in_two_histograms_as_two_calls_do() {
    let sizes = [0, 1, 13, 255, 256, 257, 1 << 40, u64::MAX].repeat(10);
    let times: Vec<Duration> = times(7, 500, 60).collect();
    let kinds: [Options; 5] = [
        |opts| opts,
        |opts| opts.buckets(&[10.0, 100.0]),
        |opts| opts.schema(1).max_buckets(20),
        |opts| opts.bucketing(Bucketing::Native),
        |opts| opts.bucketing(Bucketing::Classic),
    ];
    for others in kinds {
        check_in_both::<Bytes>(&sizes, others);
        check_in_both::<Seconds>(&times, others);
        check_in_both::<Floats>(&[0.0, -0.5, f64::INFINITY, 1e-300, 7.0], others);
    }
}

/// That one call for several observations of a value does what as many calls do.
fn check_many<U: Unit>(values: &[U::Value], options: Options) {
    let registry = registry();
    let [many, each] = named::<U, 2>(&registry, ["many", "each"], options);
    let mut count = 0;
    for (&value, times) in values.iter().zip([3, 0, 1, 2].into_iter().cycle()) {
        many.observe_many(value, times);
        (0..times).for_each(|_| each.observe(value));
        count += times;
    }
    let shown = |name: &str| shown(&registry, &format!("{name}{}", U::SUFFIX));
    assert_eq!(shown("many"), shown("each"));
    assert_eq!(shown("many").count(), count);
}

#[test]
fn one_call_records_a_value_many_times_as_many_calls_do() {
    let sizes = [0, 1, 13, 255, 256, 257, 1 << 40, u64::MAX].repeat(5);
    let lengths: Vec<Duration> = times(9, 300, 60).collect();
    let floats = [0.0, -0.5, f64::INFINITY, f64::NAN, 1e-300, 7.0, f64::MAX];
    let kinds: [Options; 4] = [
        |opts| opts,
        |opts| opts.schema(1).max_buckets(20),
        |opts| opts.bucketing(Bucketing::Native),
        |opts| opts.bucketing(Bucketing::Classic),
    ];
    for options in kinds {
        check_many::<Bytes>(&sizes, options);
        check_many::<Seconds>(&lengths, options);
        check_many::<Floats>(&floats, options);
    }
    // More than could be made one by one. The sum wraps, as it would then.
    let registry = registry();
    let [sizes] = named::<Bytes, 1>(&registry, ["size"], |opts| opts);
    sizes.observe_many(3, 1 << 62);
    sizes.observe_many(5, 1 << 60);
    let shown = shown(&registry, "size_bytes");
    assert_eq!(shown.count(), (1 << 62) + (1 << 60));
    assert_eq!(shown.sum(), 3_u64.wrapping_mul(1 << 62).wrapping_add(5 << 60) as f64);
}

/// How widely observations spread, and the options of their histograms.
const SPREADS: [(u64, Options); 4] = [
    (20, |opts| opts.schema(6).max_buckets(1_000_000)),
    (20, |opts| opts.schema(6)),
    (60, |opts| opts.schema(6)),
    (60, |opts| opts.schema(6).max_buckets(20)),
];

#[test]
fn two_that_are_merged_are_one_that_observed_all() {
    for (octaves, options) in SPREADS {
        let registry = registry();
        let [one, other, all] = named::<Seconds, 3>(&registry, ["one", "other", "all"], options);
        write(|writer| {
            for (n, time) in times(writer, 2_000, octaves).enumerate() {
                // The observations of the other spread less.
                let is_others = n % 2 == 1 && time < Duration::from_micros(100);
                if is_others { &other } else { &one }.observe(time);
                all.observe(time);
            }
        });
        for [one, other] in [["one_seconds", "other_seconds"], ["other_seconds", "one_seconds"]] {
            let mut merged = shown(&registry, one);
            assert!(merged.merge(&shown(&registry, other)));
            check_same(&merged, &shown(&registry, "all_seconds"));
        }
    }
}

#[test]
fn a_difference_equals_a_histogram_that_began_later() {
    for (octaves, options) in SPREADS {
        let registry = registry();
        let [all, late] = named::<Seconds, 2>(&registry, ["all", "late"], options);
        write(|writer| times(writer, 1_000, octaves / 3).for_each(|time| all.observe(time)));
        let before = shown(&registry, "all_seconds");
        write(|writer| {
            for time in times(writer + WRITERS, 1_000, octaves) {
                all.observe(time);
                late.observe(time);
            }
        });
        let since = shown(&registry, "all_seconds").diff(&before);
        assert_eq!(since.count(), 8_000);
        check_same(&since, &shown(&registry, "late_seconds"));
    }
}

#[test]
fn observations_between_concurrent_snapshots_are_complete() {
    let (registry, all) = &alone::<Histogram<Seconds>>(opts("all").schema(8));
    let shown = || shown(registry, "all_seconds");
    let mut snapshots = vec![shown()];
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|n| scope.spawn(move || times(n, 5_000, 50).for_each(|time| all.observe(time))))
            .collect();
        while !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
            snapshots.push(shown());
        }
    });
    snapshots.push(shown());
    let mut together = snapshots[0].clone();
    for pair in snapshots.windows(2) {
        let since = pair[1].diff(&pair[0]);
        assert_eq!(pair[0].count() + since.count(), pair[1].count());
        assert_eq!(since.native().unwrap().count(), since.count());
        assert!(together.merge(&since));
    }
    assert_eq!(together.count(), WRITERS * 5_000);
    check_same(&together, snapshots.last().unwrap());
}

#[test]
fn differences_and_sums_are_right_where_zero_widens_between_them() {
    let mut widened = 0;
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let most = 4 + random.below(30) as u32;
        let widest = 2_f64.powf(random.share() * 30.0 - 20.0);
        let registry = registry();
        let [all, late]: [Histogram<Floats>; 2] = ["all", "late"].map(|name| {
            let opts = opts(name).schema(4).max_buckets(most).widest_zero(widest);
            registry.register(opts).unwrap()
        });
        let mut some = |spread: f64, each: &dyn Fn(f64)| {
            for _ in 0..60 {
                let sign = [1.0, -1.0][random.below(2) as usize];
                each(sign * (spread * (random.share() - 0.5)).exp2());
            }
        };
        some(4.0, &|x| all.observe(x));
        let before = shown(&registry, "all");
        some(25.0, &|x| {
            all.observe(x);
            late.observe(x);
        });
        let now = shown(&registry, "all");
        let since = now.diff(&before);
        assert_eq!((since.count(), since.native().unwrap().count()), (60, 60), "seed {seed}");
        let mut together = before.clone();
        assert!(together.merge(&since));
        assert_eq!(together.native().unwrap().count(), 120);
        // Values that the earlier one could still distinguish from zero count as zero in the later.
        let [a, b] = [&together, &now].map(|shown| shown.native().unwrap());
        assert_eq!(a.schema(), b.schema());
        let zero = a.zero_threshold();
        let beyond = |side: &[(i32, u64)]| -> Vec<_> {
            side.iter().copied().filter(|&(n, _)| b.upper_bound(n) > zero).collect()
        };
        assert_eq!(a.positive(), beyond(b.positive()), "seed {seed}");
        assert_eq!(a.negative(), beyond(b.negative()), "seed {seed}");
        widened += u32::from(b.zero_threshold() > 1e-30);
    }
    assert!(widened > 50, "{widened}");
}

#[test]
fn the_sum_of_what_came_since_is_a_number_where_an_earlier_one_was_none() {
    let (registry, floats) = alone::<Histogram<Floats>>(opts("x").bucketing(Bucketing::Classic));
    for (x, sum) in [(f64::INFINITY, f64::INFINITY), (f64::NAN, f64::NAN), (2.5, 2.5), (4.0, 4.0)] {
        let before = shown(&registry, "x");
        floats.observe(x);
        let since = shown(&registry, "x").diff(&before);
        assert_eq!(since.sum().total_cmp(&sum), std::cmp::Ordering::Equal, "{}", since.sum());
    }
    assert!(shown(&registry, "x").sum().is_nan());
}

#[test]
fn histograms_with_other_buckets_are_not_merged() {
    let all = [Bucketing::Classic, Bucketing::Native, Bucketing::Dual].map(|bucketing| {
        let (registry, histogram) = alone::<Histogram<Count>>(opts("x").bucketing(bucketing));
        histogram.observe(3);
        shown(&registry, "x")
    });
    for (n, one) in all.iter().enumerate() {
        for (other, two) in all.iter().enumerate() {
            let (mut merged, since) = (one.clone(), one.diff(two));
            assert_eq!(merged.merge(two), n == other);
            assert_eq!(merged.count(), 1 + u64::from(n == other));
            assert_eq!(since.count(), 0);
        }
    }
}

/// The format's default zero threshold, 2^−128, below all whole numbers but 0.
const NONE: f64 = f64::from_bits((1023 - 128) << 52);

#[test]
fn zero_widens_where_there_are_too_many_buckets_and_only_then() {
    let opts = opts("x").schema(3).max_buckets(24).widest_zero(1e-5);
    let (registry, times) = alone::<Histogram<Seconds>>(opts);
    let read_native = || shown(&registry, "x_seconds").native().unwrap().clone();
    let observe = |nanos| times.observe(Duration::from_nanos(nanos));
    (1_000_000..1_008_000).step_by(10).for_each(observe);
    observe(1);
    observe(300);
    let native = read_native();
    assert_eq!((native.zero_threshold(), native.zero_count(), native.schema()), (NONE, 0, 3));

    // More and more octaves below the widest zero: those above stay as fine as they are.
    (0..13).for_each(|bit| (8..16).for_each(|n| observe((n << bit) >> 3)));
    let native = read_native();
    assert!(native.zero_threshold() <= 1e-5 && native.zero_threshold() > 7e-6, "{native:?}");
    assert_eq!((native.zero_count(), native.schema()), (106, 3));
    assert_eq!(native.count(), 906);

    // Above it they are too many all the same: then they are coarser.
    (0..10).for_each(|bit| (8..16).for_each(|n| observe(n << (bit + 10))));
    let native = read_native();
    assert!(native.schema() < 3, "{native:?}");
    assert!(native.zero_threshold() <= 1e-5);
    assert_eq!(native.count(), 986);
}

#[test]
fn without_a_wide_zero_nothing_but_zero_is_zero() {
    let (registry, things) = alone::<Histogram<Count>>(opts("x").max_buckets(10));
    (0..64).for_each(|bit| things.observe(1 << bit));
    things.observe(0);
    let shown = shown(&registry, "x");
    let native = shown.native().unwrap();
    assert_eq!((native.zero_threshold(), native.zero_count(), native.count()), (NONE, 1, 65));
}

#[test]
fn no_more_buckets_are_shown_than_were_asked_for() {
    for most in [1, 2, 5, 10, 33, 160, 1000] {
        for schema in [8, 3, 0, -2] {
            let registry = registry();
            let opts = |name| opts(name).schema(schema).max_buckets(most);
            let wholes: Histogram<Count> = registry.register(opts("whole")).unwrap();
            let floats: Histogram<Floats> = registry.register(opts("float")).unwrap();
            let mut random = Random::new(u64::from(most));
            for round in 0..2_000 {
                wholes.observe(random.next() >> random.below(64));
                let sign = [-1.0, 1.0][random.below(2) as usize];
                floats.observe(sign * (random.share() * 80.0 - 40.0).exp2());
                if round % 97 != 0 {
                    continue;
                }
                for name in ["whole", "float"] {
                    let shown = shown(&registry, name);
                    let native = shown.native().unwrap();
                    let buckets = native.positive().len() + native.negative().len();
                    // There is no coarser schema than that.
                    assert!(buckets <= most as usize || native.schema() == -4, "{native:?}");
                    let coarsest = if name == "whole" { 5 } else { 12 };
                    assert!(buckets <= most.max(coarsest) as usize, "{native:?}");
                    assert_eq!(native.count(), shown.count());
                }
            }
        }
    }
}

#[test]
fn observations_up_to_a_bucket_s_bound_are_counted_exactly() {
    let (registry, floats) = alone::<Histogram<Floats>>(opts("x").max_buckets(1000));
    let mut random = Random::new(4);
    let mut all: Vec<f64> = (0..2_000).map(|_| 50.0 * random.normal().powi(3)).collect();
    all.extend([0.0, f64::INFINITY, f64::NEG_INFINITY]);
    all.iter().for_each(|&x| floats.observe(x));
    let shown = shown(&registry, "x");
    let native = shown.native().unwrap();
    let bounds = native.positive().iter().map(|&(n, _)| native.upper_bound(n));
    let mirrored = native.negative().iter().map(|&(n, _)| -native.upper_bound(n));
    let mut before = 0.0;
    for bound in mirrored.rev().chain([0.0]).chain(bounds) {
        let exact = all.iter().filter(|&&x| x <= bound).count() as f64;
        let estimate = shown.count_below(bound);
        assert!((estimate - exact).abs() < 1e-6, "{estimate} of {exact} up to {bound}");
        // And between two bounds it only grows.
        for share in [0.9, 0.5, 0.1] {
            if bound.is_infinite() {
                continue;
            }
            let between = shown.count_below(bound - share * 1e-3 * bound.abs());
            assert!(between >= before - 1e-6 && between <= estimate + 1e-6, "{between} at {bound}");
        }
        before = estimate;
    }
    assert_eq!(before, 2_003.0);
}

#[test]
fn one_outlier_among_floats_leaves_the_others_fine() {
    let (registry, floats) = alone::<Histogram<Floats>>(opts("x").max_buckets(1000));
    // A rounding error near 0, an octave that is 64 away from another one, and so on.
    [0.1 + 0.2 - 0.3, 1e-20, 3e22, 1e38, -1e-17].iter().for_each(|&x| floats.observe(x));
    (-30..6).for_each(|n| floats.observe(2_f64.powi(n)));
    (0..1_000).for_each(|n| floats.observe(100.0 + f64::from(n) / 7.0));
    let shown = shown(&registry, "x");
    assert_eq!(shown.native().unwrap().schema(), 3);
    assert!((shown.quantile(0.5).unwrap() / 168.9 - 1.0).abs() < 0.045);
}

#[test]
fn where_there_is_no_room_for_fine_buckets_all_is_counted_in_coarse_ones() {
    let registry = Registry::with_config(Config::with_len(512 << 10)).unwrap();
    let thresholds = [1e-6, 1e-3, 1.0];
    let opts = opts("x").schema(8).max_buckets(1 << 20).buckets(&thresholds).limit(u64::MAX);
    let family: Family<DynamicLabels, Histogram<Seconds>> = registry.family(opts, &["n"]).unwrap();
    let mut coarse = 0;
    for n in 0..100 {
        let Ok(series) = family.try_with_values(&[n.to_string()]) else { break };
        let all: Vec<Duration> = times(n, 500, 60).collect();
        all.iter().for_each(|&time| series.observe(time));
        let snapshot = registry.snapshot();
        let shown = snapshot.histogram("x_seconds", &[("n", &n.to_string())]).unwrap();
        let mut classic = vec![0; 4];
        all.iter().for_each(|time| {
            let above = thresholds.iter().filter(|&&t| time.as_nanos() > (t * 1e9) as u128);
            classic[above.count()] += 1;
        });
        assert_eq!(shown_classic(&shown), classic);
        let native = shown.native().unwrap();
        assert_eq!((shown.count(), native.count()), (500, 500));
        let nanos: Vec<u64> = all.iter().map(|time| time.as_nanos() as u64).collect();
        assert_eq!(Native::of(native), Native::of_whole(native, 1e9, &nanos));
        coarse += u32::from(native.schema() == -4);
    }
    assert!(coarse > 0, "there was room for all");
}

#[test]
fn a_wiped_histogram_counts_from_zero_in_both_views() {
    let registry = registry();
    let times_of_all: Histogram<Seconds> = registry.register(opts("time")).unwrap();
    let floats: Histogram<Floats> = registry.register(opts("float")).unwrap();
    for round in 1..4 {
        times(round, 100 * round, 30).for_each(|time| times_of_all.observe(time));
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -3.0, 1e-300, 7.0];
        odd.iter().for_each(|&x| floats.observe(x));
        for (name, count) in [("time_seconds", 100 * round), ("float", 7)] {
            let shown = shown(&registry, name);
            assert_eq!((shown.count(), shown.native().unwrap().count()), (count, count));
        }
        assert!(shown(&registry, "float").sum().is_nan());
        assert!(registry.wipe(|_| true));
        for name in ["time_seconds", "float"] {
            let shown = shown(&registry, name);
            let native = shown.native().unwrap();
            assert_eq!((shown.count(), native.count(), shown.sum()), (0, 0, 0.0), "{name}");
            assert!(native.positive().is_empty() && native.negative().is_empty());
        }
    }
    floats.observe(2.5);
    assert_eq!(shown(&registry, "float").sum(), 2.5);
}

#[test]
fn a_removed_series_comes_back_empty_and_in_its_finest_schema() {
    let registry = registry();
    let family = registry.family::<Histogram<Seconds>>(opts("x").schema(5), &["a"]).unwrap();
    for _ in 0..5 {
        let snapshot = || registry.snapshot().histogram("x_seconds", &[]);
        family.with_values(&["b"]).observe(Duration::from_millis(3));
        assert_eq!(snapshot().unwrap().native().unwrap().schema(), 5);
        times(1, 500, 60).for_each(|time| family.with_values(&["b"]).observe(time));
        assert!(snapshot().unwrap().native().unwrap().schema() < 3);
        assert!(family.remove_values(&["b"]));
        assert_eq!(snapshot(), None);
        registry.sweep();
    }
}

#[test]
fn overflow_is_shown_also_if_its_sum_is_zero() {
    let registry = registry();
    let family = registry.family::<Histogram<Floats>>(opts("x").limit(1), &["a"]).unwrap();
    family.with_values(&["kept"]).observe(1.0);
    family.with_values(&["over"]).observe(1.0);
    family.with_values(&["over"]).observe(-1.0);
    assert_eq!(shown(&registry, "x").count(), 3);
}
