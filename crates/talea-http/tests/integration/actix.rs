//! actix-web with its middleware.

use std::future::pending;

use actix_web::body::{BodyStream, SizedStream};
use actix_web::error::ErrorNotFound;
use actix_web::{App, Error, HttpResponse, HttpServer, web};
use axum::body::Bytes;
use futures_util::stream::{self, Stream};
use talea::Registry;
use talea_http::actix::Meter;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::cases::bodies::panics;
use crate::cases::framework::{
    Framework, LISTED, Server, a_scanner_makes_no_series, each_is_recorded_once, endpoints,
};
use crate::support::wait::{LONGEST, until};

fn pieces(count: usize) -> impl Stream<Item = Result<Bytes, Error>> {
    stream::iter((0..count).map(|_| Ok(Bytes::from_static(b"0123456789"))))
}

fn endless() -> impl Stream<Item = Result<Bytes, Error>> {
    stream::repeat_with(|| Ok(Bytes::from_static(&[b'x'; 1000])))
}

fn breaking() -> impl Stream<Item = Result<Bytes, Error>> {
    let pieces = [Ok(Bytes::from_static(b"0123456789")), Err(ErrorNotFound("on purpose"))];
    stream::iter(pieces)
}

async fn echo(body: Result<web::Bytes, Error>) -> HttpResponse {
    match body {
        Ok(body) => HttpResponse::Ok().body(body),
        Err(_) => HttpResponse::BadRequest().finish(),
    }
}

/// A response that leaves HTTP.
async fn upgrades() -> HttpResponse {
    let mut response = HttpResponse::SwitchingProtocols();
    response.upgrade("other").body(BodyStream::new(stream::pending::<Result<Bytes, Error>>()))
}

macro_rules! app {
    ($first:expr, $second:expr) => {
        App::new()
            .route("/items/{id}", web::get().to(async || "an item"))
            .route("/204", web::get().to(HttpResponse::NoContent))
            .route("/404", web::get().to(async || HttpResponse::NotFound().body("missing")))
            .route("/503", web::get().to(HttpResponse::ServiceUnavailable))
            .route("/504", web::get().to(HttpResponse::GatewayTimeout))
            .route("/errs", web::get().to(async || Err::<&str, _>(ErrorNotFound("on purpose"))))
            .route("/head", web::head().to(async || "some text"))
            .route(
                "/streams",
                web::get().to(async || HttpResponse::Ok().body(BodyStream::new(pieces(3)))),
            )
            .route(
                "/streams-known",
                web::get().to(async || HttpResponse::Ok().body(SizedStream::new(30, pieces(3)))),
            )
            .route("/echo", web::post().to(echo))
            .route("/ignores", web::post().to(HttpResponse::Ok))
            .route("/files/{path:.*}", web::get().to(async || "abc"))
            .route("/unlisted", web::get().to(async || "abc"))
            .route("/never", web::get().to(async || pending::<&str>().await))
            .route(
                "/endless",
                web::get().to(async || HttpResponse::Ok().body(BodyStream::new(endless()))),
            )
            .route("/panics", web::get().to(async || -> &'static str { panics() }))
            .route("/upgrades", web::get().to(upgrades))
            .route(
                "/breaks",
                web::get().to(async || HttpResponse::Ok().body(BodyStream::new(breaking()))),
            )
            .wrap($first)
            .wrap($second)
    };
}

/// A server on a thread of its own, as actix has its own runtime.
async fn start() -> Server {
    let registry = Registry::for_test().unwrap();
    let [first, second] =
        endpoints(&registry).map(|endpoints| Meter::by(&endpoints).routes(&LISTED).unwrap());
    let (started, starts) = std::sync::mpsc::channel();
    let (stop, stopped) = oneshot::channel();
    std::thread::spawn(move || {
        actix_web::rt::System::new().block_on(async move {
            let server = HttpServer::new(move || app!(first, second)).workers(1).disable_signals();
            let server = server.bind(("127.0.0.1", 0)).unwrap();
            started.send(server.addrs()[0]).unwrap();
            let running = server.run();
            let handle = running.handle();
            tokio::select! {
                ended = running => ended.unwrap(),
                _ = stopped => handle.stop(false).await,
            }
        });
    });
    Server { address: starts.recv().unwrap(), registry, _stop: stop }
}

#[tokio::test]
async fn each_request_to_actix_is_recorded_once_at_its_route() {
    // actix drops a handler whose request's body breaks off.
    let framework = Framework { undeclared: 404, error: 10.0, reset: None, unlisted: "/unlisted" };
    each_is_recorded_once(&framework, start).await;
}

/// What a client sends and the server's answers, of which each pair follows the one before; the outcomes of all
/// requests at a route.
type Exchange = (&'static str, &'static [(&'static str, &'static str)], &'static str, f64);

const OLD: &str = "GET /items/7 HTTP/1.0\r\n\r\n";
const ITEM: &str = "GET /items/7 HTTP/1.1\r\nhost: x\r\n\r\n";
const ITEMS: &str =
    "GET /items/7 HTTP/1.1\r\nhost: x\r\n\r\nGET /items/8 HTTP/1.1\r\nhost: x\r\n\r\n";
const EXPECTS: &str =
    "POST /echo HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n";
/// Its body does not follow.
const LARGE: &str = "POST /ignores HTTP/1.1\r\nhost: x\r\ncontent-length: 100000000\r\n\r\n12345";
const UPGRADE: &str =
    "GET /upgrades HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n";

const EXCHANGES: [Exchange; 6] = [
    ("HTTP/1.0", &[(OLD, "HTTP/1.0 200 OK")], "/items/{id}", 1.0),
    ("a kept connection", &[(ITEM, "an item"), (ITEM, "an item")], "/items/{id}", 2.0),
    ("pipelined requests", &[(ITEMS, "an item"), ("", "an item")], "/items/{id}", 2.0),
    ("a body after a 100", &[(EXPECTS, " 100 "), ("12345", "12345")], "/echo", 1.0),
    ("an early answer to a large body", &[(LARGE, "HTTP/1.1 200 OK")], "/ignores", 1.0),
    ("an upgrade", &[(UPGRADE, "HTTP/1.1 101 Switching Protocols")], "/upgrades", 1.0),
];

#[tokio::test]
async fn each_request_to_actix_is_complete_however_http_1_carries_it() {
    for (name, exchanges, route, expected) in EXCHANGES {
        let server = start().await;
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let mut unread = String::new();
        for (request, answer) in exchanges {
            stream.write_all(request.as_bytes()).await.unwrap();
            while !unread.contains(answer) {
                let mut bytes = Vec::new();
                let read = tokio::time::timeout(LONGEST, stream.read_buf(&mut bytes)).await;
                assert_ne!(read.expect(name).unwrap(), 0, "{name}: {unread}");
                unread += std::str::from_utf8(&bytes).unwrap();
            }
            unread = unread.split_once(answer).unwrap().1.to_owned();
        }
        drop(stream);
        let complete = [("route", route), ("outcome", "complete")];
        let total = |labels: &[(&str, &str)]| {
            server.registry.snapshot().total("http_request_outcomes_total", labels)
        };
        until(name, || total(&[]) == Some(expected)).await;
        assert_eq!(total(&complete), Some(expected), "{name}");
    }
}

#[tokio::test]
async fn requests_of_a_scanner_to_actix_make_no_series() {
    a_scanner_makes_no_series(start().await).await;
}
