//! hyper's client, which reads whole responses.

use axum::http::{Request, Uri};
use futures_util::future::join_all;
use http_body_util::BodyExt;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::AbortHandle;

use crate::cases::bodies::{BoxBody, End, PIECE, Pieces, boxed, whole};
use crate::cases::case::{Body, Case, Outcome, Protocol};
use crate::cases::server::Server;
use crate::cases::witness::NAME;

pub(super) async fn send(case: &Case, server: &Server, protocol: Protocol, body: Body) {
    Connection::open(server, protocol).await.sender.ask(case, server, body).await;
}

pub(super) async fn send_in_turn(case: &Case, server: &Server, protocol: Protocol, times: usize) {
    let mut connection = Connection::open(server, protocol).await;
    for _ in 0..times {
        connection.sender.ask(case, server, Body::Nothing).await;
    }
}

pub(super) async fn send_at_once(case: &Case, server: &Server, times: usize) {
    let connection = Connection::open(server, Protocol::Http2).await;
    join_all((0..times).map(async |_| match &connection.sender {
        Sender::Http1(_) => unreachable!("it is of HTTP/2"),
        Sender::Http2(sends) => {
            Sender::Http2(sends.clone()).ask(case, server, Body::Nothing).await;
        }
    }))
    .await;
}

struct Connection {
    sender: Sender,
    drives: AbortHandle,
}

enum Sender {
    Http1(http1::SendRequest<BoxBody>),
    Http2(http2::SendRequest<BoxBody>),
}

impl Connection {
    async fn open(server: &Server, protocol: Protocol) -> Self {
        let io = TokioIo::new(server.connect(protocol).await);
        match protocol {
            Protocol::Http1 => {
                let (sends, drives) = http1::handshake(io).await.unwrap();
                Self { sender: Sender::Http1(sends), drives: tokio::spawn(drives).abort_handle() }
            }
            Protocol::Http2 => {
                let (sends, drives) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
                Self { sender: Sender::Http2(sends), drives: tokio::spawn(drives).abort_handle() }
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.drives.abort();
    }
}

impl Sender {
    async fn ask(&mut self, case: &Case, server: &Server, body: Body) {
        let expected = case.expected;
        let name = server.name(case);
        let mut request = Request::new(match body {
            Body::Nothing => whole(0),
            Body::Whole(bytes) => whole(bytes),
            Body::Streamed(bytes) => boxed(Pieces::new(bytes / PIECE, End::Complete)),
        });
        *request.method_mut() = expected.method.parse().unwrap();
        request.headers_mut().insert(NAME, name.into());
        request.headers_mut().insert("origin", "http://example.org".parse().unwrap());
        request.headers_mut().insert("access-control-request-method", "PUT".parse().unwrap());
        let response = match self {
            Self::Http1(sends) => {
                *request.uri_mut() = case.path.parse().unwrap();
                request.headers_mut().insert("host", "shop.example".parse().unwrap());
                sends.ready().await.unwrap();
                sends.send_request(request).await
            }
            Self::Http2(sends) => {
                let uri: Uri = format!("http://shop.example{}", case.path).parse().unwrap();
                *request.uri_mut() = uri;
                sends.ready().await.unwrap();
                sends.send_request(request).await
            }
        };
        let read = async {
            let (head, body) = response?.into_parts();
            Ok::<_, hyper::Error>((
                head.status.as_u16(),
                body.collect().await?.to_bytes().len() as u64,
            ))
        };
        let read = read.await;
        match expected.outcome {
            Outcome::Complete => {
                let (status, bytes) = read.unwrap();
                assert_eq!(Some(status), expected.status, "{expected:?}");
                assert_eq!(bytes, expected.response.unwrap_or(bytes), "{expected:?}");
            }
            // The response may be an error, or its body incomplete.
            _ => {
                if let (Ok((status, _)), Some(expected)) = (read, expected.status) {
                    assert_eq!(status, expected);
                }
                server.wait_for(name, |record| record.is_over()).await;
            }
        }
    }
}
