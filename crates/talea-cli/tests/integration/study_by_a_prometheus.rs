//! `talea study --prometheus`: a real Prometheus that runs already, and scrapes others too.

use std::fs;

use serde_json::Value;

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
