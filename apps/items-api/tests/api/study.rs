//! The endpoints for studies.

use crate::client::send;
use crate::service::Service;
use serde_json::json;
use std::fs;
use std::time::Duration;

fn shown(service: &Service, name: &str) -> f64 {
    let scraped = service.scrape();
    let sample = scraped.iter().find(|sample| sample.name == name);
    sample.unwrap_or_else(|| panic!("there is no {name}")).value
}

#[test]
fn a_reset_removes_all_items_and_sets_the_peaks_back() {
    let service = Service::start_study();
    let ids: Vec<_> = (0..5).map(|_| service.create()).collect();
    let held: Vec<_> =
        (0..8).map(|_| std::net::TcpStream::connect(service.items).unwrap()).collect();
    while shown(&service, "server_tasks_alive") < 8.0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(held);
    while shown(&service, "server_tasks_alive") > 0.0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(shown(&service, "server_tasks_alive_peak") >= 8.0);
    assert!(shown(&service, "server_tasks_ready_peak") >= 1.0);

    let reset = send(service.metrics, "POST /study/reset", None);
    assert_eq!((reset.status, reset.body.as_str()), (204, ""));
    assert_eq!(shown(&service, "server_tasks_alive_peak"), 0.0);
    assert_eq!(shown(&service, "server_tasks_ready_peak"), 0.0);
    assert_eq!(service.send("GET /api/items").json(), json!({ "data": [] }));
    assert_eq!(service.create(), ids[4] + 1, "an id is not given twice");
}

#[test]
fn without_a_study_there_is_no_reset() {
    let service = Service::start();
    let id = service.create();
    assert_eq!(send(service.metrics, "POST /study/reset", None).status, 404);
    assert_eq!(service.send(&format!("GET /api/items/{id}")).status, 200);
}

#[test]
fn the_end_of_input_ends_a_study_and_leaves_nothing() {
    let mut service = Service::start_study();
    service.create();
    drop(service.input.take());
    let (status, stderr) = service.wait(Duration::from_secs(5));
    assert_eq!((status.code(), stderr.as_str()), (Some(0), ""));
    assert_eq!(fs::read_dir(service.temporary.path()).unwrap().count(), 0);
}

#[test]
fn without_a_study_the_end_of_input_is_nothing() {
    let mut service = Service::start();
    std::thread::sleep(Duration::from_millis(300));
    assert!(service.is_running());
}
