//! The agent's front where the process has no descriptors left. Alone, as they are the whole
//! process's.

#![cfg(target_os = "linux")]

mod fronted;

use std::time::Duration;

use fronted::{Fronted, HELLO, wide};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use talea_http::server::Reason;

#[tokio::test]
async fn without_descriptors_a_quiet_client_makes_room_and_nothing_spins() {
    let front = Fronted::start(wide()).await;
    let mut idle = front.says(HELLO).await;
    idle.hears_hello().await;
    // The client takes it.
    leave(1);
    let mut comes = front.says("GET /hangs HTTP/1.1\r\nhost: x\r\n\r\n").await;
    front.until("it is served", |front| front.hanging() == 1).await;
    assert!(idle.rest().await.is_empty());
    assert_eq!(front.counts.closed(Reason::Room), 1);
    assert!(front.counts.accept_errors() > 0);

    // No client is quiet now: a new one waits.
    drop(idle);
    leave(1);
    let mut waits = front.says(HELLO).await;
    let before = front.counts.accept_errors();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let tries = front.counts.accept_errors() - before;
    assert!((2..=20).contains(&tries), "{tries} tries in half a second");
    assert!(comes.is_there().await);
    leave(10);
    waits.hears_hello().await;

    // No client comes now: a quiet one stays, though there is no descriptor for another.
    leave(2);
    let mut last = front.says(HELLO).await;
    last.hears_hello().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(waits.is_there().await && last.is_there().await);
    assert_eq!((front.counts.open(), front.counts.closed(Reason::Room)), (3, 1));
    front.none_ended_but(Reason::Room);
}

/// Leaves so many descriptors that can be opened.
fn leave(free: usize) {
    let is_open = |number: &u64| std::fs::read_link(format!("/proc/self/fd/{number}")).is_ok();
    let last = (0..).filter(|number| !is_open(number)).nth(free - 1).unwrap();
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(last + 1), maximum }).unwrap();
}
