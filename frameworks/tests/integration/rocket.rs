//! Rocket with its fairing.

use std::io;
use std::net::SocketAddr;

use rocket::config::LogLevel;
use rocket::fairing::AdHoc;
use rocket::http::Status;
use rocket::response::stream::ReaderStream;
use rocket::{Config, get, post, routes};
use talea::Registry;
use talea_frameworks::rocket::Meter;
use talea_http::{Endpoints, Opts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::wait::{LONGEST, until};

#[get("/items/<id>")]
fn item(id: u32) -> String {
    format!("item {id}")
}

#[get("/files/<path..>")]
fn file(path: std::path::PathBuf) -> String {
    path.display().to_string()
}

#[get("/503")]
fn fails() -> Status {
    Status::ServiceUnavailable
}

#[get("/panics")]
fn panics() -> String {
    crate::panics()
}

#[post("/echo", data = "<body>")]
fn echo(body: Vec<u8>) -> Vec<u8> {
    body
}

#[get("/streams")]
fn streams() -> ReaderStream![&'static [u8]] {
    ReaderStream! {
        for _ in 0..3 {
            yield &b"0123456789"[..];
        }
    }
}

#[get("/endless")]
fn endless() -> ReaderStream![&'static [u8]] {
    ReaderStream! {
        loop {
            yield &[b'x'; 1000][..];
        }
    }
}

/// A server of its own for each test, which ends with the test's runtime.
async fn start() -> (SocketAddr, Registry) {
    let registry = Registry::for_test().unwrap();
    let endpoints: Endpoints = Opts::new().detailed().register(&registry).unwrap();
    let config = Config { port: 0, log_level: LogLevel::Off, ..Config::debug_default() };
    let (started, mut starts) = tokio::sync::mpsc::unbounded_channel();
    let noted = AdHoc::on_liftoff("address", move |rocket| {
        Box::pin(async move {
            let Config { address, port, .. } = *rocket.config();
            started.send(SocketAddr::new(address, port)).unwrap();
        })
    });
    let rocket = rocket::custom(Config {
        shutdown: rocket::config::Shutdown { ctrlc: false, ..Default::default() },
        ..config
    });
    let routes = routes![item, file, fails, panics, echo, streams, endless];
    let rocket = rocket.mount("/", routes).attach(Meter::new(&endpoints)).attach(noted);
    tokio::spawn(rocket.launch());
    (starts.recv().await.unwrap(), registry)
}

async fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    tokio::time::timeout(LONGEST, stream.read_to_string(&mut response)).await??;
    Ok(response)
}

#[tokio::test]
async fn all_mounted_routes_have_series_and_each_request_is_recorded_once() {
    let (address, registry) = start().await;
    let value = |name: &str, labels: &[(&str, &str)]| registry.snapshot().value(name, labels);
    let outcome = |method, route| {
        let labels = [("method", method), ("route", route), ("outcome", "complete")];
        value("http_request_outcomes_total", &labels)
    };
    for (method, path, declared, route, status, sent) in [
        ("GET", "/items/7", "GET", "/items/{id}", "2xx", Some(6.0)),
        ("GET", "/files/a/b", "GET", "/files/{*path}", "2xx", Some(3.0)),
        ("GET", "/503", "GET", "/503", "5xx", None),
        ("GET", "/panics", "GET", "/panics", "5xx", None),
        ("POST", "/echo", "POST", "/echo", "2xx", Some(5.0)),
        ("GET", "/streams", "GET", "/streams", "2xx", Some(30.0)),
        ("GET", "/nowhere", "_OTHER", "_unmatched", "4xx", None),
    ] {
        let before = if declared == "_OTHER" { None } else { Some(0.0) };
        assert_eq!(outcome(declared, route), before, "{path}");
        let body = if method == "POST" { "12345" } else { "" };
        ask(address, method, path, body).await.unwrap();
        until(path, || outcome(declared, route) == Some(1.0)).await;
        let endpoint = [("method", declared), ("route", route)];
        let counted = [&endpoint[..], &[("status", status)]].concat();
        assert_eq!(value("http_requests_total", &counted), Some(1.0), "{path}");
        let snapshot = registry.snapshot();
        let bytes = snapshot.histogram("http_response_body_size_bytes", &endpoint).unwrap();
        assert_eq!(bytes.count(), 1, "{path}");
        assert_eq!(sent.unwrap_or(bytes.sum()), bytes.sum(), "{path}");
    }
    let total = registry.snapshot().total("http_requests_in_flight", &[]);
    assert_eq!(total, Some(0.0));
}

#[tokio::test]
async fn a_stream_that_its_client_leaves_is_aborted() {
    let (address, registry) = start().await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    stream.read_exact(&mut [0; 3_000]).await.unwrap();
    drop(stream);
    let labels = [("method", "GET"), ("route", "/endless"), ("outcome", "aborted")];
    let aborted = || registry.snapshot().value("http_request_outcomes_total", &labels);
    until("aborted", || aborted() == Some(1.0)).await;
}
