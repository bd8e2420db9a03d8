//! The handlers of the service under test, for every way of metering.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use axum::body::Bytes;
use axum::http::{Request, Response, StatusCode, header};
use futures_util::{SinkExt, StreamExt};
use http_body_util::BodyExt;
use hyper::body::Body;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::cases::bodies::{BoxBody, BoxError, End, PIECE, Pieces, boxed, panics, whole};
use crate::cases::routes::Behavior;
use crate::cases::witness::Record;

pub(crate) const MEMORY: u64 = 1_000;
/// More than is treated as sent.
pub(crate) const LONG: u64 = 64 << 10;
/// The length of the body that is streamed to its end.
pub(crate) const STREAMED: u64 = 10 * PIECE;
/// The bytes of a failing body before the error.
pub(crate) const BROKEN: u64 = 3 * PIECE;
/// More than the buffers of sockets.
const FOR_LONG: u64 = 1 << 20;

pub(crate) async fn respond<B>(behavior: Behavior, request: Request<B>) -> Response<BoxBody>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    if let Some(record) = request.extensions().get::<Arc<Record>>() {
        record.is_running.store(true, SeqCst);
    }
    match behavior {
        Behavior::Memory => Response::new(whole(MEMORY)),
        Behavior::Empty => Response::new(whole(0)),
        Behavior::Long => Response::new(whole(LONG)),
        Behavior::Status => status(status_in_path(&request)).map(|_| whole(10)),
        Behavior::StatusAlone => status(status_in_path(&request)),
        Behavior::Streams => Response::new(boxed(Pieces::new(STREAMED / PIECE, End::Complete))),
        Behavior::StreamsKnown => Response::new(boxed(Pieces::of_known_length(STREAMED / PIECE))),
        Behavior::StreamsTrailers => {
            Response::new(boxed(Pieces::new(STREAMED / PIECE, End::Trailers)))
        }
        Behavior::StreamsForEver => Response::new(boxed(Pieces::new(u64::MAX, End::Complete))),
        Behavior::StreamsForLong => Response::new(boxed(Pieces::of_known_length(FOR_LONG))),
        Behavior::StreamsDeclared => declared(STREAMED),
        Behavior::StreamsTooMuch => declared(STREAMED - PIECE / 2),
        Behavior::StreamsTooLittle => declared(STREAMED + 1),
        Behavior::Reads => match reads(request.into_body()).await {
            true => Response::new(whole(0)),
            false => status(StatusCode::BAD_REQUEST),
        },
        Behavior::ReadsOn => match reads(request.into_body()).await {
            true => Response::new(whole(0)),
            false => pending().await,
        },
        Behavior::Echoes => Response::new(boxed(request.into_body())),
        Behavior::Ignores => Response::new(whole(MEMORY)),
        Behavior::Never => {
            let _held = request;
            pending().await
        }
        Behavior::Panics => panics(),
        Behavior::BodyPanics => Response::new(boxed(Pieces::new(BROKEN / PIECE, End::Panic))),
        Behavior::BodyFails => Response::new(boxed(Pieces::new(BROKEN / PIECE, End::Error))),
        Behavior::Upgrades => upgrade(request),
        Behavior::PanicsAtOnce | Behavior::Errs => unreachable!("handled earlier"),
    }
}

fn status_in_path<B>(request: &Request<B>) -> StatusCode {
    request.uri().path().rsplit('/').next().unwrap().parse().unwrap()
}

pub(crate) fn status(status: StatusCode) -> Response<BoxBody> {
    let mut response = Response::new(whole(0));
    *response.status_mut() = status;
    response
}

fn declared(bytes: u64) -> Response<BoxBody> {
    let mut response = Response::new(boxed(Pieces::new(STREAMED / PIECE, End::Complete)));
    response.headers_mut().insert(header::CONTENT_LENGTH, bytes.into());
    response
}

/// Reads a body; false if it ends with an error.
async fn reads<B: Body>(body: B) -> bool {
    let mut body = pin!(body);
    while let Some(frame) = body.frame().await {
        if frame.is_err() {
            return false;
        }
    }
    true
}

/// Upgrades to a WebSocket that echoes one message.
fn upgrade<B: Send + 'static>(mut request: Request<B>) -> Response<BoxBody> {
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
