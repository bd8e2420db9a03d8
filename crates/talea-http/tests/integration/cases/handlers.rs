//! The handlers of the service under test, for every door.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use axum::body::Bytes;
use axum::http::{Request, Response, StatusCode, header};
use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Full, LengthLimitError};
use hyper::body::Body;
use hyper_util::rt::TokioIo;
use talea_http::UpgradeGuard;
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
/// The longest body that a service outside of the meter lets through.
pub(crate) const BODY_LIMIT: u64 = 400_000;

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
        Behavior::Streams => Response::new(boxed(streamed())),
        Behavior::StreamsKnown => Response::new(boxed(Pieces::of_known_length(STREAMED / PIECE))),
        Behavior::StreamsTrailers => {
            Response::new(boxed(Pieces::new(STREAMED / PIECE, End::Trailers)))
        }
        Behavior::StreamsForEver => Response::new(boxed(Pieces::new(u64::MAX, End::Complete))),
        Behavior::StreamsForLong => Response::new(boxed(Pieces::of_known_length(FOR_LONG))),
        Behavior::StreamsDeclared => declared(streamed(), STREAMED),
        Behavior::StreamsTooMuch => declared(streamed(), STREAMED - PIECE / 2),
        Behavior::StreamsTooLittle => declared(streamed(), STREAMED + 1),
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
        Behavior::Extracts => match request.into_body().collect().await.map_err(Into::into) {
            Ok(_) => Response::new(whole(0)),
            Err(error) if error.is::<LengthLimitError>() => status(StatusCode::PAYLOAD_TOO_LARGE),
            Err(_) => status(StatusCode::BAD_REQUEST),
        },
        Behavior::Never => {
            let _held = request;
            pending().await
        }
        Behavior::Panics => panics(),
        Behavior::BodyPanics => Response::new(boxed(Pieces::new(BROKEN / PIECE, End::Panic))),
        Behavior::BodyFails => Response::new(boxed(Pieces::new(BROKEN / PIECE, End::Error))),
        Behavior::BodyFailsLate => declared(Pieces::new(BROKEN / PIECE, End::Error), BROKEN),
        Behavior::OtherFailure => {
            status(StatusCode::INTERNAL_SERVER_ERROR).map(|_| boxed(Full::from("Database failure")))
        }
        Behavior::PanicText => Response::new(boxed(Full::from("Service panicked"))),
        Behavior::Upgrades => upgrade(request, None),
        Behavior::UpgradesWithGuard => upgrade(request, Some(UpgradeGuard::new())),
        Behavior::PanicsAtOnce | Behavior::ServicePanics | Behavior::Errs => {
            unreachable!("handled earlier")
        }
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

fn streamed() -> Pieces {
    Pieces::new(STREAMED / PIECE, End::Complete)
}

fn declared(body: Pieces, bytes: u64) -> Response<BoxBody> {
    let mut response = Response::new(boxed(body));
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

/// Upgrades to a WebSocket that echoes messages.
fn upgrade<B>(mut request: Request<B>, guard: Option<UpgradeGuard>) -> Response<BoxBody> {
    let key = request.headers()[header::SEC_WEBSOCKET_KEY].clone();
    let (upgraded, held) = (hyper::upgrade::on(&mut request), guard.clone());
    tokio::spawn(async move {
        let _held = held;
        let io = TokioIo::new(upgraded.await.unwrap());
        let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
        while let Some(Ok(message)) = socket.next().await {
            let _ = socket.send(message).await;
        }
    });
    let mut response = status(StatusCode::SWITCHING_PROTOCOLS);
    if let Some(guard) = guard {
        response.extensions_mut().insert(guard);
    }
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, "upgrade".parse().unwrap());
    headers.insert(header::UPGRADE, "websocket".parse().unwrap());
    let accept = derive_accept_key(key.as_bytes());
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept.parse().unwrap());
    response
}
