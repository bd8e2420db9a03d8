//! Claims about what a real Prometheus has of metrics that are pushed to it: Debian's, which knows
//! remote-write 1.0, and the current one that `TALEA_PROMETHEUS` names, which knows 2.0.

use std::io::{BufRead, BufReader, Lines, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use stage::{Prometheus, Samples, Way, assert_same, hard_metrics, samples};
use talea::{
    Bucketing, Counter, FloatGauge, Histogram, Kind, Opts, Registry, Seconds, Snapshot, Summary,
};
use talea_push::{Config, Pusher};

/// The longest that a test waits for what must come.
const LONGEST: Duration = Duration::from_secs(60);

fn opts(name: &str) -> Opts<'_> {
    Opts::new(name, "Some.")
}

/// Metrics whose names every version of Prometheus has.
fn plain_metrics() -> Registry {
    let registry = Registry::for_test().unwrap();
    let orders = registry.family::<Counter>(opts("orders"), &["country"]).unwrap();
    orders.with_values(&["pe"]).add(3);
    orders.with_values(&["a \"b\"\\\n"]).inc();
    registry.register::<FloatGauge>(opts("level")).unwrap().set(-1.5);
    let classic = opts("wait").bucketing(Bucketing::Classic);
    let even = opts("even").bucketing(Bucketing::Native).schema(5).max_buckets(9_999);
    let dual = opts("took").bucketing(Bucketing::Dual);
    for opts in [classic, even, dual] {
        let histogram: Histogram<Seconds> = registry.register(opts).unwrap();
        (1..=1_000).for_each(|millis| histogram.observe(Duration::from_millis(millis)));
    }
    let quantiles = opts("size").quantiles(&[0.5, 0.99]);
    registry.register::<Summary<talea::Count>>(quantiles).unwrap().observe(7);
    registry
}

fn config(prometheus: &Prometheus) -> Config {
    let config = Config::remote_write(&format!("http://{}/api/v1/write", prometheus.address()));
    config.unwrap().label("job", "push").interval(Duration::from_secs(3_600))
}

/// The counts of one pusher in a registry of its own: sent, and not taken or dropped.
fn sent_and_lost(registry: &Registry) -> [f64; 2] {
    let snapshot = registry.snapshot();
    let total = |name: &str| {
        let series = snapshot.select(&format!("talea_push_samples_{name}_total"), &[]);
        let values = series.map(|series| match series.value() {
            talea::Value::Unsigned(n) => n as f64,
            other => panic!("{other:?}"),
        });
        values.sum::<f64>()
    };
    [total("sent"), total("failed") + total("dropped")]
}

/// The samples that are numbers: native histograms have the families' own names.
async fn floats(prometheus: &Prometheus, snapshot: &Snapshot) -> Samples {
    let histograms = snapshot.families().filter(|family| family.kind() == Kind::Histogram);
    let names: Vec<_> = histograms.map(|family| family.name().replace('.', "\\\\.")).collect();
    let query = format!("{{job=\"push\",__name__!~\"{}\"}}", names.join("|"));
    prometheus.query(&query).await
}

/// What is pushed as numbers: native histograms without classic buckets are not.
fn expected(snapshot: &Snapshot) -> Samples {
    let families = snapshot.to_families();
    let mut expected = samples(snapshot, false);
    for family in families {
        let mut histograms = family.series.iter().filter_map(|series| series.value.histogram());
        if histograms.any(|it| it.native.is_some() && !it.has_classic()) {
            let of = ["_bucket", "_count", "_sum"].map(|ending| family.name.clone() + ending);
            expected.retain(|(name, _), _| !of.contains(name));
        }
    }
    expected
}

