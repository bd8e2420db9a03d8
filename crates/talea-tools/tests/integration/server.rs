//! The server over real connections: the clients that it serves, those that it ends, and why.

use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Request, StatusCode};
use talea_http::server::{Limits, Reason};
use talea_load::stop::Stop;
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, sleep};

use crate::support::LONGEST;
use crate::support::http2_client::asks;
use crate::support::test_server::{HELLO, LONG, OwnTime, TestServer, wide};

/// How long a limit is where it is met.
const SHORT: Duration = Duration::from_millis(300);
/// A part of it.
const MOMENT: Duration = Duration::from_millis(30);

#[tokio::test]
async fn requests_follow_each_other_over_one_connection() {
    let server = TestServer::start(wide()).await;
    let mut client = server.connect().await;
    for _ in 0..3 {
        client.say(HELLO).await;
        client.hears_hello().await;
    }
    client.say(format!("{HELLO}{HELLO}")).await;
    client.hears_hello().await;
    assert_eq!((server.counts.open(), server.counts.accepted()), (1, 1));
    drop(client);
    server.until("it is gone", |server| server.counts.open() == 0).await;
    server.none_ended();
}

#[tokio::test]
async fn http_2_is_spoken_with_those_who_know_it() {
    let server = TestServer::start(wide()).await;
    let mut sends = server.http2(65_535).await;
    let (answer, _) = sends.send_request(asks("/hello"), true).unwrap();
    let mut answer = answer.await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.body_mut().data().await.unwrap().unwrap(), "hello\n");
    drop((answer, sends));
    server.until("it is gone", |server| server.counts.open() == 0).await;
    server.none_ended();
}

