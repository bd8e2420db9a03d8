//! Ends of requests that need more than a case of `cases`: guards of upgraded connections, tunnels, and
//! the moment at which sizes are observed.

use std::io;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use futures_util::{SinkExt, StreamExt, stream};
use http_body_util::BodyExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use talea::Registry;
use talea_http::axum::{Router, any, get};
use talea_http::{Opts, UpgradeGuard};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::support::client;
use crate::support::counts::registry;
use crate::support::requests::ask;
use crate::support::wait::until;

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

fn one(outcome: &'static str) -> (f64, Vec<(&'static str, f64)>) {
    (0.0, vec![(outcome, 1.0)])
}

#[tokio::test]
async fn a_request_is_in_flight_as_long_as_its_guard_if_its_response_is_an_upgrade() {
    for (status, body, panics, is_kept, outcome) in [
        (StatusCode::SWITCHING_PROTOCOLS, "", false, true, "complete"),
        (StatusCode::SWITCHING_PROTOCOLS, "", true, true, "panicked"),
        (StatusCode::BAD_REQUEST, "", true, false, "complete"),
        (StatusCode::NO_CONTENT, "", true, false, "complete"),
        (StatusCode::OK, "a body", true, false, "complete"),
    ] {
        let registry = registry();
        let guard = UpgradeGuard::new();
        let given = Arc::new(Mutex::new(Some(guard.clone())));
        let app = Router::new()
            .route(
                "/chat",
                get(async move || (status, given.lock().unwrap().take().map(Extension), body)),
            )
            .metered(&registry)
            .unwrap();
        drop(ask(&app, "GET", "/chat").await);
        let expected = if is_kept { (1.0, vec![]) } else { one(outcome) };
        assert_eq!(outcomes(&registry, "/chat"), expected, "{status}");
        let task = tokio::spawn(async move {
            let _guard = guard;
            if panics {
                resume_unwind(Box::new("on purpose"));
            }
        });
        assert_eq!(task.await.is_err(), panics);
        assert_eq!(outcomes(&registry, "/chat"), one(outcome), "{status}");
    }
}

/// It begins with a `CONNECT`, and the response is a 200 (RFC 8441).
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
    let mut socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, None).await;
    socket.send("hello".into()).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap().into_text().unwrap(), "hello");
    assert_eq!(outcomes(&registry, "/chat"), (1.0, vec![]));
    socket.close(None).await.unwrap();
    while socket.next().await.is_some_and(|message| message.is_ok()) {}
    until("the server's task ends", || outcomes(&registry, "/chat").0 == 0.0).await;
    let labels = [("method", "CONNECT"), ("route", "/chat"), ("outcome", "complete")];
    assert_eq!(registry.snapshot().value("http_request_outcomes_total", &labels), Some(1.0));
    assert_eq!(outcomes(&registry, "/chat"), one("complete"));
}

/// A WebSocket with a guard, which echoes each message.
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

/// A histogram whose sum grew before its count would show a quantile of no body.
#[tokio::test]
async fn the_bytes_of_a_stream_are_observed_once_when_it_has_ended_or_broken_off() {
    for (breaks_off, expected) in [(false, (1, 11.0)), (true, (1, 6.0))] {
        let registry = registry();
        let endpoints = Opts::new().detailed().register(&registry).unwrap();
        let app: axum::Router = Router::new().route("/x", get(streams)).metered_by(&endpoints);
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
        assert_eq!(sent(&registry), expected);
    }
}

async fn streams() -> Body {
    Body::from_stream(stream::iter(["one", "two", "three"].map(Ok::<_, io::Error>)))
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
    let app = Router::new()
        .fallback(async |request: Request| {
            Body::from_stream(request.into_body().into_data_stream())
        })
        .metered(&registry)
        .unwrap();
    let mut socket = TcpStream::connect(client::serve(app).await).await.unwrap();
    socket.write_all(b"CONNECT shop:1 HTTP/1.1\r\nhost: shop:1\r\n\r\n").await.unwrap();
    let mut head = [0; 12];
    socket.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    until("the request ends", || outcomes(&registry, "_unmatched").0 == 0.0).await;
    assert_eq!(outcomes(&registry, "_unmatched"), one("complete"));
}
