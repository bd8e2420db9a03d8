//! Claims about what promtool advises on the metrics that Talea itself defines.

use axum::body::Body;
use axum::http::Request;
use metrics::{counter, histogram};
use stage::{Service, check_metrics};
use talea::{Counter, DynamicLabels, Family, Opts, Registry};
use talea_collectors::tasks::TaskMeter;
use talea_http::axum::{Router, get};
use tower::ServiceExt;

/// promtool's output for a text; empty if it has no complaint.
fn complaints(text: &str) -> String {
    let output = check_metrics(text);
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert_eq!(output.status.success(), said.is_empty(), "{said}");
    said
}

#[tokio::test]
async fn it_has_no_complaint() {
    let registry = Registry::new().unwrap();
    let app = Router::new().route("/hello", get(async || "hello")).metered(&registry).unwrap();
    let request = Request::builder().uri("/hello").body(Body::empty()).unwrap();
    app.oneshot(request).await.unwrap();
    talea_collectors::process::register(&registry).unwrap();
    let runtime = tokio::runtime::Handle::current();
    talea_collectors::tokio::register(&registry, "main", runtime).unwrap();
    TaskMeter::register(&registry, "server").unwrap().spawn(async {}).await.unwrap();

    // Names that the recorder cannot record, and a family that is full.
    let recorder = talea_metrics::Recorder::new(&registry).unwrap();
    registry.register::<Counter>(Opts::new("jobs", "Taken.")).unwrap();
    registry.register::<talea::Gauge>(Opts::new("jobs_counter", "Taken too.")).unwrap();
    metrics::with_local_recorder(&recorder, || {
        counter!("jobs", "kind" => "mail").increment(1);
        histogram!("time").record(-1.0);
    });
    let opts = Opts::new("full", "A family with one series.").limit(1);
    let full: Family<DynamicLabels, Counter> = registry.family(opts, &["n"]).unwrap();
    for n in ["1", "2", "3"] {
        full.with_values(&[n]).inc();
    }

    // Not those that are taken, whose names are the test's own.
    let text = registry.snapshot_of(|name| !name.starts_with("jobs")).to_text();
    for name in [
        "http_request_duration_seconds",
        "http_requests_in_flight",
        "http_requests_total",
        "process_cpu_seconds_total",
        "server_tasks_alive_peak",
        "talea_recorder_refused_total",
        "talea_recorder_unusable_total",
        "talea_series_dropped_total",
        "tokio_workers",
    ] {
        assert!(text.contains(&format!("# TYPE {name} ")), "{name} is missing");
    }
    assert_eq!(complaints(&text), "");
}

#[tokio::test]
async fn nor_about_the_items_api() {
    let service = Service::start().await;
    let (_, page) = stage::get(service.items_metrics, "/metrics").await.unwrap();
    let text = std::str::from_utf8(&page).unwrap();
    assert!(text.contains("db_client_connections{"), "{text}");
    assert_eq!(complaints(text), "");
}

#[test]
fn it_would_complain() {
    let said = complaints("# TYPE x counter\nx 1\n");
    assert!(said.contains("_total") && said.contains("help"), "{said}");
}
