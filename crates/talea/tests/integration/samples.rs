//! Summaries that store samples: any reader computes their quantiles, of a sliding window.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::metrics;
use crate::support::tmpfs::Shm;
use proptest::prelude::*;
use talea::{Config, Opts, Registry, SampledSummary, Snapshot};

const QUANTILES: [f64; 6] = [0.01, 0.05, 0.5, 0.95, 0.99, 1.0];

fn opts() -> Opts<'static> {
    metrics::opts("pricing").quantiles(&QUANTILES)
}

fn register(registry: &Registry, opts: Opts<'_>) -> SampledSummary {
    registry.sampled_summary(opts, &["country"]).unwrap()
}

/// A summary with a window of so many seconds, in a registry of its own.
fn pricing(window: u64) -> (Registry, SampledSummary) {
    let registry = metrics::registry();
    let pricing = register(&registry, opts().window(Duration::from_secs(window)));
    (registry, pricing)
}

fn second(n: f64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs_f64(1e9 + n)
}

/// The series of a country at a second: its quantiles, and the count and sum of its window.
fn lately(registry: &Registry, country: &str, at: f64) -> (Vec<f64>, u64, f64) {
    let mut snapshot = registry.snapshot();
    snapshot.show_samples(second(at));
    shown(&snapshot, country)
}

fn shown(snapshot: &Snapshot, country: &str) -> (Vec<f64>, u64, f64) {
    let series = snapshot.select("pricing", &[("country", country)]).next().unwrap();
    let talea::Value::Summary(summary) = series.value() else { panic!("a summary") };
    let (count, sum) = series.window_totals().unwrap();
    (summary.quantiles.iter().map(|(_, value)| *value).collect(), count, sum)
}

/// By the nearest rank.
fn exactly(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = (values.len() as f64 * q).ceil().max(1.0);
    sorted[rank as usize - 1]
}

fn assert_near(found: f64, exact: f64, error: f64) {
    assert!((found - exact).abs() <= exact.abs() * error + 1e-12, "{found} and not {exact}");
}

#[test]
fn few_samples_are_shown_to_the_digit() {
    let (registry, pricing) = pricing(600);
    let values: Vec<f64> = (0..100).map(|n| f64::from((n * 37) % 101) / 7.0 - 3.0).collect();
    for (n, value) in values.iter().enumerate() {
        pricing.observe(&["pe"], *value, second(n as f64));
        let (quantiles, count, sum) = lately(&registry, "pe", n as f64);
        let all = &values[..=n];
        assert_eq!(quantiles, QUANTILES.map(|q| exactly(all, q)), "{n}");
        assert_eq!(count, n as u64 + 1);
        assert_near(sum, all.iter().sum(), 1e-12);
    }
}

#[test]
fn samples_leave_the_window_one_by_one() {
    let (registry, pricing) = pricing(10);
    for n in 0..5 {
        pricing.observe(&["pe"], f64::from(n), second(f64::from(n)));
    }
    for left in 0..5 {
        let at = f64::from(left) + 10.0;
        assert_eq!(lately(&registry, "pe", at).1, 5 - left as u64, "still in at {at}");
        let (quantiles, count, sum) = lately(&registry, "pe", at + 0.5);
        assert_eq!((count, sum), (4 - left as u64, f64::from((left + 1..5).sum::<i32>())));
        assert_eq!(quantiles.iter().all(|q| q.is_nan()), left == 4);
    }
    let text = registry.snapshot().to_text();
    assert!(text.contains("pricing_count{country=\"pe\"} 5\n"), "of all time: {text}");
}

#[test]
#[cfg(target_os = "linux")]
fn another_process_s_reader_shows_the_same() {
    let shm = Shm::new("samples");
    let registry = Registry::open(shm.file()).unwrap();
    let pricing = register(&registry, opts());
    for n in 0..1000 {
        pricing.observe(&["pe"], f64::from(n), SystemTime::now());
    }
    let own = registry.snapshot();
    let mut theirs = shm.outside(|name| name == "pricing");
    assert_eq!(shown(&theirs, "pe"), shown(&own, "pe"));
    let reader = talea::outside::Reader::open(shm.file()).unwrap();
    let look = reader.look().unwrap();
    assert_eq!((look.families.len(), look.families_unreadable), (1, 0));
    // A reader that keeps windows up to date needs none of it.
    reader.recent_into(&mut theirs).unwrap();
    assert_eq!(theirs.families().count(), 0);
    assert!(!own.to_text().contains("samples"));
}

