//! How requests end: panics, limits, upgraded connections.

use std::any::Any;
use std::convert::Infallible;
use std::future::{Ready, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Request, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::{get as get_of_axum, post as post_of_axum};
use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Limited};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use talea::Registry;
use talea_http::axum::{Layer, Router, any, get, post};
use talea_http::{CaughtPanic, Opts, UpgradeGuard};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;
use tower::layer::layer_fn;
use tower::util::MapRequestLayer;
use tower::{Layer as _, ServiceExt, service_fn};
use tower_http::catch_panic::CatchPanicLayer;

use crate::support::client;
use crate::support::counts::{recorded, registry, requests};
use crate::support::requests::{ask, request, text};
use crate::support::wait::until;

/// Panics in its call, before there is a future.
fn trap(_: Request) -> Ready<Result<Response, Infallible>> {
    panic!("on purpose")
}

#[tokio::test]
async fn a_panic_is_a_5xx_and_reaches_the_caller() {
    let routers: [fn() -> Router; 3] = [
        || Router::new().route("/x", get(async || -> &'static str { panic!("on purpose") })),
        || Router::new().route_service("/x", service_fn(trap)),
        || Router::new().route("/x", get(async || "")).layer(layer_fn(|_| service_fn(trap))),
    ];
    for (n, router) in routers.into_iter().enumerate() {
        let registry = registry();
        let app = router().metered(&registry).unwrap();
        assert!(catch(ask(&app, "GET", "/x")).await.is_err());
        assert_eq!(requests(&registry, "GET", "/x", "5xx"), Some(1.0), "{n}");
        assert_eq!(recorded(&registry), 1, "{n}");
    }
    let registry = registry();
    let layer = Layer::new(&registry).unwrap();
    let app = layer.routes(&[("GET", "/x")]).unwrap().layer(service_fn(trap));
    assert!(catch(app.oneshot(request("GET", "/x"))).await.is_err());
    assert_eq!(requests(&registry, "GET", "/x", "5xx"), Some(1.0));
    assert_eq!(recorded(&registry), 1);
}

async fn catch<F: Future>(future: F) -> std::thread::Result<F::Output> {
    let mut future = pin!(future);
    poll_fn(move |cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(polled) => polled.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

/// The client waits for the answer, and gets the same one as without a meter.
#[tokio::test]
async fn a_body_that_exceeds_a_limit_outside_of_the_meter_is_a_413_that_is_complete() {
    let limit = || {
        let limited = |body| Body::new(Limited::new(body, 10));
        MapRequestLayer::new(move |request: Request| request.map(limited))
    };
    let length = async |body: Bytes| body.len().to_string();
    let registries = [registry(), registry()];
    let apps = [
        Router::new().route("/x", post(length)).metered(&registries[0]).unwrap(),
        axum::Router::new()
            .route("/x", post_of_axum(length))
            .layer(Layer::new(&registries[1]).unwrap()),
    ];
    for (app, registry) in apps.into_iter().zip(&registries) {
        let post = Request::post("/x").body(Body::from("more than ten bytes")).unwrap();
        let response = app.layer(limit()).oneshot(post).await.unwrap();
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(outcomes(registry, "/x"), (0.0, one("complete")));
    }
}

/// In a router of axum's own, where no handler of Talea's notes the panic.
#[tokio::test]
async fn a_caught_panic_is_recognised_by_its_response() {
    let sorry = |_: Box<dyn Any + Send>| (StatusCode::INTERNAL_SERVER_ERROR, "sorry");
    let marked = move |panic| {
        let mut response = sorry(panic).into_response();
        response.extensions_mut().insert(CaughtPanic);
        response
    };
    let unmarked = move |panic| sorry(panic).into_response();
    let panics = || get_of_axum(async || -> &'static str { resume_unwind(Box::new(1)) });
    let failure = async || (StatusCode::INTERNAL_SERVER_ERROR, "Database failure");
    let uppercase = map_response(async |response: Response| {
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_ascii_uppercase();
        Response::from_parts(head, Body::from(body))
    });
    let registry = registry();
    let app = axum::Router::new()
        .route("/default", panics().layer(CatchPanicLayer::new()))
        .route("/changed", panics().layer(CatchPanicLayer::new()).layer(uppercase))
        .route("/marked", panics().layer(CatchPanicLayer::custom(marked)))
        .route("/unmarked", panics().layer(CatchPanicLayer::custom(unmarked)))
        .route("/other-500", get_of_axum(failure))
        .route("/other-200", get_of_axum(async || "Service panicked"))
        .layer(Layer::new(&registry).unwrap());
    for (path, outcome, body) in [
        ("/default", "panicked", "Service panicked"),
        // As documented: its body is not the layer's own.
        ("/changed", "complete", "SERVICE PANICKED"),
        ("/marked", "panicked", "sorry"),
        ("/unmarked", "complete", "sorry"),
        ("/other-500", "complete", "Database failure"),
        ("/other-200", "complete", "Service panicked"),
    ] {
        assert_eq!(text(ask(&app, "GET", path).await).await, body);
        assert_eq!(outcomes(&registry, path), (0.0, one(outcome)), "{path}");
    }
}

/// The requests of a route in flight, and their outcomes.
fn outcomes(registry: &Registry, route: &str) -> (f64, Vec<(&'static str, f64)>) {
    let snapshot = registry.snapshot();
    let in_flight = snapshot.total("http_requests_in_flight", &[("route", route)]);
    let all = ["complete", "aborted", "panicked", "timed_out"].map(|outcome| {
        let labels = [("outcome", outcome), ("route", route)];
        (outcome, snapshot.total("http_request_outcomes_total", &labels).unwrap_or(0.0))
    });
    (in_flight.unwrap(), all.into_iter().filter(|(_, count)| *count > 0.0).collect())
}

fn one(outcome: &'static str) -> Vec<(&'static str, f64)> {
    vec![(outcome, 1.0)]
}

#[tokio::test]
async fn an_upgraded_connection_is_in_flight_as_long_as_its_guard_lives() {
    for panics in [false, true] {
        let registry = registry();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let sender = Arc::new(Mutex::new(Some(sender)));
        let handler = async move || {
            let guard = UpgradeGuard::new();
            let sender = sender.lock().unwrap().take().unwrap();
            assert!(sender.send(guard.clone()).is_ok());
            (StatusCode::SWITCHING_PROTOCOLS, Extension(guard))
        };
        let app = Router::new().route("/chat", get(handler)).metered(&registry).unwrap();
        let response = ask(&app, "GET", "/chat").await;
        assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
        drop(response);
        let guard = receiver.await.unwrap();
        assert_eq!(outcomes(&registry, "/chat"), (1.0, vec![]));
        let task = tokio::spawn(async move {
            let _guard = guard;
            if panics {
                resume_unwind(Box::new("on purpose"));
            }
        });
        assert_eq!(task.await.is_err(), panics);
        let outcome = if panics { "panicked" } else { "complete" };
        assert_eq!(outcomes(&registry, "/chat"), (0.0, one(outcome)));
    }
}

#[tokio::test]
async fn the_guard_of_a_response_that_is_no_upgrade_does_nothing() {
    for (status, body) in
        [(StatusCode::BAD_REQUEST, ""), (StatusCode::NO_CONTENT, ""), (StatusCode::OK, "a body")]
    {
        let registry = registry();
        let guard = UpgradeGuard::new();
        let clone = guard.clone();
        let handler = async move || (status, Extension(guard.clone()), body);
        let app = Router::new().route("/chat", get(handler)).metered(&registry).unwrap();
        ask(&app, "GET", "/chat").await;
        assert_eq!(outcomes(&registry, "/chat"), (0.0, one("complete")), "{status}");
        drop(clone);
        assert_eq!(outcomes(&registry, "/chat"), (0.0, one("complete")), "{status}");
    }
}

#[tokio::test]
async fn a_websocket_with_a_guard_is_in_flight_until_it_closes() {
    let registry = registry();
    let app = Router::new().route("/chat", get(echo)).metered(&registry).unwrap();
    let address = client::serve(app).await;
    let socket = TcpStream::connect(address).await.unwrap();
    let url = format!("ws://{address}/chat");
    let (socket, _) = tokio_tungstenite::client_async(url, socket).await.unwrap();
    is_in_flight_until_it_closes(socket, &registry).await;
}

/// Where it begins with a `CONNECT`, which is answered by a 200 (RFC 8441).
#[tokio::test]
async fn a_websocket_of_http2_with_a_guard_is_in_flight_until_it_closes() {
    let registry = registry();
    let app = Router::new().route("/chat", any(echo)).metered(&registry).unwrap();
    let listener = TcpListener::bind(client::loopback()).await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (accepted, _) = listener.accept().await.unwrap();
    tokio::spawn(async move {
        let service = TowerToHyperService::new(app);
        let mut server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        server.enable_connect_protocol().serve_connection(TokioIo::new(accepted), service).await
    });
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    tokio::spawn(connection);
    let request = Request::connect("/chat")
        .extension(hyper::ext::Protocol::from_static("websocket"))
        .header("sec-websocket-version", "13")
        .body(Body::empty());
    let mut response = sender.send_request(request.unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let upgraded = TokioIo::new(hyper::upgrade::on(&mut response).await.unwrap());
    let socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, None).await;
    is_in_flight_until_it_closes(socket, &registry).await;
    let labels = [("method", "CONNECT"), ("route", "/chat"), ("outcome", "complete")];
    assert_eq!(registry.snapshot().value("http_request_outcomes_total", &labels), Some(1.0));
}

/// Over HTTP/2 its response is reset. A server of HTTP/1 asks for no more than the length.
#[tokio::test]
async fn a_body_that_fails_after_its_last_byte_is_aborted() {
    let registry = registry();
    let fails = async || {
        let pieces = [Ok("whole"), Err(io::Error::other("on purpose"))];
        ([("content-length", "5")], Body::from_stream(futures_util::stream::iter(pieces)))
    };
    let app = Router::new().route("/x", get(fails)).metered(&registry).unwrap();
    assert!(ask(&app, "GET", "/x").await.into_body().collect().await.is_err());
    assert_eq!(outcomes(&registry, "/x"), (0.0, one("aborted")));
}

/// A histogram whose sum grew before its count would show a quantile of no body.
#[tokio::test]
async fn the_bytes_of_a_stream_are_observed_once_when_it_has_ended_or_broken_off() {
    for breaks_off in [false, true] {
        let registry = registry();
        let pieces = async || {
            let pieces = ["one", "two", "three"].map(Ok::<_, io::Error>);
            Body::from_stream(futures_util::stream::iter(pieces))
        };
        let endpoints = Opts::new().detailed().register(&registry).unwrap();
        let app: axum::Router = Router::new().route("/x", get(pieces)).metered_by(&endpoints);
        let mut body = ask(&app, "GET", "/x").await.into_body();
        for _ in 0..2 {
            body.frame().await.unwrap().unwrap();
            assert_eq!(outcomes(&registry, "/x"), (1.0, vec![]));
            assert_eq!(sent(&registry), (0, 0.0));
        }
        if !breaks_off {
            while body.frame().await.is_some() {}
        }
        drop(body);
        let expected = if breaks_off { (1, 6.0) } else { (1, 11.0) };
        assert_eq!(sent(&registry), expected);
    }
}

/// The number of response bodies that were observed, and the sum of their bytes.
fn sent(registry: &Registry) -> (u64, f64) {
    let labels = [("method", "GET"), ("route", "/x")];
    let snapshot = registry.snapshot();
    let size = snapshot.histogram("http_response_body_size_bytes", &labels).unwrap();
    (size.count(), size.sum())
}

/// A 2xx to a `CONNECT` has no body (RFC 9110, 9.3.6): hyper drops the one that it is given.
#[tokio::test]
async fn a_tunnel_whose_response_has_a_body_is_complete() {
    let registry = registry();
    let without_length = |body: Body| Body::from_stream(body.into_data_stream());
    let tunnel = async move |request: Request| without_length(request.into_body());
    let app = Router::new().fallback(tunnel).metered(&registry).unwrap();
    let mut socket = TcpStream::connect(client::serve(app).await).await.unwrap();
    socket.write_all(b"CONNECT shop:1 HTTP/1.1\r\nhost: shop:1\r\n\r\n").await.unwrap();
    let mut head = [0; 12];
    socket.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    let outcomes = || outcomes(&registry, "_unmatched");
    until("the request ends", || outcomes().0 == 0.0).await;
    assert_eq!(outcomes(), (0.0, one("complete")));
}

/// A WebSocket with a guard, which answers each message with the message.
async fn echo(upgrade: WebSocketUpgrade) -> impl IntoResponse {
    let guard = UpgradeGuard::new();
    let clone = guard.clone();
    let response = upgrade.on_upgrade(async move |mut socket| {
        let _guard = clone;
        while let Some(Ok(message)) = socket.recv().await {
            let _ = socket.send(message).await;
        }
    });
    (Extension(guard), response)
}

async fn is_in_flight_until_it_closes<S: AsyncRead + AsyncWrite + Unpin>(
    mut socket: WebSocketStream<S>,
    registry: &Registry,
) {
    let outcomes = || outcomes(registry, "/chat");
    socket.send("hello".into()).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap().into_text().unwrap(), "hello");
    assert_eq!(outcomes(), (1.0, vec![]));
    socket.close(None).await.unwrap();
    while socket.next().await.is_some_and(|message| message.is_ok()) {}
    until("the server's task ends", || outcomes().0 == 0.0).await;
    assert_eq!(outcomes(), (0.0, one("complete")));
}
