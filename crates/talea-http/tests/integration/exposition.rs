//! The responses to scrapes, over real connections.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use talea::{Counter, Escaping, Format, Gauge, Histogram, Opts, Registry, Seconds};
use talea_http::{Exposition, MetricsServer};

use crate::support::client::{ask, get, loopback};
use crate::support::requests;

const OPENMETRICS: &str = "application/openmetrics-text;version=1.0.0";
const PROTOBUF: &str = "application/vnd.google.protobuf;\
                        proto=io.prometheus.client.MetricFamily;encoding=delimited";

fn some_metrics() -> Registry {
    let registry = Registry::for_test().unwrap();
    registry.register::<Counter>(Opts::new("calls", "Calls.")).unwrap().add(3);
    let opts = Opts::new("wait", "Time to wait.");
    registry.register::<Histogram<Seconds>>(opts).unwrap().observe(Duration::from_millis(3));
    let opts = Opts::new("größe", "Size.").utf8_names(true);
    registry.register::<Gauge>(opts).unwrap().set(-7);
    registry
}

fn serve(exposition: Exposition) -> MetricsServer {
    MetricsServer::builder(exposition).bind(loopback()).unwrap()
}

fn scraped(registry: &Registry, format: Format, escaping: Escaping) -> Vec<u8> {
    let mut scraper = registry.scraper();
    scraper.format(format, escaping);
    scraper.scrape().to_vec()
}

#[tokio::test]
async fn each_format_has_its_type_and_is_compressed_on_request() {
    let registry = some_metrics();
    let server = serve(Exposition::new(&registry));
    let address = server.local_addr();
    let v3 = format!("{OPENMETRICS};escaping=allow-utf-8;q=0.5,text/plain;q=0.3,*/*;q=0.1");
    let values = format!("{PROTOBUF};escaping=values,{OPENMETRICS};q=0.8");
    for (accept, format, escaping) in [
        (None, Format::Text, Escaping::Underscores),
        (Some("*/*"), Format::Text, Escaping::Underscores),
        (Some("text/plain;escaping=dots"), Format::Text, Escaping::Dots),
        (Some(OPENMETRICS), Format::OpenMetrics, Escaping::Underscores),
        (Some(&v3), Format::OpenMetrics, Escaping::AllowUtf8),
        (Some("application/openmetrics-text"), Format::OpenMetricsDraft, Escaping::Underscores),
        (Some(PROTOBUF), Format::Protobuf, Escaping::Underscores),
        (Some(&values), Format::Protobuf, Escaping::Values),
    ] {
        let expected = scraped(&registry, format, escaping);
        for (encoding, compressed) in [
            (None, false),
            (Some("gzip"), true),
            (Some("deflate, gzip;q=0.5, *;q=0.1"), true),
            (Some("gzip;q=0.5, identity"), false),
            (Some("identity;q=0, gzip;q=0.1"), true),
            (Some("br"), false),
        ] {
            let accept = accept.map(|accept| ("accept", accept));
            let encoding = encoding.map(|encoding| ("accept-encoding", encoding));
            let headers: Vec<_> = accept.into_iter().chain(encoding).collect();
            let response = get(address, "/metrics", &headers).await;
            assert_eq!(response.status, StatusCode::OK, "{headers:?}");
            assert_eq!(response.header("content-type"), format.content_type(escaping));
            assert_eq!(response.header("vary"), "Accept, Accept-Encoding");
            assert_eq!(response.header("content-length"), response.body.len().to_string());
            if compressed {
                assert_eq!(response.unzipped(), expected, "{headers:?}");
            } else {
                assert_eq!(response.header("content-encoding"), "");
                assert_eq!(response.body, expected, "{headers:?}");
            }
        }
    }
    #[cfg(feature = "zstd")]
    for encoding in ["zstd", "gzip, deflate, br, zstd", "zstd;q=0.5, identity;q=0", "gzip;q=0, *"] {
        let headers = [("accept-encoding", encoding), ("accept", OPENMETRICS)];
        let response = get(address, "/metrics", &headers).await;
        assert_eq!(response.header("content-encoding"), "zstd", "{encoding}");
        assert_eq!(response.header("content-length"), response.body.len().to_string());
        let expected = scraped(&registry, Format::OpenMetrics, Escaping::Underscores);
        assert_eq!(zstd::decode_all(&response.body[..]).unwrap(), expected);
    }
    let response = get(address, "/metrics", &[("accept-encoding", "identity;q=0")]).await;
    assert_eq!(response.status, StatusCode::NOT_ACCEPTABLE);
    assert!(response.text().contains("gzip"));
}

#[tokio::test]
async fn head_has_the_headers_of_get_and_other_methods_are_refused() {
    let registry = some_metrics();
    let server = serve(Exposition::new(&registry));
    for encoding in ["identity", "gzip"] {
        let headers = [("accept-encoding", encoding), ("accept", OPENMETRICS)];
        let got = get(server.local_addr(), "/metrics", &headers).await;
        let response = ask(server.local_addr(), Method::HEAD, "/metrics", &headers).await;
        assert_eq!(response.status, StatusCode::OK);
        assert_eq!(response.body, "");
        for name in ["content-type", "content-encoding", "content-length", "vary"] {
            assert_eq!(response.header(name), got.header(name), "{name}");
        }
    }
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
        let response = ask(server.local_addr(), method, "/metrics", &[]).await;
        assert_eq!(response.status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.header("allow"), "GET, HEAD");
    }
}