/// How far a quantile may be off, relative to the exact one: a bucket of schema 4 reaches from
/// 0.9783 to 1.0217 of its middle.
const ERROR: f64 = 0.0217;

#[test]
fn the_window_slides_by_quarters() {
    let (registry, pricing) = pricing(60);
    // A hundred a second for five minutes, which get slower.
    let value = |n: u64| (1.0 + n as f64 / 3000.0) * (1.0 + ((n * 7919) % 1000) as f64 / 100.0);
    for n in 0..30_000 {
        pricing.observe(&["pe"], value(n), second(n as f64 / 100.0));
        if n > 7500 && n % 97 == 0 {
            let (quantiles, count, sum) = lately(&registry, "pe", n as f64 / 100.0);
            assert!((6000..=7501).contains(&count), "{count} in 60 to 75 s");
            let all: Vec<f64> = (n + 1 - count..=n).map(value).collect();
            assert_near(sum, all.iter().sum(), ERROR);
            for (q, found) in QUANTILES.into_iter().zip(quantiles) {
                assert_near(found, exactly(&all, q), ERROR);
            }
        }
    }
    assert_eq!(lately(&registry, "pe", 375.0).1, 0);
}

/// Two thousand of some 20 ms, and then as many of 1 to 30 s, in one slice.
#[test]
fn an_outage_within_a_slice_is_shown() {
    for (many, q, at_least) in [(2_000, 0.9, 20.0), (20_000, 0.99, 25.0)] {
        let registry = metrics::registry();
        let pricing = register(&registry, opts().quantiles(&[q]));
        let mut all = Vec::new();
        for n in 0..many {
            // Log-normal: the sum of twelve numbers in 0..1, less 6, is nearly normal.
            let normal: f64 = (0..12).map(|k| fraction(n * 12 + k)).sum::<f64>() - 6.0;
            all.push(0.02 * normal.exp());
        }
        all.extend((0..many).map(|n| 1.0 + 29.0 * fraction(n)));
        all.iter().for_each(|value| pricing.observe(&["pe"], *value, second(0.0)));
        let (found, count, _) = lately(&registry, "pe", 1.0);
        assert_eq!(count, 2 * many);
        let exact = exactly(&all, q);
        assert!(exact > at_least);
        assert_near(found[0], exact, ERROR);
    }
}

/// A number in 0..1, the same for the same `n`.
fn fraction(n: u64) -> f64 {
    let mixed = (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 11) as f64 / (1_u64 << 53) as f64
}

/// A way for values to come: of one size for a while, and then of another.
fn phases() -> impl Strategy<Value = Vec<f64>> {
    let value = prop_oneof![
        // Narrow, latencies, sizes in bytes, all sizes there are.
        (0.019..0.021_f64),
        (-14.0..5.0_f64).prop_map(f64::exp),
        (0.0..40.0_f64).prop_map(|x| x.exp2().floor()),
        any::<f64>().prop_filter("a number", |x| !x.is_nan()),
    ];
    // A phase repeats few values, or has ever new ones.
    let phase = (prop::collection::vec(value, 1..300), 1..20_usize);
    prop::collection::vec(phase, 1..6).prop_map(|phases| {
        phases.into_iter().flat_map(|(values, times)| values.repeat(times)).collect()
    })
}