#[tokio::test]
async fn a_body_that_does_not_end_keeps_nothing() {
    let server = TestServer::start(wide()).await;
    for framing in ["content-length: 1000000000", "transfer-encoding: chunked"] {
        let head = format!("GET /hello HTTP/1.1\r\nhost: x\r\n{framing}\r\n\r\n");
        let mut client = server.says(&head).await;
        let began = Instant::now();
        while client.tries("1\r\nx\r\n").await {
            assert!(began.elapsed() < LONGEST, "it takes all: {framing}");
            sleep(Duration::from_millis(1)).await;
        }
        server.until("it is gone", |server| server.counts.open() == 0).await;
    }
    let mut sends = server.http2(65_535).await;
    let (answer, mut body) = sends.send_request(asks("/hello"), false).unwrap();
    let mut answer = answer.await.unwrap();
    assert_eq!(answer.body_mut().data().await.unwrap().unwrap(), "hello\n");
    let reset = async {
        loop {
            body.reserve_capacity(1000);
            if !matches!(std::future::poll_fn(|cx| body.poll_capacity(cx)).await, Some(Ok(_)))
                || body.send_data(Bytes::from_static(&[0; 1000]), false).is_err()
            {
                return;
            }
        }
    };
    tokio::time::timeout(LONGEST, reset).await.expect("its stream is reset");
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let server = TestServer::start(wide()).await;
    let large = format!("GET /hello HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "x".repeat(17 << 10));
    assert!(server.says(&large).await.rest().await.starts_with("HTTP/1.1 431 "));
    let many: String = (0..100).map(|i| format!("x-{i}: x\r\n")).collect();
    let many = format!("GET /hello HTTP/1.1\r\nhost: x\r\n{many}\r\n");
    assert!(server.says(&many).await.rest().await.starts_with("HTTP/1.1 431 "));
    let fits = format!(
        "GET /hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx: {}\r\n\r\n",
        "x".repeat(15 << 10)
    );
    assert!(server.says(&fits).await.rest().await.starts_with("HTTP/1.1 200 "));

    let mut sends = server.http2(65_535).await;
    let large = Request::get("http://x/hello").header("x", "x".repeat(17 << 10)).body(()).unwrap();
    let (answer, _) = sends.send_request(large, true).unwrap();
    assert_eq!(answer.await.unwrap().status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    let (answer, _) = sends.send_request(asks("/hello"), true).unwrap();
    assert_eq!(answer.await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_head_that_comes_byte_by_byte_is_ended() {
    let _time = OwnTime::begin();
    let server = TestServer::start(Limits { header_time: SHORT, ..wide() }).await;
    let mut times = 0;
    // After an answer, too, and whatever the protocol.
    let frame = [0, 0, 100, 1, 4, 0, 0, 0, 1];
    let preface = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat();
    for before in [Vec::new(), HELLO.into(), [&preface[..], &frame].concat()] {
        let mut client = server.connect().await;
        client.say(&before).await;
        let began = Instant::now();
        while client.tries("x").await && began.elapsed() < LONG {
            sleep(MOMENT).await;
        }
        assert!(began.elapsed() >= SHORT, "{times}: ended early, {:?}", began.elapsed());
        times += 1;
        server.ended(Reason::Head, times).await;
    }
}

#[tokio::test]
async fn a_block_of_headers_that_goes_on_and_on_is_ended() {
    let _time = OwnTime::begin();
    let server = TestServer::start(Limits { header_time: SHORT, ..wide() }).await;
    let mut client = server.connect().await;
    client.say(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    client.say([0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82]).await;
    // Frames that are empty are whole each time.
    while client.tries([0, 0, 0, 9, 0, 0, 0, 0, 1]).await {
        sleep(SHORT / 2).await;
    }
    server.ended(Reason::Head, 1).await;
}

#[tokio::test]
async fn a_connection_idle_for_too_long_is_ended_and_one_being_answered_is_not() {
    let _time = OwnTime::begin();
    let server = TestServer::start(Limits { idle_time: SHORT, ..wide() }).await;
    let mut hangs = server.says("GET /hangs HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let mut idle = server.connect().await;
    let mut asks = server.connect().await;
    for _ in 0..20 {
        asks.say(HELLO).await;
        asks.hears_hello().await;
        sleep(MOMENT).await;
    }
    server.ended(Reason::Idle, 1).await;
    assert!(idle.rest().await.is_empty());
    server.ended(Reason::Idle, 2).await;
    assert!(asks.rest().await.is_empty());
    sleep(SHORT * 2).await;
    assert!(hangs.is_there().await);
    assert_eq!(server.counts.open(), 1);
}

#[tokio::test]
async fn a_client_of_http_2_that_asks_nothing_is_idle_however_much_it_sends() {
    let _time = OwnTime::begin();
    let server = TestServer::start(Limits { idle_time: SHORT, ..wide() }).await;
    let mut client = server.connect().await;
    client.say(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    let began = Instant::now();
    while client.tries(b"\0\0\x08\x06\0\0\0\0\0pingping").await {
        assert!(began.elapsed() < LONG, "pings keep it");
        sleep(MOMENT).await;
    }
    server.ended(Reason::Idle, 1).await;
}

#[tokio::test]
async fn a_reader_that_stops_is_ended() {
    let _time = OwnTime::begin();
    let server = TestServer::start(Limits { patience: SHORT, ..wide() }).await;
    let _http1 = server.says("GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await;
    server.ended(Reason::Unread, 1).await;
    // None is as good as taken that HTTP/2 keeps back: neither the first piece, nor the last.
    for (window, path) in [(0, "/hello"), (5, "/hello"), (100, "/piece"), (1000, "/endless")] {
        let before = server.counts.closed(Reason::Unread);
        let mut sends = server.http2(window).await;
        let (answer, _) = sends.send_request(asks(path), true).unwrap();
        let answer = answer.await.unwrap();
        server.ended(Reason::Unread, before + 1).await;
        drop(answer);
    }
    server.until("all are gone", |server| server.counts.open() == 0).await;
}

#[tokio::test]
async fn a_reader_that_is_slow_but_reads_is_served() {
    let _time = OwnTime::begin();
    let server = TestServer::start(Limits { patience: SHORT, ..wide() }).await;
    let mut http1 = server.says("GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let mut sends = server.http2(65_535).await;
    let (answer, _) = sends.send_request(asks("/endless"), true).unwrap();
    let mut http2 = answer.await.unwrap().into_body();
    let began = Instant::now();
    let mut memory = vec![0; 100 << 10];
    while began.elapsed() < SHORT * 5 {
        assert_ne!(http1.0.read(&mut memory).await.unwrap(), 0);
        let piece = http2.data().await.unwrap().unwrap();
        http2.flow_control().release_capacity(piece.len()).unwrap();
        sleep(MOMENT / 2).await;
    }
    server.none_ended();
}

#[tokio::test]
async fn the_client_quiet_the_longest_makes_room_for_a_new_one() {
    let server = TestServer::start(Limits { connections: 3, ..wide() }).await;
    let mut first = server.connect_seen().await;
    let mut second = server.connect_seen().await;
    second.say("GET /hello HTTP").await;
    let mut third = server.connect_seen().await;
    first.say(HELLO).await;
    first.hears_hello().await;
    assert!(server.hello().await.ends_with("hello\n"));
    assert!(second.rest().await.is_empty());
    server.ended(Reason::Room, 1).await;
    // One left by itself; three more are one too many.
    let _fourth = server.connect_seen().await;
    assert!(server.hello().await.ends_with("hello\n"));
    assert!(third.rest().await.is_empty());
    server.ended(Reason::Room, 2).await;
    first.say(HELLO).await;
    first.hears_hello().await;
    assert_eq!(server.counts.open(), 2);
}

#[tokio::test]
async fn a_client_being_answered_keeps_its_place() {
    let server = TestServer::start(Limits { connections: 2, ..wide() }).await;
    let mut hang = Vec::new();
    for times in 1..=2 {
        hang.push(server.says("GET /hangs HTTP/1.1\r\nhost: x\r\n\r\n").await);
        server.until("it hangs", |server| server.hanging() == times).await;
    }
    assert_eq!(server.connect().await.rest().await, "");
    server.ended(Reason::Refused, 1).await;
    assert_eq!((server.hanging(), server.counts.open(), server.counts.accepted()), (2, 2, 3));
    // It may wait for its response, so its place is free after a second.
    hang.pop();
    let mut tries = Vec::new();
    while server.counts.closed(Reason::Room) == 0 {
        tries.push(server.connect().await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    drop(tries);
    server.until("one hangs", |server| server.hanging() == 1).await;
    assert!(server.hello().await.ends_with("hello\n"));
}

#[tokio::test]
async fn a_client_that_reads_nothing_of_its_answer_makes_room_too() {
    let _time = OwnTime::begin();
    let server = TestServer::start(Limits { connections: 1, ..wide() }).await;
    let _stops = server.says("GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await;
    // It makes room once it has read nothing for a second.
    let began = Instant::now();
    loop {
        let mut client = server.connect().await;
        client.tries("GET /hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        if client.rest().await.ends_with("hello\n") {
            break;
        }
        assert!(began.elapsed() < LONGEST, "it never makes room");
        sleep(MOMENT).await;
    }
    assert_eq!(server.counts.closed(Reason::Room), 1);
}

#[tokio::test]
async fn a_connection_that_is_ended_takes_its_requests_along() {
    let _time = OwnTime::begin();
    let server = TestServer::start(Limits { patience: SHORT, ..wide() }).await;
    let mut sends = server.http2(5).await;
    let mut hang = Vec::new();
    for _ in 0..10 {
        hang.push(sends.send_request(asks("/hangs"), true).unwrap());
    }
    server.until("ten hang", |server| server.hanging() == 10).await;
    let _stuck = sends.send_request(asks("/hello"), true).unwrap();
    server.ended(Reason::Unread, 1).await;
    server.until("none hangs", |server| server.hanging() == 0).await;
}

#[tokio::test]
async fn nobody_stays_when_it_is_no_longer_waited_for() {
    let server = TestServer::start(wide()).await;
    let mut idle = server.connect_seen().await;
    let _hangs = server.says("GET /hangs HTTP/1.1\r\nhost: x\r\n\r\n").await;
    server.until("it hangs", |server| server.hanging() == 1).await;
    server.serves.abort();
    assert_eq!(idle.rest().await, "");
    server.until("none hangs", |server| server.hanging() == 0).await;
    assert_eq!(server.counts.open(), 0);
}

#[tokio::test]
async fn once_it_is_to_stop_it_ends_in_good_order() {
    let stop = Stop::on_signals(false, || ()).unwrap();
    let mut server = TestServer::start_with(wide(), stop, None).await;
    let mut idle = server.says(HELLO).await;
    idle.hears_hello().await;
    let answered = server.says("GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(answered.0.readable().await.is_ok());
    let this = rustix::process::getpid();
    rustix::process::kill_process(this, rustix::process::Signal::TERM).unwrap();
    assert_eq!(idle.rest().await, "", "the idle go first");
    assert!(tokio::net::TcpStream::connect(server.address).await.is_err(), "nobody is accepted");
    assert!(!server.serves.is_finished(), "who is being answered is waited for");
    let ended = tokio::time::timeout(LONGEST, &mut server.serves).await;
    ended.expect("not for ever").unwrap();
    assert_eq!(server.counts.open(), 0);
    server.none_ended();
}