#[tokio::test]
async fn a_scrape_can_select_families_by_name() {
    let server = serve(Exposition::new(&some_metrics()));
    for (query, expected) in [
        ("", &["calls_total", "größe", "wait_seconds"][..]),
        ("?", &["calls_total", "größe", "wait_seconds"]),
        ("?name=calls_total", &["calls_total", "größe", "wait_seconds"]),
        ("?name[]=calls_total", &["calls_total"]),
        ("?name%5B%5D=wait_seconds&x=y&name[]=calls_total", &["calls_total", "wait_seconds"]),
        ("?name[]=gr%C3%B6%C3%9Fe", &["größe"]),
        // A sample's name selects its family, and so does the family's name in OpenMetrics.
        ("?name[]=calls", &["calls_total"]),
        ("?name[]=calls_created", &["calls_total"]),
        ("?name[]=wait_seconds_bucket", &["wait_seconds"]),
        ("?name[]=wait_seconds_count&name[]=wait_seconds_sum", &["wait_seconds"]),
        // The name in another escaping.
        ("?name[]=gr__e", &[]),
        ("?name[]=wait_seconds_total", &[]),
        ("?name[]=calls_bucket", &[]),
        ("?name[]=calls_total_total", &[]),
        ("?name[]=wait", &[]),
        ("?name[]=", &[]),
    ] {
        let accept = [("accept", "text/plain;version=0.0.4;escaping=allow-utf-8")];
        let response = get(server.local_addr(), &format!("/metrics{query}"), &accept).await;
        let types = response.text().lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let names = types.map(|line| line.rsplit_once(' ').unwrap().0.trim_matches('"'));
        assert_eq!(names.collect::<Vec<_>>(), expected, "{query}");
    }
    let accept = [("accept", OPENMETRICS)];
    let response = get(server.local_addr(), "/metrics?name[]=none", &accept).await;
    assert_eq!((response.status, response.body.as_ref()), (StatusCode::OK, &b"# EOF\n"[..]));
    for name in ["gr__e", "gr%C3%B6%C3%9Fe"] {
        let response = get(server.local_addr(), &format!("/metrics?name[]={name}"), &[]).await;
        assert!(response.text().ends_with("\ngr__e -7\n"), "{name}: {}", response.text());
    }
}

#[tokio::test]
async fn a_snapshot_that_takes_longer_than_the_scraper_waits_is_a_503() {
    let registry = some_metrics();
    let (release, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    registry.on_snapshot(move || _ = held.lock().unwrap().recv());
    let server = serve(Exposition::new(&registry));
    let within = |seconds| [("x-prometheus-scrape-timeout-seconds", seconds)];
    let response = get(server.local_addr(), "/metrics", &within("0.05")).await;
    assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE);
    drop(release);
    let response = get(server.local_addr(), "/metrics", &within("120")).await;
    assert_eq!(response.status, StatusCode::OK);
}

#[tokio::test]
async fn a_panic_before_a_snapshot_is_counted_and_fails_no_scrape() {
    let registry = some_metrics();
    let panics = Arc::new(AtomicBool::new(true));
    let now = Arc::clone(&panics);
    registry.on_snapshot(move || assert!(!now.load(Ordering::Relaxed), "as the test wants it"));
    let server = serve(Exposition::new(&registry).at_once(1));
    for counted in 1..4 {
        let response = get(server.local_addr(), "/metrics", &[]).await;
        assert_eq!(response.status, StatusCode::OK);
        let expected =
            format!("talea_observable_failures_total{{family=\"on_snapshot\"}} {counted}\n");
        assert!(response.text().contains(&expected), "{}", response.text());
    }
    panics.store(false, Ordering::Relaxed);
    assert_eq!(get(server.local_addr(), "/metrics", &[]).await.status, StatusCode::OK);
}

#[tokio::test]
async fn it_is_a_handler_that_can_be_metered() {
    let registry = some_metrics();
    let exposition = Exposition::new(&registry);
    let app = talea_http::axum::Router::new()
        .route("/metrics", talea_http::axum::get(exposition))
        .metered(&registry)
        .unwrap();
    let response = requests::ask(&app, "GET", "/metrics").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(requests::text(response).await.contains("calls_total 3\n"));
    let response = requests::ask(&app, "HEAD", "/metrics").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(requests::text(response).await, "");
    let response = requests::ask(&app, "POST", "/metrics").await;
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(response.headers()["allow"], "GET,HEAD");
    let labels = [("method", "GET"), ("route", "/metrics"), ("outcome", "complete")];
    assert_eq!(registry.snapshot().value("http_request_outcomes_total", &labels), Some(2.0));
}
