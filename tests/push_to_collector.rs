//! Claims about what a real OpenTelemetry Collector, which `TALEA_COLLECTOR` names, makes of metrics that are pushed to it: it
//! hands them on to the Prometheus that `TALEA_PROMETHEUS` names.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use stage::{LONGEST, Prometheus, free_address};
use talea::{Bucketing, Count, Counter, Histogram, Opts, Registry};
use talea_push::{Config, Pusher, Temporality};
use tempfile::TempDir;

/// A Collector that runs, with its log in a folder that goes with it.
struct Collector {
    child: Child,
    grpc: SocketAddr,
    http: SocketAddr,
    folder: TempDir,
}

impl Collector {
    /// Starts one that sums deltas up, and waits until it listens.
    fn start(program: &str, prometheus: SocketAddr) -> Self {
        let folder = TempDir::new().unwrap();
        let [grpc, http] = [free_address(), free_address()];
        let configuration = format!(
            "receivers: {{otlp: {{protocols: {{grpc: {{endpoint: '{grpc}'}}, http: {{endpoint: '{http}'}}}}}}}}\n\
             processors: {{deltatocumulative: {{}}}}\n\
             exporters:\n  otlp_http:\n    metrics_endpoint: http://{prometheus}/api/v1/otlp/v1/metrics\n\
             service:\n  telemetry: {{metrics: {{level: none}}, logs: {{level: warn}}}}\n  \
             pipelines: {{metrics: {{receivers: [otlp], processors: [deltatocumulative], exporters: [otlp_http]}}}}\n"
        );
        let path = folder.path().join("collector.yaml");
        fs::write(&path, configuration).unwrap();
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", program, "--config"])
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(folder.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let mut started = Self { child, grpc, http, folder };
        let began = Instant::now();
        while [grpc, http].iter().any(|address| TcpStream::connect(address).is_err()) {
            let ended = started.child.try_wait().unwrap();
            assert!(ended.is_none() && began.elapsed() < LONGEST, "{}", started.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        started
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_collector_hands_on_what_is_pushed_cumulative_or_as_deltas_over_http_or_grpc() {
    let Ok(program) = std::env::var("TALEA_COLLECTOR") else { return };
    let prometheus = std::env::var("TALEA_PROMETHEUS").expect("a current Prometheus takes OTLP");
    let prometheus = Prometheus::start_receiver(&prometheus, "").await;
    let collector = Collector::start(&program, prometheus.address());
    for (job, is_grpc, temporality) in [
        ("http", false, Temporality::Cumulative),
        ("grpc", true, Temporality::Cumulative),
        ("http-deltas", false, Temporality::Delta),
        ("grpc-deltas", true, Temporality::Delta),
    ] {
        let config = match is_grpc {
            true => Config::otlp_grpc(&format!("http://{}", collector.grpc)),
            false => Config::otlp(&format!("http://{}/v1/metrics", collector.http)),
        };
        let config = config.unwrap().label("service.name", job).temporality(temporality);
        let registry = Registry::for_test().unwrap();
        let orders: Counter = registry.register(Opts::new("orders", "Some.")).unwrap();
        let native = Opts::new("size", "Some.").bucketing(Bucketing::Native);
        let size: Histogram<Count> = registry.register(native).unwrap();
        let own = Registry::for_test().unwrap();
        let config = config.interval(Duration::from_secs(3_600));
        let pusher = Pusher::start_for(&registry, &own, config).unwrap();
        for n in 1..=5 {
            orders.add(n);
            (0..n * 100).for_each(|value| size.observe(value));
            assert!(pusher.flush(LONGEST), "{job}: {}", collector.log());
        }
        let snapshot = registry.snapshot();
        let expected_size = snapshot.histogram("size", &[]).unwrap();
        for (query, expected) in [
            (format!("orders_total{{job=\"{job}\"}}"), 15.0),
            (format!("histogram_count(size{{job=\"{job}\"}})"), 1_500.0),
            (format!("histogram_sum(size{{job=\"{job}\"}})"), expected_size.sum()),
        ] {
            prometheus.wait_for(&query, |value| value == expected).await;
        }
        let quantile = format!("histogram_quantile(0.5, size{{job=\"{job}\"}})");
        let found = prometheus.number(&quantile).await.unwrap();
        let expected = expected_size.quantile(0.5).unwrap();
        assert!((found / expected - 1.0).abs() < 0.05, "{job}: {found} for {expected}");
        let refused =
            own.snapshot().value("talea_push_samples_failed_total", &[("reason", "refused")]);
        assert_eq!(refused.unwrap_or(0.0), 0.0, "{job}");
    }
}
