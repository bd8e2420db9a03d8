//! Claims about native histograms in a real Prometheus, 2.42, while who observes is killed.
//! `TALEA_KILLS` sets how many are; 20 by default.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use stage::{Job, Prometheus};
use talea::{Bucketing, Config, Floats, Histogram, Opts, Registry, Seconds};
use talea_http::MetricsServer;

struct Shop {
    registry: Registry,
    times: Histogram<Seconds>,
    drift: Histogram<Floats>,
    still: Histogram<Seconds>,
}

impl Shop {
    fn open(path: &Path) -> Self {
        let registry = Registry::open_with(path, Config::with_len(16 << 20)).unwrap();
        let opts = |name| Opts::new(name, "Some.").schema(8);
        let native = |name| opts(name).bucketing(Bucketing::Native);
        Self {
            times: registry.register(opts("time")).unwrap(),
            drift: registry.register(native("drift")).unwrap(),
            still: registry.register(native("still").schema(4).max_buckets(9999)).unwrap(),
            registry,
        }
    }
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Not a claim of its own: what the other tests start as a process.
#[test]
fn observes_until_killed_when_asked() {
    let Ok(path) = std::env::var("TALEA_TEST_KILLED") else { return };
    let shop = Shop::open(path.as_ref());
    let mut state = u64::from(std::process::id());
    loop {
        let bits = random(&mut state) % 40;
        let nanos = random(&mut state) >> (63 - bits);
        shop.times.observe(Duration::from_nanos(nanos));
        shop.drift.observe(nanos as f64 / 1e6 - 1.0);
    }
}

/// A process that observes; it is killed at the end at the latest.
struct Observer(Child);

impl Observer {
    fn start(path: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "native::observes_until_killed_when_asked"]);
        let command = command.env("TALEA_TEST_KILLED", path).stdout(std::process::Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The exact quantile of the values that `still` observes; these are the values, sorted.
fn exact(all: &[u64], q: f64) -> f64 {
    all[((q * all.len() as f64).ceil() as usize).max(1) - 1] as f64 / 1e9
}

#[tokio::test]
async fn it_takes_every_scrape_while_observers_are_killed() {
    let kills: u32 = std::env::var("TALEA_KILLS").map_or(20, |n| n.parse().unwrap());
    let shm = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = shm.path().join("shop.talea");
    let shop = Shop::open(&path);
    let mut state = 77;
    let mut all: Vec<u64> = (0..20_000)
        .map(|_| 100_000 + (random(&mut state) % 2_000) * (random(&mut state) % 50_000))
        .collect();
    all.iter().for_each(|&nanos| shop.still.observe(Duration::from_nanos(nanos)));
    all.sort_unstable();

    let server =
        MetricsServer::bind(SocketAddr::from(([127, 0, 0, 1], 0)), &shop.registry).unwrap();
    let jobs = [Job { name: "talea", address: server.local_addr(), path: "/metrics", more: "" }];
    let prometheus = Prometheus::start(&jobs, "native-histograms").await;
    prometheus.wait_for("up", |_| true).await;
    let mut observers = [(); 2].map(|()| Observer::start(&path));
    for kill in 0..kills {
        tokio::time::sleep(Duration::from_millis(130 + u64::from(kill * 37 % 170))).await;
        observers[kill as usize % 2] = Observer::start(&path);
    }
    drop(observers);

    // The last scrape has all.
    let count = |name: &str| {
        let shown = shop.registry.snapshot().histogram(name, &[]).unwrap();
        assert_eq!(shown.native().unwrap().count(), shown.count());
        shown.count()
    };
    for name in ["time_seconds", "drift", "still_seconds"] {
        let expected = count(name) as f64;
        assert!(expected > 1_000.0, "{name}");
        let query = format!("histogram_count({name})");
        prometheus.wait_for(&query, |count| count == expected).await;
    }
    assert_eq!(prometheus.number("min_over_time(up[1h])").await, Some(1.0), "{}", prometheus.log());
    let scrapes = prometheus.number("count_over_time(up[1h])").await.unwrap();
    assert!(scrapes >= f64::from(kills) / 6.0, "{scrapes}");
    assert_eq!(prometheus.log(), "", "it complains");

    // Its buckets are ours, up to the width of one.
    let shown = shop.registry.snapshot().histogram("still_seconds", &[]).unwrap();
    let native = shown.native().unwrap();
    assert_eq!(native.schema(), 4);
    for q in [0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999] {
        let query = format!("histogram_quantile({q}, still_seconds)");
        let found = prometheus.number(&query).await.unwrap();
        let expected = exact(&all, q);
        let error = (found / expected - 1.0).abs();
        assert!(error <= native.growth() - 1.0, "{q}: {found} for {expected}");
    }
    let sum = prometheus.number("histogram_sum(still_seconds)").await.unwrap();
    assert!((sum / shown.sum() - 1.0).abs() < 1e-12);
}