/// Pushes a registry, and checks that Prometheus has all of it, until it ends.
async fn check(prometheus: &Prometheus, registry: &Registry, natives: &[&str]) {
    let snapshot = registry.snapshot();
    let own = Registry::for_test().unwrap();
    let pusher = Pusher::start_for(registry, &own, config(prometheus)).unwrap();
    assert!(pusher.flush(LONGEST), "{}", prometheus.log());
    let [sent, lost] = sent_and_lost(&own);
    assert_eq!(lost, 0.0, "{}", prometheus.log());
    assert!(sent > 0.0);
    assert_same(&floats(prometheus, &snapshot).await, &expected(&snapshot));
    for name in natives {
        let histogram = snapshot.histogram(name, &[]).unwrap();
        let of = |function: &str| format!("{function}({name}{{job=\"push\"}})");
        let count = prometheus.number(&of("histogram_count")).await;
        assert_eq!(count, Some(histogram.count() as f64), "{name}");
        let sum = prometheus.number(&of("histogram_sum")).await.unwrap();
        assert!((sum / histogram.sum() - 1.0).abs() < 1e-12, "{name}: {sum}");
        for q in [0.01, 0.5, 0.99] {
            let query = format!("histogram_quantile({q}, {name}{{job=\"push\"}})");
            let found = prometheus.number(&query).await.unwrap();
            let expected = histogram.quantile(q).unwrap();
            assert!((found / expected - 1.0).abs() < 0.05, "{name} {q}: {found} for {expected}");
        }
    }
    // With its end all series end, at once and not in five minutes.
    assert!(pusher.stop(LONGEST));
    assert_eq!(prometheus.query("{job=\"push\"}").await, Samples::new());
}

#[tokio::test]
async fn a_prometheus_that_knows_version_1_has_what_is_pushed() {
    let features = "exemplar-storage,native-histograms";
    let prometheus = Prometheus::start_receiver("prometheus", features).await;
    check(&prometheus, &plain_metrics(), &["even_seconds", "took_seconds"]).await;
    assert_eq!(prometheus.log(), "", "it complains");
}

#[tokio::test]
async fn a_current_prometheus_has_what_is_pushed() {
    let Ok(program) = std::env::var("TALEA_PROMETHEUS") else { return };
    let prometheus = Prometheus::start_receiver(&program, "exemplar-storage").await;
    check(&prometheus, &plain_metrics(), &["even_seconds", "took_seconds"]).await;
    check(&prometheus, &hard_metrics().unwrap(), &[]).await;
    assert_eq!(prometheus.log(), "", "it complains");
}

#[tokio::test]
async fn a_current_prometheus_has_what_is_pushed_by_otlp() {
    let Ok(program) = std::env::var("TALEA_PROMETHEUS") else { return };
    let prometheus = Prometheus::start_receiver(&program, "exemplar-storage").await;
    let registry = plain_metrics();
    let snapshot = registry.snapshot();
    let url = format!("http://{}/api/v1/otlp/v1/metrics", prometheus.address());
    let config = Config::otlp(&url).unwrap().label("service.name", "push");
    let own = Registry::for_test().unwrap();
    let pusher = Pusher::start_for(&registry, &own, config).unwrap();
    assert!(pusher.flush(LONGEST), "{}", prometheus.log());
    assert_eq!(sent_and_lost(&own)[1], 0.0, "{}", prometheus.log());
    let mut found = floats(&prometheus, &snapshot).await;
    found.retain(|(name, _), _| name != "target_info");
    // A histogram with both kinds of buckets is there with its native ones.
    let mut expected = expected(&snapshot);
    expected.retain(|(name, _), _| !name.starts_with("took_"));
    assert_same(&found, &expected);
    for name in ["even_seconds", "took_seconds"] {
        let count = format!("histogram_count({name}{{job=\"push\"}})");
        assert_eq!(prometheus.number(&count).await, Some(1_000.0), "{name}");
    }
}

/// A process that counts and pushes, until it is killed or its input ends.
struct Shop {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
}

