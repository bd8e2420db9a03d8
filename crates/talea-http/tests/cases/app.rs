//! What the handlers of the service under test do, whatever the way of metering.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{Request, Response, StatusCode, header};
use futures_util::{SinkExt, StreamExt};
use http_body_util::BodyExt;
use hyper::body::Body;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::answer::{Answer, BoxError, Ends, PIECE, Pieces, boxed, empty, panics, pieces, whole};
use crate::routes::Does;
use crate::witness::Record;

/// The length of the body in memory.
pub(crate) const MEMORY: u64 = 1_000;
/// More than is taken as sent.
pub(crate) const LONG: u64 = 64 << 10;
/// The length of the body that is streamed to its end.
pub(crate) const STREAMED: u64 = 10 * PIECE;
/// The length of what a broken body brings until it breaks.
pub(crate) const BROKEN: u64 = 3 * PIECE;
/// More than sockets take.
const FOR_LONG: u64 = 1 << 20;

pub(crate) async fn respond<B>(does: Does, request: Request<B>) -> Response<Answer>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    if let Some(record) = request.extensions().get::<Arc<Record>>() {
        record.runs();
    }
    match does {
        Does::Memory => Response::new(whole(MEMORY)),
        Does::Empty => Response::new(empty()),
        Does::Long => Response::new(whole(LONG)),
        Does::Status => status(said(&request)).map(|_| whole(10)),
        Does::StatusAlone => status(said(&request)),
        Does::Streams => Response::new(pieces(Pieces::new(STREAMED / PIECE, Ends::Well))),
        Does::StreamsKnown => Response::new(pieces(Pieces::of_known_length(STREAMED / PIECE))),
        Does::StreamsForEver => Response::new(pieces(Pieces::new(u64::MAX, Ends::Well))),
        Does::StreamsForLong => Response::new(pieces(Pieces::of_known_length(FOR_LONG))),
        Does::StreamsDeclared => declared(STREAMED),
        Does::StreamsTooMuch => declared(STREAMED - PIECE / 2),
        Does::StreamsTooLittle => declared(STREAMED + 1),
        Does::Reads => match reads(request.into_body()).await {
            true => Response::new(empty()),
            false => status(StatusCode::BAD_REQUEST),
        },
        Does::ReadsOn => match reads(request.into_body()).await {
            true => Response::new(empty()),
            false => pending().await,
        },
        Does::Echoes => Response::new(boxed(request.into_body())),
        Does::Ignores => Response::new(whole(MEMORY)),
        Does::Never => {
            let _held = request;
            pending().await
        }
        Does::Panics => panics(),
        Does::BodyPanics => Response::new(pieces(Pieces::new(BROKEN / PIECE, Ends::Panics))),
        Does::BodyFails => Response::new(pieces(Pieces::new(BROKEN / PIECE, Ends::Fails))),
        Does::Upgrades => upgrade(request),
        Does::PanicsAtOnce | Does::Errs => unreachable!("it is done before"),
    }
}

/// The status that a path says.
fn said<B>(request: &Request<B>) -> StatusCode {
    request.uri().path().rsplit('/').next().unwrap().parse().unwrap()
}

pub(crate) fn status(status: StatusCode) -> Response<Answer> {
    let mut response = Response::new(empty());
    *response.status_mut() = status;
    response
}

/// A streamed response whose head declares so many bytes.
fn declared(bytes: u64) -> Response<Answer> {
    let mut response = Response::new(pieces(Pieces::new(STREAMED / PIECE, Ends::Well)));
    response.headers_mut().insert(header::CONTENT_LENGTH, bytes.into());
    response
}

/// Reads a body; whether it came whole.
async fn reads<B: Body>(body: B) -> bool {
    let mut body = pin!(body);
    while let Some(frame) = body.frame().await {
        if frame.is_err() {
            return false;
        }
    }
    true
}

/// Speaks WebSocket from now on, and sends back one message.
fn upgrade<B: Send + 'static>(mut request: Request<B>) -> Response<Answer> {
    let key = request.headers()[header::SEC_WEBSOCKET_KEY].clone();
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let io = TokioIo::new(upgraded.await.unwrap());
        let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
        if let Some(Ok(message)) = socket.next().await {
            let _ = socket.send(message).await;
        }
    });
    let mut response = status(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, "upgrade".parse().unwrap());
    headers.insert(header::UPGRADE, "websocket".parse().unwrap());
    let accept = derive_accept_key(key.as_bytes());
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept.parse().unwrap());
    response
}
