//! `talea load --region`: what others see of a load while it runs.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use serde_json::Value;

use crate::support::event_stream::EventStream;
use crate::support::region_folder::RegionFolder;
use crate::support::stand_in::{Reply, StandIn};
use crate::support::{TALEA, assert_ends, stderr, stdout, talea, until};

/// A server that answers as many requests as it may, and the others once it may; each tenth by 500.
fn gated() -> (StandIn, Arc<AtomicU64>) {
    let (allowed, received) = (Arc::new(AtomicU64::new(0)), AtomicU64::new(0));
    let gate = allowed.clone();
    let server = StandIn::start(move |_| {
        let number = received.fetch_add(1, SeqCst);
        until("it may answer", || number < gate.load(SeqCst));
        Reply::Answer(if number % 10 == 9 { 500 } else { 200 }, "ok".to_owned())
    });
    (server, allowed)
}

fn start(server: &StandIn, region: &Path, more: &[&str]) -> Child {
    let mut command = Command::new(TALEA);
    command.args(["load", &server.url(), "--json", "--quiet", "--region"]).arg(region).args(more);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The value of the series of a page whose line has these parts; 0 if it has none.
fn value(page: &str, parts: &[&str]) -> f64 {
    let line = page.lines().find(|line| parts.iter().all(|part| line.contains(part)));
    line.map_or(0.0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

/// The requests of all points of the live page together.
fn requests(points: &[Value]) -> u64 {
    let endpoints = points.iter().flat_map(|point| point["e"].as_array().unwrap());
    endpoints.map(|endpoint| endpoint[1].as_u64().unwrap()).sum()
}

#[test]
fn the_agent_shows_a_load_while_it_runs() {
    let folder = RegionFolder::new();
    let agent = folder.agent();
    let mut stream = EventStream::open(&agent.address, "/live/events");
    let (_, hello) = stream.next().unwrap();
    let (server, allowed) = gated();
    let load = start(&server, &folder.at("load.talea"), &["-c", "1", "-n", "50"]);
    let mut points = vec![stream.until("point", |point| point["h"]["processes"] == 1)];
    allowed.store(40, SeqCst);
    while requests(&points) < 40 {
        points.push(stream.until("point", |_| true));
    }
    let new = points.iter().filter_map(|point| point["ne"].as_array()).flatten();
    let known = hello["endpoints"].as_array().unwrap().iter().chain(new);
    let name = format!("GET /api/items load {}", server.address);
    let known: Vec<String> = known.map(Value::to_string).collect();
    assert!(known.iter().any(|endpoint| endpoint.contains(&name)), "{known:?}");
    let ok = ["load_requests_total{", "route=\"/api/items\"", "status=\"200\""];
    let in_flight = ["load_requests_in_flight{", "method=\"GET\""];
    let page = agent.until("/metrics", |page| value(&page.text(), &in_flight) == 1.0).text();
    assert_eq!(value(&page, &ok), 36.0, "{page}");
    assert_eq!(value(&page, &["load_requests_failed_total{"]), 4.0, "{page}");
    assert_eq!(value(&page, &["load_request_duration_seconds_count{"]), 40.0, "{page}");

    allowed.store(u64::MAX, SeqCst);
    let output = load.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let page = agent.until("/metrics", |page| value(&page.text(), &ok) == 45.0).text();
    assert_eq!(value(&page, &in_flight), 0.0, "{page}");
}

#[test]
fn loads_that_publish_in_one_region_add_up_there_and_count_apart() {
    let folder = RegionFolder::new();
    let region = folder.at("load.talea");
    let (server, allowed) = gated();
    allowed.store(u64::MAX, SeqCst);
    let loads = [20, 30]
        .map(|requests: u64| start(&server, &region, &["-c", "2", "-n", &requests.to_string()]));
    let mut failed = 0;
    for (load, requests) in loads.into_iter().zip([20, 30]) {
        let load = load.wait_with_output().unwrap();
        let load: Value = serde_json::from_str(&stdout(&load)).unwrap();
        assert_eq!(load["answers"], requests);
        failed += load["failed"].as_u64().unwrap();
    }
    assert_eq!(failed, 5);
    let inspected = talea(["inspect", region.to_str().unwrap(), "--family", "load_requests_total"]);
    let shown = stdout(&inspected);
    assert!(shown.contains("45") && shown.contains("status=\"200\""), "{shown}");
}

#[test]
fn a_load_that_is_killed_leaves_its_counts_and_nothing_in_flight() {
    let folder = RegionFolder::new();
    let agent = folder.agent();
    let (server, allowed) = gated();
    allowed.store(5, SeqCst);
    let mut load = start(&server, &folder.at("load.talea"), &["-c", "1", "-n", "50"]);
    agent.until("/metrics", |page| {
        let page = page.text();
        let done = value(&page, &["load_requests_total{", "status=\"200\""]);
        (done, value(&page, &["load_requests_in_flight{"])) == (5.0, 1.0)
    });
    load.kill().unwrap();
    load.wait().unwrap();
    let page =
        agent.until("/metrics", |page| value(&page.text(), &["load_requests_in_flight{"]) == 0.0);
    assert_eq!(value(&page.text(), &["load_requests_total{", "status=\"200\""]), 5.0);
    allowed.store(u64::MAX, SeqCst);
}

#[test]
fn a_request_without_a_response_and_a_lateness_are_published() {
    let folder = RegionFolder::new();
    let server = StandIn::start(|_| Reply::Close);
    let region = folder.at("load.talea");
    let open = ["--rate", "50", "--for", "200ms", "-c", "5"];
    let output = start(&server, &region, &open).wait_with_output().unwrap();
    let load: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(load["failed"], 10);
    let page = folder.agent().scrape();
    assert_eq!(value(&page, &["load_requests_total{", "status=\"none\""]), 10.0, "{page}");
    assert_eq!(value(&page, &["load_requests_failed_total{"]), 10.0, "{page}");
    assert_eq!(value(&page, &["load_lateness_seconds_count"]), 10.0, "{page}");
}

#[test]
fn a_load_whose_region_cannot_be_one_does_not_begin() {
    let (server, _) = gated();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("load.talea");
    let output = start(&server, &path, &["-c", "1", "-n", "1"]).wait_with_output().unwrap();
    assert_ends(&output, 2, &["--region", "tmpfs"]);
    assert_eq!(server.requests(), 0);
}