/// An order that somebody chose.
fn order() -> impl Strategy<Value = fn(&mut Vec<f64>)> {
    prop_oneof![
        Just((|_| {}) as fn(&mut Vec<f64>)),
        Just((|values| values.sort_by(f64::total_cmp)) as fn(&mut Vec<f64>)),
        Just((|values| values.sort_by(|one, other| other.total_cmp(one))) as fn(&mut Vec<f64>)),
        // Smallest, largest, next smallest, …
        Just(
            (|values| {
                values.sort_by(f64::total_cmp);
                let (low, high) = values.split_at(values.len() / 2);
                let pairs = low.iter().zip(high.iter().rev()).flat_map(|(low, high)| [*low, *high]);
                *values = pairs.collect();
            }) as fn(&mut Vec<f64>)
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_quantile_is_within_its_bound_for_any_values_in_any_order(
        mut values in phases(),
        order in order(),
        // Seconds between two, on average: from all at once to one window in a few hundred.
        pace in prop_oneof![Just(0.0), 0.0..0.5_f64],
        looks in prop::collection::vec(0.0..1.0_f64, 1..4),
        q in 0.01..0.49_f64,
    ) {
        order(&mut values);
        let registry = Registry::with_config(Config::with_len(64 << 20)).unwrap();
        let window = 60;
        let quantiles = [0.0, q, 0.5, 0.99, 1.0];
        let opts = opts().quantiles(&quantiles).window(Duration::from_secs(window));
        let pricing = register(&registry, opts);
        let at = |n: usize| n as f64 * pace + fraction(n as u64) * pace;
        let mut looks: Vec<_> = looks.iter().map(|x| (x * values.len() as f64) as usize).collect();
        looks.push(values.len().max(1) - 1);
        for (n, value) in values.iter().enumerate() {
            pricing.observe(&["pe"], *value, second(at(n)));
            if !looks.contains(&n) {
                continue;
            }
            let (found, count, sum) = lately(&registry, "pe", at(n));
            // The latest so many: all of the window, and at most a quarter of it more.
            let from = n + 1 - count as usize;
            let window = window as f64;
            let millisecond = 0.001;
            prop_assert!(from == 0 || at(from - 1) < at(n) - window + millisecond);
            prop_assert!(at(from) >= at(n) - 1.25 * window - millisecond);
            let all = &values[from..=n];
            // Half of the smallest float, where floats are that far apart.
            let step = f64::from_bits(1);
            for (q, found) in quantiles.into_iter().zip(found) {
                let exact = exactly(all, q);
                let is_near = (found - exact).abs() <= exact.abs() * ERROR + step;
                prop_assert!(found == exact || is_near, "{q} of {count}: {found} and not {exact}");
                if count <= 128 {
                    prop_assert_eq!(found, exact);
                }
            }
            let exact: f64 = all.iter().sum();
            let size: f64 = all.iter().map(|x| x.abs()).sum();
            if size.is_finite() {
                prop_assert!((sum - exact).abs() <= size * ERROR + step * count as f64);
            }
        }
    }
}

#[test]
fn the_window_begins_anew_when_the_clock_is_set_back() {
    let (registry, pricing) = pricing(60);
    let shows = |value: f64, at: f64| {
        let (quantiles, count, _) = lately(&registry, "pe", at);
        assert_eq!(count, 500);
        quantiles.into_iter().for_each(|found| assert_near(found, value, ERROR));
    };
    let observe = |value, at| (0..500).for_each(|_| pricing.observe(&["pe"], value, second(at)));
    observe(1.0, 7200.0);
    observe(2.0, 3600.0);
    shows(2.0, 3600.0);
    observe(3.0, 3650.0);
    assert_eq!(lately(&registry, "pe", 3650.0).1, 1000);
    // And set right again.
    observe(4.0, 7275.0);
    shows(4.0, 7275.0);
}

#[test]
fn nan_is_counted_and_in_no_window() {
    let (registry, pricing) = pricing(600);
    for n in 0..300 {
        pricing.observe(&["pe"], if n % 3 == 0 { f64::NAN } else { 7.0 }, second(0.0));
    }
    let (quantiles, count, _) = lately(&registry, "pe", 0.0);
    assert_eq!(count, 200);
    quantiles.into_iter().for_each(|value| assert_near(value, 7.0, ERROR));
    assert!(registry.snapshot().to_text().contains("pricing_count{country=\"pe\"} 300\n"));
}

#[test]
fn a_series_takes_memory_by_the_octaves_of_its_values() {
    let registry = Registry::with_config(Config::with_len(64 << 20)).unwrap();
    let pricing = register(&registry, opts());
    pricing.observe(&["first"], 1.0, second(0.0));
    let taken = |country: &str, values: &mut dyn Iterator<Item = f64>| {
        let before = registry.usage().single_cells.taken;
        values.for_each(|value| pricing.observe(&[country], value, second(0.0)));
        registry.usage().single_cells.taken - before
    };
    let spread = |count: u64, octaves: f64| {
        (0..count).map(move |n| 0.001 * (n as f64 / count as f64 * octaves).exp2())
    };
    let kib = |n: f64| (n * 1024.0) as u64;
    assert!(taken("few", &mut spread(16, 3.0)) <= kib(0.8));
    assert!(taken("ring", &mut spread(128, 3.0)) <= kib(2.5));
    assert!(taken("latencies", &mut spread(100_000, 13.3)) <= kib(12.0));
    assert!(taken("300", &mut spread(300, 20.0)) <= 16_000);
    assert!(taken("32 octaves", &mut spread(10_000, 31.9)) <= kib(23.2));
    let all = (0..=2046_u64 << 4).map(|high| f64::from_bits(high << 48)).flat_map(|x| [x, -x]);
    let all: Vec<f64> = all.filter(|x| x.is_finite()).collect();
    assert!(taken("all there are", &mut all.repeat(2).into_iter()) <= kib(2.7 * 1024.0));
    let (quantiles, count, _) = lately(&registry, "all there are", 0.0);
    assert_eq!(count, 2 * all.len() as u64);
    assert!(quantiles.is_sorted() && quantiles[0] < 0.0, "{quantiles:?}");
}

#[test]
fn threads_and_processes_lose_none() {
    const EACH: u64 = 20_000;
    let (registry, pricing) = pricing(3600);
    let now = SystemTime::now();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                (0..EACH).for_each(|n| pricing.observe(&["pe"], 1.0 + (n % 9) as f64, now));
            });
        }
    });
    let (_, count, sum) = shown(&registry.snapshot(), "pe");
    assert_eq!(count, 4 * EACH);
    let each: u64 = (0..EACH).map(|n| 1 + n % 9).sum();
    assert_near(sum, 4.0 * each as f64, ERROR);
}

