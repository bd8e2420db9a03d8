//! The endpoints for studies.

use crate::client::send;
use crate::service::Service;
use crate::service::until;
use serde_json::json;
use std::net::TcpStream;

#[test]
fn a_reset_removes_all_items_and_sets_the_peaks_back() {
    let service = Service::study(|program| program);
    let ids: Vec<_> = (0..5).map(|_| service.create()).collect();
    let shown = |name| service.value(name, &[]);
    let held: Vec<_> = (0..8).map(|_| TcpStream::connect(service.items).unwrap()).collect();
    until(|| shown("server_tasks_alive") >= 8.0);
    drop(held);
    until(|| shown("server_tasks_alive") == 0.0);
    assert!(shown("server_tasks_alive_peak") >= 8.0);
    assert!(shown("server_tasks_ready_peak") >= 1.0);

    let reset = send(service.metrics, "POST /study/reset", None);
    assert_eq!((reset.status, reset.body.as_str()), (204, ""));
    assert_eq!(shown("server_tasks_alive_peak"), 0.0);
    assert_eq!(shown("server_tasks_ready_peak"), 0.0);
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
    let mut service = Service::study(|program| program);
    service.create();
    drop(service.input.take());
    assert_eq!(service.wait(), "");
    assert_eq!(service.temporary_files(), 0);
}