impl Shop {
    fn start(folder: &Path, way: &Way) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "push::counts_and_pushes_until_it_is_killed",
                "--ignored",
                "--nocapture",
            ])
            .env("TALEA_TEST_FOLDER", folder)
            .env("TALEA_TEST_ADDRESS", way.address.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, said }
    }

    /// The next value that its queue has acknowledged; `None` if it has ended.
    fn acknowledged(&mut self) -> Option<u64> {
        let lines = self.said.by_ref().map_while(Result::ok);
        lines.filter_map(|line| line.strip_prefix("> ")?.parse().ok()).next()
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "a process that another test starts and kills"]
fn counts_and_pushes_until_it_is_killed() {
    let folder = PathBuf::from(std::env::var_os("TALEA_TEST_FOLDER").unwrap());
    let address = std::env::var("TALEA_TEST_ADDRESS").unwrap();
    let registry = Registry::open(folder.join("shop.talea")).unwrap();
    let orders: Counter = registry.register(opts("orders")).unwrap();
    let config = Config::remote_write(&format!("http://{address}/api/v1/write")).unwrap();
    let config = config
        .label("job", "push")
        .interval(Duration::from_secs(3_600))
        .backoff(Duration::from_millis(1), Duration::from_millis(20))
        .queue_in(folder.join("queue"));
    let own = Registry::for_test().unwrap();
    let pusher = Pusher::start_for(&registry, &own, config).unwrap();
    let (ended, end) = mpsc::channel();
    thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        let _ = ended.send(());
    });
    while end.try_recv() == Err(mpsc::TryRecvError::Empty) {
        orders.inc();
        let value = orders.get();
        // It is in the queue when this returns.
        pusher.flush(Duration::ZERO);
        println!("\n> {value}");
    }
    assert!(pusher.stop(LONGEST));
}

/// How often the process is killed; `TALEA_KILLS` sets another number.
const KILLS: usize = 5;

#[tokio::test]
async fn a_process_that_is_killed_in_an_outage_loses_nothing() {
    let kills = std::env::var("TALEA_KILLS").map_or(KILLS, |n| n.parse().unwrap());
    let prometheus = Prometheus::start_receiver("prometheus", "").await;
    let way = Way::to(prometheus.address());
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut acknowledged = Vec::new();
    let mut shop = Shop::start(folder.path(), &way);
    acknowledged.extend(shop.acknowledged());
    prometheus.wait_for("orders_total", |value| value > 0.0).await;
    way.set_open(false);
    for _ in 0..kills {
        acknowledged.extend((0..7).map_while(|_| shop.acknowledged()));
        shop.child.kill().unwrap();
        // What it had said before.
        acknowledged.extend(std::iter::from_fn(|| shop.acknowledged()));
        shop = Shop::start(folder.path(), &way);
    }
    acknowledged.extend(shop.acknowledged());
    way.set_open(true);
    drop(shop.child.stdin.take());
    acknowledged.extend(std::iter::from_fn(|| shop.acknowledged()));
    assert!(shop.child.wait().unwrap().success(), "{}", prometheus.log());

    let data = prometheus.api("query", &[("query", "orders_total[1h]")]).await;
    let values = data["result"][0]["values"].as_array().expect("one series with values");
    let stored: Vec<u64> =
        values.iter().map(|pair| pair[1].as_str().unwrap().parse().unwrap()).collect();
    assert!(stored.is_sorted(), "{stored:?}");
    let lost: Vec<_> = acknowledged.iter().filter(|value| !stored.contains(value)).collect();
    assert!(
        lost.is_empty(),
        "{lost:?} of {acknowledged:?}, found {stored:?}: {}",
        prometheus.log()
    );
    let registry = Registry::open(folder.path().join("shop.talea")).unwrap();
    let counted = registry.snapshot().value("orders_total", &[]);
    assert_eq!(counted, stored.last().map(|value| *value as f64), "the last value is exact");
    assert!(acknowledged.len() > 7 * kills);
    assert_eq!(prometheus.log(), "", "it complains");
}
