//! The agent's front where the process has no descriptors left. Alone, as they are the whole
//! process's.

#![cfg(target_os = "linux")]

mod fronted;

use std::time::Duration;

use fronted::{Fronted, HELLO, wide};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use talea_cli::front::Reason;

#[tokio::test]
async fn without_descriptors_who_is_quiet_makes_room_and_nothing_spins() {
    let front = Fronted::start(wide()).await;
    let mut idle = front.says(HELLO).await;
    idle.hears_hello().await;
    // One more, which the client takes.
    limit(descriptors() + 1);
    let mut comes = front.says("GET /hangs HTTP/1.1\r\nhost: x\r\n\r\n").await;
    front.until("it is served", |front| front.hanging() == 1).await;
    assert!(idle.rest().await.is_empty());
    assert_eq!(front.counts.ended(Reason::Room), 1);
    assert!(front.counts.accept_errors() > 0);

    // Nobody is quiet now: it waits.
    drop(idle);
    limit(descriptors() + 1);
    let mut waits = front.says(HELLO).await;
    let before = front.counts.accept_errors();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let tries = front.counts.accept_errors() - before;
    assert!((2..=20).contains(&tries), "{tries} tries in half a second");
    assert!(comes.is_there().await);
    limit(descriptors() + 10);
    waits.hears_hello().await;
    assert_eq!(front.counts.open(), 2);
    front.none_ended_but(Reason::Room);
}

fn descriptors() -> u64 {
    // One of them is the directory's own.
    std::fs::read_dir("/proc/self/fd").unwrap().count() as u64 - 1
}

fn limit(descriptors: u64) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(descriptors), maximum }).unwrap();
}
