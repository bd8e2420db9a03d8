//! Claims about the metrics server, over real connections.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use talea::{Counter, Opts, Registry};
use talea_http::MetricsServer;

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
    let server = MetricsServer::bind_with(loopback(), &registry, routes).unwrap();
    assert!(ask(server.local_addr(), "GET /hello").ends_with("hello"));
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
