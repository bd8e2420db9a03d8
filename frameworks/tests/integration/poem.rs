//! poem with its middleware.

use std::future::pending;
use std::io;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use poem::endpoint::make;
use poem::http::StatusCode;
use poem::listener::TcpAcceptor;
use poem::{Body, EndpointExt, Error, Request, Response, Route, get, head, post};
use talea::Registry;
use talea_frameworks::poem::Meter;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::framework::{
    Framework, LISTED, Server, a_scanner_makes_no_series, each_is_recorded_once, endpoints,
};
use crate::panics;

fn pieces(count: usize) -> impl Stream<Item = io::Result<Bytes>> {
    stream::iter((0..count).map(|_| Ok(Bytes::from_static(b"0123456789"))))
}

fn endless() -> impl Stream<Item = io::Result<Bytes>> {
    stream::repeat_with(|| Ok(Bytes::from_static(&[b'x'; 1000])))
}

fn breaking() -> impl Stream<Item = io::Result<Bytes>> {
    stream::iter([Ok(Bytes::from_static(b"0123456789")), Err(io::Error::other("on purpose"))])
}

async fn echo(request: Request) -> Response {
    match request.into_body().into_bytes().await {
        Ok(body) => body.into(),
        Err(_) => StatusCode::BAD_REQUEST.into(),
    }
}

fn app() -> Route {
    Route::new()
        .at("/items/:id", get(make(async |_| "an item")))
        .at("/204", get(make(async |_| StatusCode::NO_CONTENT)))
        .at("/404", get(make(async |_| (StatusCode::NOT_FOUND, "missing"))))
        .at("/503", get(make(async |_| StatusCode::SERVICE_UNAVAILABLE)))
        .at("/504", get(make(async |_| StatusCode::GATEWAY_TIMEOUT)))
        .at("/errs", get(make(async |_| Err::<&str, _>(Error::from_status(StatusCode::NOT_FOUND)))))
        .at("/head", head(make(async |_| "some text")))
        .at("/streams", get(make(async |_| Body::from_bytes_stream(pieces(3)))))
        .at(
            "/streams-known",
            get(make(async |_| {
                let length = Response::builder().header("content-length", "30");
                length.body(Body::from_bytes_stream(pieces(3)))
            })),
        )
        .at("/echo", post(make(echo)))
        .at("/ignores", post(make(async |_| StatusCode::OK)))
        .at("/files/*path", get(make(async |_| "abc")))
        .at("/unlisted", get(make(async |_| "abc")))
        .at("/never", get(make(async |_| pending::<&str>().await)))
        .at("/endless", get(make(async |_| Body::from_bytes_stream(endless()))))
        .at("/panics", get(make(async |_| -> &'static str { panics() })))
        .at("/breaks", get(make(async |_| Body::from_bytes_stream(breaking()))))
}

async fn start() -> Server {
    let registry = Registry::for_test().unwrap();
    let [first, second] =
        endpoints(&registry).map(|to| Meter(to.layer(to.finder(&LISTED).unwrap())));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = TcpAcceptor::from_tokio(listener).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(async move {
        let server = poem::Server::new_with_acceptor(acceptor);
        let stopped = async { drop(stopped.await) };
        let app = app().with(first).with(second);
        server.run_with_graceful_shutdown(app, stopped, None).await.unwrap();
    });
    Server { address, registry, _stop: stop }
}

#[tokio::test]
async fn each_request_to_poem_is_recorded_once_at_its_route() {
    let framework = Framework { undeclared: 405, error: 0.0, reset: Some(400), unlisted: "" };
    each_is_recorded_once(&framework, start).await;
}

#[tokio::test]
async fn requests_of_a_scanner_to_poem_make_no_series() {
    a_scanner_makes_no_series(start().await).await;
}
