//! actix-web with its middleware.

use std::future::pending;

use actix_web::body::{BodyStream, SizedStream};
use actix_web::error::ErrorNotFound;
use actix_web::{App, Error, HttpResponse, HttpServer, web};
use axum::body::Bytes;
use futures_util::stream::{self, Stream};
use talea::Registry;
use talea_http::actix::Meter;
use tokio::sync::oneshot;

use crate::cases::bodies::panics;
use crate::cases::framework::{
    Framework, LISTED, Server, a_scanner_makes_no_series, each_is_recorded_once, endpoints,
};

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

#[tokio::test]
async fn requests_of_a_scanner_to_actix_make_no_series() {
    a_scanner_makes_no_series(start().await).await;
}
