//! Claims about the first event of a series in a current Prometheus, which `TALEA_PROMETHEUS` names: it counts, since
//! the series says when it began.

use std::net::SocketAddr;
use std::time::Duration;

use stage::{Job, Prometheus};
use talea::{Counter, DynamicLabels, Family, Opts, Registry};
use talea_http::MetricsServer;
use talea_push::{Config, Pusher};

/// Without these, Prometheus takes the first sample of a series for what it was before.
const FEATURES: &str = "st-storage,use-start-timestamps,openmetrics2";

fn errors(registry: &Registry) -> Family<DynamicLabels, Counter> {
    registry.family(Opts::new("errors", "Errors."), &["kind"]).unwrap()
}

/// The increase of a series up to its newest sample. Later, Prometheus extrapolates from there.
async fn increase(prometheus: &Prometheus, series: &str) -> Option<f64> {
    let newest = prometheus.number(&format!("timestamp({series})")).await?;
    prometheus.number(&format!("increase({series}[1h] @ {newest:.3})")).await
}

#[tokio::test]
async fn increase_over_the_first_event_of_a_scraped_series_is_1() {
    let Ok(program) = std::env::var("TALEA_PROMETHEUS") else { return };
    let registry = Registry::for_test().unwrap();
    let errors = errors(&registry);
    errors.with_values(&["known"]).inc();
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = MetricsServer::bind(loopback, &registry).unwrap();
    let jobs = ["PrometheusProto", "OpenMetricsText1.0.0", "OpenMetricsText2.0.0"].map(|format| {
        let more = format!("scrape_protocols: [{format}]");
        (format, more)
    });
    let jobs: Vec<_> = jobs
        .iter()
        .map(|(name, more)| Job { name, address: server.local_addr(), path: "/metrics", more })
        .collect();
    let prometheus = Prometheus::start_with(&program, &jobs, FEATURES, &[]).await;
    for Job { name, .. } in &jobs {
        let known = format!("count_over_time(errors_total{{job=\"{name}\",kind=\"known\"}}[1h])");
        prometheus.wait_for(&known, |samples| samples >= 2.0).await;
    }
    errors.with_values(&["new"]).inc();
    for Job { name, .. } in &jobs {
        let new = format!("errors_total{{job=\"{name}\",kind=\"new\"}}");
        prometheus.wait_for(&format!("count_over_time({new}[1h])"), |samples| samples >= 2.0).await;
        assert_eq!(increase(&prometheus, &new).await, Some(1.0), "{name}");
    }
    assert_eq!(prometheus.log(), "", "it complains");
}

#[tokio::test]
async fn increase_over_the_first_event_of_a_pushed_series_is_1() {
    let Ok(program) = std::env::var("TALEA_PROMETHEUS") else { return };
    for protocol in ["write", "otlp/v1/metrics"] {
        let prometheus = Prometheus::start_receiver(&program, FEATURES).await;
        let url = format!("http://{}/api/v1/{protocol}", prometheus.address());
        let config = match protocol {
            "write" => Config::remote_write(&url).unwrap().label("job", "push"),
            _ => Config::otlp(&url).unwrap().label("service.name", "push"),
        };
        let registry = Registry::for_test().unwrap();
        let errors = errors(&registry);
        let own = Registry::for_test().unwrap();
        let config = config.interval(Duration::from_secs(3_600));
        let pusher = Pusher::start_for(&registry, &own, config).unwrap();
        assert!(pusher.flush(Duration::from_secs(60)));
        errors.with_values(&["new"]).inc();
        for _ in 0..2 {
            assert!(pusher.flush(Duration::from_secs(60)));
        }
        let increase = increase(&prometheus, "errors_total").await;
        assert_eq!(increase, Some(1.0), "{protocol}: {}", prometheus.log());
        // As where a restart resets it: it begins anew.
        errors.remove_values(&["new"]);
        errors.with_values(&["new"]).inc();
        for _ in 0..2 {
            assert!(pusher.flush(Duration::from_secs(60)));
        }
        let increase = self::increase(&prometheus, "errors_total").await;
        assert_eq!(increase, Some(2.0), "{protocol}: {}", prometheus.log());
    }
}
