//! Claims about histograms whose observers are killed. `TALEA_KILLS` sets how many are; 40
//! by default.
#![cfg(all(target_os = "linux", not(miri)))]

use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::support::exact_buckets::Native;
use crate::support::metrics::opts;
use crate::support::process::Worker;
use crate::support::protobuf::{self, Buckets};
use crate::support::random::Random;
use crate::support::tmpfs::Shm;
use talea::{
    Config, DynamicLabels, Escaping, Family, Floats, Format, Histogram, HistogramSnapshot,
    Registry, Seconds,
};

fn kills() -> u64 {
    std::env::var("TALEA_KILLS").map_or(40, |n| n.parse().unwrap())
}

struct Shop {
    registry: Registry,
    times: Histogram<Seconds>,
    drift: Histogram<Floats>,
    pages: Family<DynamicLabels, Histogram<Seconds>>,
}

impl Shop {
    fn open(path: &Path) -> Self {
        let registry = Registry::open_with(path, Config::with_len(32 << 20)).unwrap();
        let opts = |name| opts(name).schema(8);
        Self {
            times: registry.register(opts("time")).unwrap(),
            drift: registry.register(opts("drift")).unwrap(),
            pages: registry.family(opts("page"), &["n"]).unwrap(),
            registry,
        }
    }

    fn shown(&self) -> HistogramSnapshot {
        self.registry.snapshot().histogram("time_seconds", &[]).unwrap()
    }
}

/// The values of an observer: nanoseconds of more and more octaves, at last of 35.
fn times(seed: u64) -> impl Iterator<Item = u64> {
    let mut random = Random::new(seed);
    (0_u64..).map(move |n| {
        let octave = random.below((1 + n / 10).min(35));
        (1 << (octave + 8)) | random.next() >> (56 - octave)
    })
}

/// Not a claim of its own: the process that the other tests start. It observes the values that it
/// is ordered to, and writes a line for each if it is to acknowledge.
#[test]
fn observes_until_killed_when_ordered() {
    let Ok(path) = std::env::var("TALEA_TEST_KILLED") else { return };
    let seed: u64 = std::env::var("TALEA_TEST_SEED").unwrap().parse().unwrap();
    let acknowledges = std::env::var_os("TALEA_TEST_ACKNOWLEDGES").is_some();
    let shop = Shop::open(path.as_ref());
    println!("\n{BEGINS}");
    for (n, nanos) in times(seed).enumerate() {
        let time = Duration::from_nanos(nanos);
        shop.times.observe(time);
        let sign = [1.0, -1.0][n % 2];
        shop.drift.observe(sign * nanos as f64 / 1e6);
        shop.drift.observe([0.0, f64::INFINITY][n % 2]);
        // So that buckets are always just being made.
        shop.pages.with_values(&[(n / 10 % 20).to_string()]).observe(time);
        if acknowledges {
            println!("{OBSERVED}");
        }
    }
}

/// The lines of an observer.
const BEGINS: &str = "it observes";
const OBSERVED: &str = ".";

/// A process that observes; it is killed at the end at the latest.
struct Observer {
    worker: Worker,
    seed: u64,
    begun: bool,
}

impl Observer {
    fn start(path: &Path, seed: u64, acknowledges: bool) -> Self {
        let mut command = again!("observes_until_killed_when_ordered");
        command.env("TALEA_TEST_KILLED", path).env("TALEA_TEST_SEED", seed.to_string());
        if acknowledges {
            command.env("TALEA_TEST_ACKNOWLEDGES", "1");
        }
        Self { worker: Worker::start(&mut command), seed, begun: false }
    }

    /// Waits until it observes.
    fn wait(&mut self) {
        if !self.begun {
            self.worker.lines_before(BEGINS);
        }
        self.begun = true;
    }

    /// Kills it and returns how much it acknowledged.
    fn kill(self) -> usize {
        self.worker.kill().iter().filter(|line| *line == OBSERVED).count()
    }
}

