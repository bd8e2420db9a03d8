//! Summaries that keep samples: any reader tells their quantiles, of a sliding window.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use talea::{Config, Opts, Registry, SampledSummary, SeriesSnapshot, Snapshot};

const QUANTILES: [f64; 6] = [0.01, 0.05, 0.5, 0.95, 0.99, 1.0];

fn pricing(registry: &Registry, window: u64) -> SampledSummary {
    let opts = Opts::new("pricing", "Time to price a basket.")
        .schema(5)
        .quantiles(&QUANTILES)
        .window(Duration::from_secs(window));
    registry.sampled_summary(opts, &["country"]).unwrap()
}

fn second(n: f64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs_f64(1e9 + n)
}

/// What the series of a country shows at a second: its quantiles, and how many were observed
/// in its window with their sum.
fn lately(registry: &Registry, country: &str, at: f64) -> (Vec<f64>, u64, f64) {
    let mut snapshot = registry.snapshot();
    snapshot.show_samples(second(at));
    shown(&snapshot, country)
}

fn shown(snapshot: &Snapshot, country: &str) -> (Vec<f64>, u64, f64) {
    let family = snapshot.families().find(|family| family.name() == "pricing").unwrap();
    let wanted = format!("country=\"{country}\"");
    let is_it = |series: &SeriesSnapshot<'_>| series.label_text() == wanted;
    let series = family.series().find(is_it).unwrap();
    let talea::Value::Summary(summary) = series.value() else { panic!("a summary") };
    let (count, sum) = series.lately().unwrap();
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
    let registry = Registry::for_test().unwrap();
    let pricing = pricing(&registry, 600);
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
    let registry = Registry::for_test().unwrap();
    let pricing = pricing(&registry, 10);
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
fn another_process_s_reader_shows_the_same() {
    let path = format!("/dev/shm/talea-samples-{}.talea", std::process::id());
    let registry = Registry::open(&path).unwrap();
    let pricing = pricing(&registry, 600);
    for n in 0..1000 {
        pricing.observe(&["pe"], f64::from(n), SystemTime::now());
    }
    let own = registry.snapshot();
    let mut theirs = Snapshot::default();
    let reader = talea::outside::Reader::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    reader.snapshot_into(&mut theirs, |name| name == "pricing").unwrap();
    assert_eq!(shown(&theirs, "pe"), shown(&own, "pe"));
    let look = reader.look().unwrap();
    assert_eq!((look.families.len(), look.families_unreadable), (1, 0));
    // Whoever keeps windows up to date needs none of it.
    reader.recent_into(&mut theirs).unwrap();
    assert_eq!(theirs.families().count(), 0);
    assert!(!own.to_text().contains("samples"));
}

#[test]
fn many_samples_are_told_within_a_bound_and_the_window_still_slides() {
    let registry = Registry::for_test().unwrap();
    let pricing = pricing(&registry, 60);
    // A hundred a second for five minutes, which get slower.
    let value = |n: u64| (1.0 + n as f64 / 3000.0) * (1.0 + ((n * 7919) % 1000) as f64 / 100.0);
    for n in 0..30_000 {
        pricing.observe(&["pe"], value(n), second(n as f64 / 100.0));
    }
    let (quantiles, count, sum) = lately(&registry, "pe", 300.0);
    let all: Vec<f64> = (24_000..30_000).map(value).collect();
    assert_near(count as f64, 6000.0, 0.01);
    assert_near(sum, all.iter().sum(), 0.01);
    for (q, found) in QUANTILES.into_iter().zip(quantiles) {
        // How a part of a slice spreads in it is not known.
        assert_near(found, exactly(&all, q), 0.0109 + 0.01);
    }
    let (_, half, _) = lately(&registry, "pe", 330.0);
    assert_near(half as f64, 3000.0, 0.01);
    // A fifth later at most, the last slice has left too.
    assert_eq!(lately(&registry, "pe", 372.0).1, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_sample_is_lost_and_quantiles_are_near_as_far_as_values_are(
        (values, error) in prop_oneof![
            (prop::collection::vec(1e-3..5e-2_f64, 1..4000), Just(0.0109)),
            (prop::collection::vec(prop_oneof![-90.0..-1.0_f64, 1.0..90.0_f64, Just(0.0)], 1..2000),
                Just(0.0443)),
        ],
    ) {
        let registry = Registry::for_test().unwrap();
        let pricing = pricing(&registry, 600);
        for value in &values {
            pricing.observe(&["pe"], *value, second(0.0));
        }
        let (quantiles, count, sum) = lately(&registry, "pe", 1.0);
        prop_assert_eq!(count, values.len() as u64);
        prop_assert!((sum - values.iter().sum::<f64>()).abs() < 1e-6);
        for (q, found) in QUANTILES.into_iter().zip(quantiles) {
            assert_near(found, exactly(&values, q), error);
        }
    }

    #[test]
    fn also_the_widest_spread_is_counted(
        values in prop::collection::vec(any::<f64>().prop_filter("numbers", |x| !x.is_nan()), 200..3000),
    ) {
        let registry = Registry::for_test().unwrap();
        let pricing = pricing(&registry, 600);
        for value in &values {
            pricing.observe(&["pe"], *value, second(0.0));
        }
        let (quantiles, count, _) = lately(&registry, "pe", 1.0);
        prop_assert_eq!(count, values.len() as u64);
        prop_assert!(quantiles.is_sorted());
    }
}

#[test]
fn threads_and_processes_lose_none() {
    const EACH: u64 = 20_000;
    let registry = Registry::for_test().unwrap();
    let pricing = pricing(&registry, 3600);
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
    assert_near(sum, 4.0 * each as f64, 1e-9);
}

#[test]
fn what_is_wiped_removed_or_ended_is_gone() {
    let registry = Registry::for_test().unwrap();
    let pricing = pricing(&registry, 600);
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
    self::pricing(&registry, 600);
    is_gone();
}

#[test]
fn where_there_is_no_room_quantiles_are_of_all_and_nothing_is_said_of_samples() {
    let registry = Registry::with_config(Config::with_len(1 << 20)).unwrap();
    let pricing = pricing(&registry, 600);
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
    let told: Vec<_> = text.lines().filter(|line| line.contains("samples")).collect();
    assert_eq!(told, Vec::<&str>::new());
    let last = snapshot.families().find(|family| family.name() == "pricing").unwrap();
    let last = last.series().last().unwrap();
    let (quantiles, count, _) = shown(&snapshot, "1");
    assert_eq!((quantiles.len(), count), (6, 0), "in no window any more");
    assert!(last.lately().is_some_and(|(count, _)| count > 0), "of all: {:?}", last.lately());
}
