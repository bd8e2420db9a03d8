//! The server when the process has no descriptors left. In a process of its own, whose limit it
//! lowers.

#![cfg(target_os = "linux")]

mod support;

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use talea_http::server::Reason;

use crate::support::test_server::{HELLO, OwnTime, TestServer, wide};

#[tokio::test]
async fn without_descriptors_a_quiet_client_makes_room_and_nothing_spins() {
    let _time = OwnTime::begin();
    let server = TestServer::start(wide()).await;
    let mut idle = server.says(HELLO).await;
    idle.hears_hello().await;
    // The client takes it.
    leave(1);
    let mut comes = server.says("GET /hangs HTTP/1.1\r\nhost: x\r\n\r\n").await;
    server.until("it is served", |server| server.hanging() == 1).await;
    assert!(idle.rest().await.is_empty());
    assert_eq!(server.counts.closed(Reason::Room), 1);
    assert!(server.counts.accept_errors() > 0);

    // No client is quiet now: a new one waits.
    drop(idle);
    leave(1);
    let mut waits = server.says(HELLO).await;
    let before = server.counts.accept_errors();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let tries = server.counts.accept_errors() - before;
    assert!((2..=20).contains(&tries), "{tries} tries in half a second");
    assert!(comes.is_there().await);
    leave(10);
    waits.hears_hello().await;

    // No client comes now: a quiet one stays, though there is no descriptor for another.
    leave(2);
    let mut last = server.says(HELLO).await;
    last.hears_hello().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(waits.is_there().await && last.is_there().await);
    assert_eq!((server.counts.open(), server.counts.closed(Reason::Room)), (3, 1));
    server.none_ended_but(Reason::Room);
}

/// Leaves so many descriptors that can be opened.
fn leave(free: usize) {
    let mut closed =
        (0_u64..).filter(|number| std::fs::read_link(format!("/proc/self/fd/{number}")).is_err());
    let last = closed.nth(free - 1).unwrap();
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(last + 1), maximum }).unwrap();
}
