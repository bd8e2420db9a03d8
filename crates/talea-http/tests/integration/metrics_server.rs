//! The metrics server, over real connections.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures_util::stream::repeat_with;
use talea::{Counter, Opts};
use talea_http::server::Reason;
use talea_http::{Exposition, Limits, MetricsServer};

use crate::support::client::{get, loopback};
use crate::support::counts::registry;
use crate::support::wait::until;

#[tokio::test]
async fn a_scrape_has_the_newest_values() {
    let registry = registry();
    let counter: Counter = registry.register(Opts::new("x", "Things.")).unwrap();
    let server = MetricsServer::bind(loopback(), &registry).unwrap();
    for n in 0..3 {
        let response = get(server.local_addr(), "/metrics", &[]).await;
        let end = format!("# TYPE x_total counter\nx_total {n}\n");
        assert!(response.text().ends_with(&end), "{response:?}");
        counter.inc();
    }
    assert_eq!(get(server.local_addr(), "/else", &[]).await.status, 404);
}

/// Orders accepted.
#[talea::register]
static ORDERS: Counter = Counter::new();

#[tokio::test]
async fn the_default_registry_is_served_by_one_call_with_a_page_that_leads_to_it() {
    let server = talea_http::serve(loopback()).unwrap();
    ORDERS.inc();
    let page = get(server.local_addr(), "/", &[]).await;
    assert!(page.text().contains("<a href=metrics>"), "{page:?}");
    let scrape = get(server.local_addr(), "/metrics", &[]).await;
    assert!(scrape.text().contains("\norders_total 1\n"), "{scrape:?}");
    let error = talea_http::serve(server.local_addr()).unwrap_err();
    assert!(format!("{error:?}").starts_with("cannot listen on 127.0.0.1:"), "{error:?}");
}

/// Within a runtime too, where a runtime must not be dropped.
#[tokio::test]
async fn an_address_that_cannot_be_listened_on_has_the_advice_that_fits() {
    let server = MetricsServer::bind(loopback(), &registry()).unwrap();
    let taken = server.local_addr();
    for (address, kind, advice) in [
        (
            taken,
            ErrorKind::AddrInUse,
            "stop the program that listens there, or choose another port",
        ),
        // A network for documents, which no machine has (RFC 5737).
        (([192, 0, 2, 1], 9464).into(), ErrorKind::AddrNotAvailable, "choose an address of this"),
    ] {
        let error = MetricsServer::bind(address, &registry()).unwrap_err();
        assert_eq!(error.kind(), kind, "{address}");
        let error = error.to_string();
        assert!(error.contains(&address.to_string()) && error.contains(advice), "{error}");
    }
    drop(server);
    TcpListener::bind(taken).unwrap();
}

#[test]
fn it_stops_while_a_snapshot_waits_for_the_program() {
    let registry = registry();
    let (entered, enters) = mpsc::channel();
    let (stopped, stops) = mpsc::channel();
    let (was_stopped, result) = mpsc::channel();
    let stops = Mutex::new(stops);
    registry.on_snapshot(move || {
        entered.send(()).unwrap();
        let is_stopped = stops.lock().unwrap().recv_timeout(Duration::from_secs(60)).is_ok();
        was_stopped.send(is_stopped).unwrap();
    });
    let server = MetricsServer::bind(loopback(), &registry).unwrap();
    let mut client = TcpStream::connect(server.local_addr()).unwrap();
    client.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    enters.recv().unwrap();
    drop(server);
    let _ = stopped.send(());
    assert!(result.recv().unwrap(), "the server waited for the snapshot");
}

#[test]
fn a_route_of_its_own_can_stop_it() {
    let (hand_over, server) = mpsc::channel::<MetricsServer>();
    let (stopped, is_stopped) = mpsc::channel();
    let server = Arc::new(Mutex::new(server));
    let quit = axum::routing::post(async move || {
        drop(server.lock().unwrap().recv());
        stopped.send(()).unwrap();
    });
    let routes = axum::Router::new().route("/quit", quit);
    let server = MetricsServer::builder(Exposition::new(&registry())).routes(routes);
    let server = server.bind(loopback()).unwrap();
    let address = server.local_addr();
    let mut client = TcpStream::connect(address).unwrap();
    hand_over.send(server).unwrap();
    client.write_all(b"POST /quit HTTP/1.0\r\n\r\n").unwrap();
    is_stopped.recv().expect("no panic");
}

#[tokio::test]
async fn many_idle_connections_do_not_keep_a_scrape_out() {
    let server = MetricsServer::bind(loopback(), &registry()).unwrap();
    let limit = Limits::default().connections as u64;
    // The clients close their own ends, so that this process has descriptors for both.
    let mut idle = VecDeque::new();
    for n in 1..=800 {
        idle.push_back(TcpStream::connect(server.local_addr()).unwrap());
        if idle.len() > 200 {
            idle.pop_front();
        }
        assert!(server.counts().open() <= limit);
        if n % 100 == 0 {
            assert_eq!(get(server.local_addr(), "/metrics", &[]).await.status, 200);
        }
    }
    until("all are accepted", || server.counts().accepted() == 808).await;
    assert!(server.counts().open() <= limit);
    assert!(server.counts().closed(Reason::Room) > 0);
}

#[tokio::test]
async fn connections_that_exceed_a_limit_are_closed() {
    let short = Duration::from_millis(50);
    let wide = Limits::default();
    for (text, limits, reason) in [
        ("", Limits { idle_time: short, ..wide }, Reason::Idle),
        ("GET / HTTP/1.1\r\nhost: x\r\n", Limits { header_time: short, ..wide }, Reason::Head),
        ("GET /endless HTTP/1.0\r\n\r\n", Limits { patience: short, ..wide }, Reason::Unread),
    ] {
        let endless = axum::routing::get(async || {
            let pieces = repeat_with(|| Ok::<_, Infallible>("x".repeat(1 << 14)));
            axum::body::Body::from_stream(pieces)
        });
        let server = MetricsServer::builder(Exposition::new(&registry()))
            .routes(axum::Router::new().route("/endless", endless))
            .limits(limits)
            .bind(loopback())
            .unwrap();
        let mut client = TcpStream::connect(server.local_addr()).unwrap();
        client.write_all(text.as_bytes()).unwrap();
        until(reason.name(), || server.counts().closed(reason) == 1).await;
        assert_eq!(server.counts().open(), 0);
        drop(client);
    }
}