#[test]
fn wiped_removed_and_unregistered_samples_are_gone() {
    let (registry, pricing) = pricing(600);
    let observe = || (0..500).for_each(|n| pricing.observe(&["pe"], f64::from(n), second(0.0)));
    let is_gone = || {
        let text = registry.snapshot().to_text();
        assert!(!text.contains("country=\"pe\""), "{text}");
        pricing.observe(&["pe"], 7.0, second(0.0));
        assert_eq!(lately(&registry, "pe", 0.0), (vec![7.0; 6], 1, 7.0));
    };
    observe();
    assert!(pricing.remove_values(&["pe"]));
    is_gone();
    observe();
    registry.wipe(|name| name == "pricing");
    is_gone();
    observe();
    assert!(registry.unregister("pricing"));
    assert!(registry.snapshot().to_text().is_empty());
    register(&registry, opts());
    is_gone();
}

#[test]
fn overflow_counts_from_0_after_a_wipe() {
    let registry = metrics::registry();
    let pricing = register(&registry, opts().limit(1));
    let now = |round: u32| second(f64::from(round));
    for round in 0..3 {
        let value = f64::from(1 << round);
        for _ in 0..500 {
            ["pe", "de", "fr"].iter().for_each(|c| pricing.observe(&[c], value, now(round)));
        }
        // Of the series that takes what overflows.
        let shown = || {
            let mut snapshot = registry.snapshot();
            snapshot.show_samples(now(round));
            let series = snapshot.select("pricing", &metrics::OVERFLOW).next()?;
            let talea::Value::Summary(summary) = series.value() else { panic!("a summary") };
            Some((summary.quantiles, series.window_totals().unwrap().0))
        };
        let (quantiles, count) = shown().unwrap();
        assert_eq!(count, 1000, "{round}");
        quantiles.into_iter().for_each(|(_, found)| assert_near(found, value, ERROR));
        assert!(pricing.wipe());
        assert!(shown().is_none_or(|(_, count)| count == 0), "{round}");
    }
}

#[test]
fn where_there_is_no_room_quantiles_are_of_all_and_nothing_is_said_of_samples() {
    let registry = Registry::with_config(Config::with_len(1 << 20)).unwrap();
    let pricing = register(&registry, opts());
    for n in 0..2000 {
        let country = n.to_string();
        (0..3).for_each(|n| pricing.observe(&[&country], f64::from(n), second(0.0)));
    }
    let snapshot = registry.snapshot();
    let text = snapshot.to_text();
    let counts = text.lines().filter_map(|line| {
        let (_, count) = line.strip_prefix("pricing_count{")?.split_once("} ")?;
        count.parse::<u64>().ok()
    });
    assert_eq!(counts.sum::<u64>(), 6000);
    let lines: Vec<_> = text.lines().filter(|line| line.contains("samples")).collect();
    assert_eq!(lines, Vec::<&str>::new());
    let (quantiles, count, _) = shown(&snapshot, "1");
    assert_eq!((quantiles.len(), count), (6, 0), "in no window any more");
    let last = snapshot.select("pricing", &[]).last().unwrap().window_totals();
    assert!(last.is_some_and(|(count, _)| count > 0), "of all: {last:?}");
}
