//! The server over TLS: clients that do not come to the end of the handshake,
//! and those that do not read afterwards, are ended as others are.

use std::time::Duration;

use talea_http::server::{Limits, Reason};
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use crate::support::test_server::{HELLO, LONG, OwnTime, wide};
use crate::support::tls_client::{connect, encrypted, hears_hello, trusts};
use crate::support::web_config::Folder;

const SHORT: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_handshake_that_does_not_end_is_ended() {
    let _time = OwnTime::begin();
    let folder = Folder::new();
    let server = encrypted(&folder, Limits { header_time: SHORT, ..wide() }).await;
    let trusts = trusts(&folder);
    let mut silent = server.connect().await;
    assert_eq!(silent.rest().await, "");
    server.ended(Reason::Handshake, 1).await;

    // The begin of a record of TLS, and then a byte now and then.
    let mut slow = server.says("\x16\x03\x01\x01\0\x01\0\0\u{7c}\x03\x03").await;
    let began = Instant::now();
    while slow.tries("x").await && began.elapsed() < LONG {
        tokio::time::sleep(SHORT / 10).await;
    }
    server.ended(Reason::Handshake, 2).await;

    let mut good = connect(&server, &trusts).await;
    tokio::time::sleep(SHORT * 2).await;
    hears_hello(&mut good).await;
    server.ended(Reason::Handshake, 2).await;
}

#[tokio::test]
async fn a_client_that_does_not_speak_tls_gets_an_alert_and_is_counted() {
    let folder = Folder::new();
    let server = encrypted(&folder, wide()).await;
    let answer = server.says(HELLO).await.rest().await;
    assert!(!answer.contains("hello"), "{answer}");
    server.ended(Reason::Handshake, 1).await;
}

#[tokio::test]
async fn a_handshake_makes_room_for_a_new_client() {
    let folder = Folder::new();
    let server = encrypted(&folder, Limits { connections: 2, ..wide() }).await;
    let trusts = trusts(&folder);
    let mut silent = [server.connect_seen().await, server.connect_seen().await];
    hears_hello(&mut connect(&server, &trusts).await).await;
    assert_eq!(silent[0].rest().await, "");
    assert!(silent[1].is_there().await);
    server.ended(Reason::Room, 1).await;
}

#[tokio::test]
async fn a_head_that_is_slow_and_an_answer_that_is_not_read_are_ended() {
    let _time = OwnTime::begin();
    let folder = Folder::new();
    let limits = Limits { header_time: SHORT, patience: SHORT, ..wide() };
    let server = encrypted(&folder, limits).await;
    let trusts = trusts(&folder);
    let mut slow = connect(&server, &trusts).await;
    let began = Instant::now();
    while slow.write_all(b"x").await.is_ok() && began.elapsed() < LONG {
        tokio::time::sleep(SHORT / 10).await;
    }
    server.ended(Reason::Head, 1).await;
    let mut stops = connect(&server, &trusts).await;
    stops.write_all(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    server.until("it is ended", |server| server.counts.closed(Reason::Unread) == 1).await;
    server.until("all are gone", |server| server.counts.open() == 0).await;
}
