//! Hostile clients: the memory that they take is bounded, and others are served meanwhile. In a
//! process of its own, whose memory it measures.

#![cfg(target_os = "linux")]

mod support;

use std::time::{Duration, Instant};

use talea_http::server::{Limits, Reason};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::sleep;

use crate::support::http2_client::{ask_and_reset, asks};
use crate::support::test_server::{Client, HELLO, TestServer, process_memory, wide};
use crate::support::tls_client;
use crate::support::web_config::Folder;

/// As memory is that of the whole process, one test is run at a time.
static ALONE: Mutex<()> = Mutex::const_new(());

async fn alone() -> MutexGuard<'static, ()> {
    // Each needs descriptors for both ends.
    talea_load::descriptors::ensure(2500).unwrap();
    ALONE.lock().await
}

fn memory() -> i64 {
    process_memory("self", "VmRSS:") as i64
}

/// Another client is served within the time limit of all tests here.
async fn another_is_served(server: &TestServer) {
    assert!(server.hello().await.ends_with("hello\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_idle_connections_take_little_and_others_are_served() {
    let _alone = alone().await;
    let server = TestServer::start(wide()).await;
    another_is_served(&server).await;
    for asks_first in [false, true] {
        let before = memory();
        let mut idle: Vec<Client> = Vec::with_capacity(1000);
        for _ in 0..1000 {
            let mut client = server.connect().await;
            if asks_first {
                client.say(HELLO).await;
                client.hears_hello().await;
            }
            idle.push(client);
        }
        server.until("all are accepted", |server| server.counts.open() == 1000).await;
        another_is_served(&server).await;
        let each = (memory() - before) / 1000;
        println!("an idle connection takes {each} bytes (after a request: {asks_first})");
        assert!(each < 32 << 10, "{each}");
        drop(idle);
        server.until("all are gone", |server| server.counts.open() == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_connections_takes_no_more_than_the_limit() {
    let _alone = alone().await;
    let server = TestServer::start(Limits { connections: 200, ..wide() }).await;
    let before = memory();
    let mut flood: Vec<Client> = Vec::new();
    for i in 0..2000 {
        flood.push(server.says("GET /hello HTTP/1.1\r\nx: ").await);
        assert!(server.counts.open() <= 200);
        if i % 200 == 0 {
            another_is_served(&server).await;
        }
    }
    let grown = memory() - before;
    println!("a flood takes {grown} bytes");
    assert!(grown < 16 << 20, "{grown}");
    server.none_ended_but(Reason::Room);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_are_opened_and_reset_take_nothing() {
    let _alone = alone().await;
    let server = TestServer::start(wide()).await;
    another_is_served(&server).await;
    let before = memory();
    for path in ["/hello", "/hangs", "/endless"] {
        let mut connections = 0;
        let mut streams = 0;
        let began = Instant::now();
        while streams < 10_000 && began.elapsed() < Duration::from_secs(4) {
            let mut sends = server.http2(65_535).await;
            connections += 1;
            while streams < 10_000 && ask_and_reset(&mut sends, path).await {
                streams += 1;
                if streams % 16 == 0 {
                    tokio::task::yield_now().await;
                }
            }
        }
        println!("{path}: {streams} streams reset over {connections} connections");
        another_is_served(&server).await;
        server.until("none hangs", |server| server.hanging() == 0).await;
        server.until("all are gone", |server| server.counts.open() == 0).await;
    }
    let grown = memory() - before;
    println!("resets took {grown} bytes");
    assert!(grown < 16 << 20, "{grown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_stop_take_little_until_they_are_ended() {
    let _alone = alone().await;
    let patience = Duration::from_secs(2);
    let server = TestServer::start(Limits { patience, ..wide() }).await;
    another_is_served(&server).await;
    let before = memory();
    let mut stops = Vec::new();
    for _ in 0..100 {
        stops.push(server.says("GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await);
    }
    let mut streams = Vec::new();
    for _ in 0..50 {
        let mut sends = server.http2(100).await;
        for _ in 0..16 {
            let (answer, _) = sends.send_request(asks("/endless"), true).unwrap();
            streams.push(answer.await.unwrap());
        }
    }
    another_is_served(&server).await;
    sleep(patience / 4).await;
    let grown = memory() - before;
    println!("100 readers and 50 of 16 streams that stop take {grown} bytes");
    assert!(grown < 64 << 20, "{grown}");
    server.ended(Reason::Unread, 150).await;
    another_is_served(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_that_never_end_take_little_until_they_are_ended() {
    let _alone = alone().await;
    let header_time = Duration::from_secs(2);
    let server = TestServer::start(Limits { header_time, ..wide() }).await;
    another_is_served(&server).await;
    let before = memory();
    let mut begun = Vec::new();
    for _ in 0..500 {
        let head = format!("GET /hello HTTP/1.1\r\nhost: x\r\nx: {}", "x".repeat(15 << 10));
        begun.push(server.says(&head).await);
    }
    another_is_served(&server).await;
    let grown = memory() - before;
    println!("500 heads that do not end take {grown} bytes");
    assert!(grown < 32 << 20, "{grown}");
    server.ended(Reason::Head, 500).await;
    server.until("all are gone", |server| server.counts.open() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn noise_is_neither_answered_for_long_nor_kept() {
    let _alone = alone().await;
    let server = TestServer::start(wide()).await;
    let mut random = fastrand::Rng::with_seed(7);
    for i in 0..300 {
        let mut client = server.connect().await;
        if i % 2 == 0 {
            client.tries(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
        }
        let noise: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(64 << 10).collect();
        client.tries(&noise).await;
    }
    another_is_served(&server).await;
    server.until("all are gone", |server| server.counts.open() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_idle_connections_over_tls_take_little() {
    let _alone = alone().await;
    let folder = Folder::new();
    let server = tls_client::encrypted(&folder, wide()).await;
    let trusts = tls_client::trusts(&folder);
    let before = memory();
    let mut idle = Vec::new();
    for _ in 0..200 {
        let mut client = tls_client::connect(&server, &trusts).await;
        tls_client::hears_hello(&mut client).await;
        idle.push(client);
    }
    // Both ends of them are here.
    let each = (memory() - before) / 200;
    println!("both ends of an idle connection over TLS take {each} bytes");
    assert!(each < 96 << 10, "{each}");
}
