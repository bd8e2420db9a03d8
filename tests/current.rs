//! Claims about what a current Prometheus scrapes from a live service, in each format. It
//! is built by `scripts/prometheus`, and `TALEA_PROMETHEUS` names it; without that, there is
//! nothing to claim.

use std::net::SocketAddr;
use std::time::Duration;

use stage::{Job, Prometheus, Samples, assert_same, escaped_by_underscores, hard_metrics, samples};
use talea::{FamilySnapshot, Histogram, Kind, Opts, Registry, Seconds, Snapshot};
use talea_http::MetricsServer;

/// How often each job must have come.
const SCRAPES: f64 = 4.0;

const FORMATS: [(&str, &str); 4] = [
    ("text", "scrape_protocols: [PrometheusText0.0.4]"),
    ("openmetrics", "scrape_protocols: [OpenMetricsText1.0.0]"),
    (
        "protobuf",
        "scrape_protocols: [PrometheusProto]\n\
         scrape_native_histograms: true\n\
         always_scrape_classic_histograms: true",
    ),
    (
        "openmetrics2",
        "scrape_protocols: [OpenMetricsText2.0.0]\n\
         scrape_native_histograms: true\n\
         always_scrape_classic_histograms: true",
    ),
];

/// The Accept header of a scrape of native histograms, without further configuration.
const BY_ITSELF: (&str, &str) = ("itself", "scrape_native_histograms: true");

/// Durations of which the exact quantiles are known: so many, each of as many
/// milliseconds as its number.
const TIMES: u64 = 5_000;

fn metrics() -> Registry {
    let registry = hard_metrics().unwrap();
    let opts = Opts::new("even", "Times that lie evenly.").schema(5).max_buckets(9_999);
    let even: Histogram<Seconds> = registry.register(opts).unwrap();
    (1..=TIMES).for_each(|millis| even.observe(Duration::from_millis(millis)));
    registry
}

#[tokio::test]
async fn a_current_prometheus_reads_every_format() {
    let Ok(program) = std::env::var("TALEA_PROMETHEUS") else { return };
    let registry = metrics();
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = MetricsServer::bind(loopback, &registry).unwrap();
    let address = server.local_addr();
    let jobs: Vec<_> = FORMATS
        .into_iter()
        .chain([BY_ITSELF])
        .map(|(name, more)| Job { name, address, path: "/metrics", more })
        .collect();
    let prometheus =
        Prometheus::start_with(&program, &jobs, "exemplar-storage,openmetrics2", &[]).await;
    for Job { name, .. } in &jobs {
        let count = format!("count_over_time(up{{job=\"{name}\"}}[1h])");
        prometheus.wait_for(&count, |scrapes| scrapes >= SCRAPES).await;
        let up = format!("min_over_time(up{{job=\"{name}\"}}[1h])");
        assert_eq!(prometheus.number(&up).await, Some(1.0), "{name}: {}", prometheus.log());
    }
    let snapshot = registry.snapshot();
    for (name, _) in FORMATS {
        let expected = samples(&snapshot, name == "openmetrics");
        // Of the others it does not say that it takes any names.
        let expected = match name {
            "openmetrics" | "openmetrics2" => expected,
            _ => escaped_by_underscores(&expected),
        };
        let found = floats(&prometheus, name, &snapshot).await;
        assert_same(&found, &expected);
        // A native histogram is a sample beside its classic ones.
        let natives = histograms(&snapshot).map(|family| family.series().count()).sum::<usize>();
        let has_natives = ["protobuf", "openmetrics2"].contains(&name);
        let beside = if has_natives { natives } else { 0 };
        let scraped = format!("scrape_samples_scraped{{job=\"{name}\"}}");
        let scraped = prometheus.number(&scraped).await;
        assert_eq!(scraped, Some((expected.len() + beside) as f64), "{name}");
    }
    for name in ["protobuf", "openmetrics2", "itself"] {
        check_native(&prometheus, name, &snapshot).await;
    }
    assert_eq!(prometheus.log(), "", "it complains");
}

fn histograms(snapshot: &Snapshot) -> impl Iterator<Item = FamilySnapshot<'_>> {
    snapshot.families().filter(|family| family.kind() == Kind::Histogram)
}

/// The samples of a job that are numbers: native histograms have the families' own names.
async fn floats(prometheus: &Prometheus, job: &str, snapshot: &Snapshot) -> Samples {
    let names: Vec<_> =
        histograms(snapshot).map(|family| family.name().replace('.', "[._]")).collect();
    let names = names.join("|");
    let query = format!("{{__name__!~\"up|scrape_.*|{names}\",job=\"{job}\"}}");
    prometheus.query(&query).await
}

/// It stores native histograms as they are.
async fn check_native(prometheus: &Prometheus, job: &str, snapshot: &Snapshot) {
    let number = async |query: String| prometheus.number(&query).await;
    for name in ["even_seconds", "sent_bytes"] {
        let histogram = snapshot.histogram(name, &[]).unwrap();
        let of = |function: &str| format!("{function}({name}{{job=\"{job}\"}})");
        let count = number(of("histogram_count")).await;
        assert_eq!(count, Some(histogram.count() as f64), "{job} {name}");
        let sum = number(of("histogram_sum")).await.unwrap();
        assert!((sum / histogram.sum() - 1.0).abs() < 1e-12, "{job} {name}: {sum}");
    }
    for q in [0.001, 0.1, 0.5, 0.9, 0.99, 0.999] {
        let query = format!("histogram_quantile({q}, even_seconds{{job=\"{job}\"}})");
        let found = number(query).await.unwrap();
        let exact = (q * TIMES as f64).ceil() / 1e3;
        // Within a bucket it goes from one bound to the other.
        assert!((found / exact - 1.0).abs() < 0.0219, "{job} {q}: {found} for {exact}");
    }
}