#[test]
fn acknowledged_observations_count_once_however_coarse_the_series_gets() {
    const THREADS: u64 = 8;
    let shm = Shm::new("coarser");
    let path = shm.file();
    let shop = Shop::open(&path);
    shop.times.observe(Duration::from_nanos(1));
    assert_eq!(shop.shown().native().unwrap().schema(), 8, "the first octave is fine");

    let mut acknowledged = vec![1];
    let mut perhaps = Vec::new();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let shop = &shop;
            scope.spawn(move || {
                for nanos in times(thread).take(5_000) {
                    shop.times.observe(Duration::from_nanos(nanos));
                    if nanos % 64 == 0 {
                        thread::yield_now();
                    }
                }
            });
            acknowledged.extend(times(thread).take(5_000));
        }
        let mut random = Random::new(5);
        let mut observers = [100, 101].map(|seed| Observer::start(&path, seed, true));
        for kill in 0..kills() {
            let victim = &mut observers[kill as usize % 2];
            victim.wait();
            thread::sleep(Duration::from_micros(random.below(2_000)));
            let killed = std::mem::replace(victim, Observer::start(&path, 102 + kill, true));
            let seed = killed.seed;
            let mut observed = times(seed);
            acknowledged.extend(observed.by_ref().take(killed.kill()));
            perhaps.extend(observed.next());
            let shown = shop.shown();
            assert_eq!(shown.count(), shown.native().unwrap().count());
        }
        for observer in observers {
            let mut observed = times(observer.seed);
            acknowledged.extend(observed.by_ref().take(observer.kill()));
            perhaps.extend(observed.next());
        }
    });

    let shown = shop.shown();
    let native = shown.native().unwrap();
    assert_eq!(native.schema(), 2);
    let [least, more] =
        [&acknowledged, &perhaps].map(|all| Native::of_whole(native, 1e9, all).positive);
    for &(bucket, count) in native.positive() {
        let least = least.get(&bucket).copied().unwrap_or(0);
        let more = more.get(&bucket).copied().unwrap_or(0);
        assert!((least..=least + more).contains(&count), "{bucket}: {count} of {least}+{more}");
    }
    let (count, died) = (acknowledged.len(), perhaps.len());
    println!("{count} acknowledged, of them {} by {died} who were killed", count - 40_001);
    assert!((count..=count + died).contains(&(shown.count() as usize)), "{}", shown.count());
    let sum = |all: &[u64]| all.iter().sum::<u64>() as f64 / 1e9;
    let (least, more) = (sum(&acknowledged), sum(&perhaps));
    assert!(shown.sum() >= least * 0.999_999 && shown.sum() <= (least + more) * 1.000_001);

    acknowledged.sort_unstable();
    let bound = (native.growth() - 1.0) / (native.growth() + 1.0) * 1.000_001;
    for n in 1..1000 {
        let rank = (n * count).div_ceil(1000);
        // Observations without acknowledgement may be there, below or above.
        let at = |rank: usize| acknowledged[rank.clamp(1, count) - 1] as f64 / 1e9;
        let (least, most) = (at(rank.saturating_sub(died)), at(rank + died));
        let estimate = shown.quantile(n as f64 / 1000.0).unwrap();
        assert!(
            estimate >= least * (1.0 - bound) && estimate <= most * (1.0 + bound),
            "{n}: {estimate}"
        );
    }
}

/// That all that a scrape shows of a histogram is the same observations.
fn check(found: &Buckets, text: &str, name: &str) {
    let last = found.bucket.last().map_or(0, |bucket| bucket.cumulative);
    assert!(found.bucket.is_sorted_by_key(|bucket| bucket.cumulative) && last <= found.count);
    assert_eq!(found.in_native(), found.count, "{name}");
    for line in [format!("{name}_bucket{{le=\"+Inf\"}} "), format!("{name}_count ")] {
        let shown = text.lines().find_map(|text| text.strip_prefix(&line)).unwrap();
        assert_eq!(shown.parse(), Ok(found.count), "{name}");
    }
}

#[test]
fn a_writer_killed_at_any_point_leaves_both_kinds_of_buckets_equal() {
    let shm = Shm::new("observers");
    let path = shm.file();
    let shop = Shop::open(&path);
    let mut random = Random::new(9);
    let mut observers = [0, 1, 2].map(|seed| Observer::start(&path, seed, false));
    let mut counts = [0; 2];
    for kill in 0..kills() {
        let victim = kill as usize % observers.len();
        // Every other one may die while it starts.
        if kill % 2 == 0 {
            observers[victim].wait();
            thread::sleep(Duration::from_micros(random.below(20_000)));
        }
        let next = Observer::start(&path, 3 + kill, false);
        std::mem::replace(&mut observers[victim], next).kill();

        let snapshot = shop.registry.snapshot();
        let text = snapshot.chunks(Format::Text, Escaping::default(), usize::MAX);
        let text = String::from_utf8(text.flatten().collect()).unwrap();
        for (name, before) in ["time_seconds", "drift"].into_iter().zip(&mut counts) {
            let found = protobuf::histogram(&snapshot, name);
            check(&found, &text, name);
            assert!(found.count >= *before, "{name}: {} after {before}", found.count);
            *before = found.count;
        }
        for series in snapshot.family("page_seconds").unwrap().series() {
            let talea::Value::Histogram(shown) = series.value() else { panic!("{series:?}") };
            assert_eq!(shown.native().unwrap().count(), shown.count());
        }
        shop.pages.remove_matching(&[]);
    }
    println!("{} killed, {counts:?} observed", kills());
    assert!(counts.iter().all(|&count| count > 10 * kills()), "{counts:?}");
}
