//! `talea study --prometheus`: a real Prometheus that runs already, and scrapes others too.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use hyper::header::{CONTENT_TYPE, HeaderValue};
use serde_json::Value;

use crate::support::counting_server::{Certificate, Server, text};
use crate::support::items_api::ItemsApi;
use crate::support::prometheus::Prometheus;
use crate::support::study_output::StudyOutput;
use crate::support::until;

#[test]
fn one_service_among_others_is_selected_by_its_labels() {
    let folder = tempfile::tempdir().unwrap();
    let service = ItemsApi::start(None);
    let items = format!("http://{}/api/items", service.items);
    let metrics = format!("http://{}/metrics", service.metrics);
    // It scrapes the service twice, as two jobs.
    let job = |name: &str| {
        let target = &service.metrics;
        format!("- {{job_name: {name}, static_configs: [{{targets: ['{target}']}}]}}\n")
    };
    let configuration = folder.path().join("prometheus.yml");
    let jobs = job("shop") + &job("other");
    let text =
        format!("global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs:\n{jobs}");
    fs::write(&configuration, text).unwrap();
    let prometheus = Prometheus::start(&configuration);
    let url = prometheus.url.clone();
    until("Prometheus answers", || !prometheus.targets().is_empty());
    let studied = |more: &[&str]| {
        let more = [&["--prometheus", &url], more].concat();
        let mut studied = StudyOutput::of(&items, &metrics, "5x40", &more);
        (studied.report["cases"][0].take(), studied.status)
    };
    let (case, status) = studied(&["--prometheus-labels", "job=\"shop\""]);
    assert_eq!(status, 0);
    assert_eq!(case["server"]["requests_received"], 1_000);
    assert_eq!(case["prometheus"]["requests_received"], 1_000);
    assert_eq!(case["differences"], Value::Array(Vec::new()));
    let query = case["queries"][0]["query"].as_str().unwrap();
    assert!(query.starts_with("sum(increase(http_requests_total{job=\"shop\"}["), "{query}");

    // Without the labels it finds everything twice, and the study says so.
    let (case, _) = studied(&[]);
    assert_eq!(case["prometheus"]["requests_received"], 2_000);
    let difference = case["differences"][0].as_str().unwrap();
    let expected = "Requests received: 1,000 by the study's samples, 2,000 by Prometheus.";
    assert_eq!(difference, expected);
}

#[test]
fn a_prometheus_of_the_study_trusts_the_certificates_that_the_clients_do() {
    let certificate = Certificate::new();
    let received = Arc::new(AtomicU64::new(0));
    let server = Server::start(Some(&certificate), move |request| {
        let is_scrape = request.uri().path() == "/metrics";
        let count = received.fetch_add(u64::from(!is_scrape), SeqCst);
        let mut page = text(format!("http_requests_total {count}\n"));
        page.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        async move { page }
    });
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("get.toml");
    fs::write(&scenario, "[[step]]\nmethod = \"GET\"\npath = \"/\"\n").unwrap();
    let url = format!("https://{}/", server.address);
    let common = ["--with-prometheus", "--scenario", scenario.to_str().unwrap()];
    for trust in [&["--ca", certificate.pem.to_str().unwrap()][..], &["--insecure"]] {
        let more = [&common[..], trust].concat();
        let studied = StudyOutput::of(&url, &format!("{url}metrics"), "5x40", &more);
        assert_eq!(studied.report["cases"][0]["prometheus"]["requests_received"], 200);
    }
}
