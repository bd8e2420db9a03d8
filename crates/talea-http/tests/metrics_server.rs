//! Claims about the metrics server, over real connections.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use talea::{Counter, Opts, Registry};
use talea_http::server::Reason;
use talea_http::{Exposition, Limits, MetricsServer};

fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

#[test]
fn a_scrape_has_the_right_type_and_the_newest_values() {
    let registry = Registry::for_test().unwrap();
    let counter: Counter = registry.register(Opts::new("x", "Things.")).unwrap();
    let server = MetricsServer::bind(loopback(), &registry).unwrap();
    for n in 0..3 {
        let answer = ask(server.local_addr(), "GET /metrics");
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(
            answer.contains("content-type: text/plain; version=0.0.4; charset=utf-8"),
            "{answer}"
        );
        assert!(answer.ends_with(&format!("# TYPE x_total counter\nx_total {n}\n")), "{answer}");
        counter.inc();
    }
    assert!(ask(server.local_addr(), "POST /metrics").starts_with("HTTP/1.1 405"));
    assert!(ask(server.local_addr(), "GET /else").starts_with("HTTP/1.1 404"));
}

#[test]
fn further_routes_stand_beside_the_metrics() {
    let routes = axum::Router::new().route("/hello", axum::routing::get(async || "hello"));
    let registry = Registry::for_test().unwrap();
    let server =
        MetricsServer::builder(Exposition::new(&registry)).routes(routes).bind(loopback()).unwrap();
    assert!(ask(server.local_addr(), "GET /hello").ends_with("hello"));
}

#[tokio::test]
async fn a_taken_port_is_an_error_also_within_a_runtime() {
    let registry = Registry::for_test().unwrap();
    let server = MetricsServer::bind(loopback(), &registry).unwrap();
    let error = MetricsServer::bind(server.local_addr(), &registry).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&server.local_addr().to_string()), "{error}");
}

#[test]
fn a_taken_port_is_an_error_and_a_dropped_server_gives_its_port_back() {
    let registry = Registry::for_test().unwrap();
    let server = MetricsServer::bind(loopback(), &registry).unwrap();
    let address = server.local_addr();
    let told = MetricsServer::bind(address, &registry).unwrap_err();
    assert_eq!(told.kind(), std::io::ErrorKind::AddrInUse);
    drop(server);
    TcpListener::bind(address).unwrap();
}

/// Waits for something that happens sooner or later.
fn until(what: &str, mut is: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < Duration::from_secs(30), "waited for: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn eight_hundred_idle_connections_keep_nobody_out_and_take_few_descriptors() {
    let registry = Registry::for_test().unwrap();
    let server = MetricsServer::bind(loopback(), &registry).unwrap();
    let limit = Limits::default().connections as u64;
    // The clients end their own, so that this process has descriptors for both ends.
    let mut idle = std::collections::VecDeque::new();
    for n in 1..=800 {
        idle.push_back(TcpStream::connect(server.local_addr()).unwrap());
        if idle.len() > 200 {
            idle.pop_front();
        }
        assert!(server.counts().open() <= limit);
        if n % 100 == 0 {
            assert!(ask(server.local_addr(), "GET /metrics").starts_with("HTTP/1.1 200"));
        }
    }
    until("all are accepted", || server.counts().accepted() == 808);
    assert!(server.counts().open() <= limit);
    assert!(server.counts().closed(Reason::Room) > 0);
}

#[test]
fn heads_that_do_not_end_idle_connections_and_unread_responses_are_ended() {
    let registry = Registry::for_test().unwrap();
    let short = Duration::from_millis(50);
    let wide = Limits::default();
    for (said, limits, reason) in [
        ("", Limits { idle_time: short, ..wide }, Reason::Idle),
        (
            "GET /metrics HTTP/1.1\r\nhost: x\r\n",
            Limits { header_time: short, ..wide },
            Reason::Head,
        ),
        (
            "GET /endless HTTP/1.1\r\nhost: x\r\n\r\n",
            Limits { patience: short, ..wide },
            Reason::Unread,
        ),
    ] {
        let endless = axum::routing::get(async || {
            let pieces =
                futures_util::stream::repeat_with(|| Ok::<_, Infallible>("x".repeat(1 << 14)));
            axum::body::Body::from_stream(pieces)
        });
        let server = MetricsServer::builder(Exposition::new(&registry))
            .routes(axum::Router::new().route("/endless", endless))
            .limits(limits)
            .bind(loopback())
            .unwrap();
        let mut client = TcpStream::connect(server.local_addr()).unwrap();
        client.write_all(said.as_bytes()).unwrap();
        until(reason.name(), || server.counts().closed(reason) == 1);
        assert_eq!(server.counts().open(), 0);
        drop(client);
    }
}
