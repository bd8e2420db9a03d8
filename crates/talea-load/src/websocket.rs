//! A conversation over a WebSocket (RFC 6455): messages are sent, and as many awaited as are expected.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use futures_util::{FutureExt, SinkExt, StreamExt};
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::{Response, generate_key};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::connect::{MOST_KEPT, Stream};
use crate::connection::{Answer, RequestError};
use crate::progress::Progress;

/// The messages that a request sends once the WebSocket is open; an extension of the request.
#[derive(Clone, Debug)]
pub(super) struct Messages(pub(super) Arc<[String]>);

/// Opens a WebSocket over a stream, sends the messages of the request, and waits for so many. The body of the answer
/// has these, one a line. If the server refuses to open it, that response is the answer.
pub(super) async fn converse(
    stream: Stream,
    request: &Request<Full<Bytes>>,
    expected: u64,
    progress: &mut Progress,
) -> Result<Answer, RequestError> {
    let started = Instant::now();
    progress.sent_at = Some(started);
    let handshake = handshake(request).map_err(|_| RequestError::NotWebSocket)?;
    let config = WebSocketConfig::default();
    let config = config.max_message_size(Some(MOST_KEPT)).max_frame_size(Some(MOST_KEPT));
    let opened = tokio_tungstenite::client_async_with_config(handshake, stream, Some(config)).await;
    let head = started.elapsed();
    let (kept, response) = match opened {
        Ok((mut socket, response)) => {
            progress.head = Some(head);
            let kept = exchange(&mut socket, request.extensions().get(), expected).await?;
            // The answer is whole; no time is spent on a server that does not read the farewell.
            let at = Instant::now();
            let _ = socket.close(None).now_or_never();
            ((kept, at), response)
        }
        Err(Error::Http(response)) => {
            progress.head = Some(head);
            let (head, body) = response.into_parts();
            ((body.unwrap_or_default(), Instant::now()), Response::from_parts(head, None))
        }
        Err(Error::Capacity(_)) => return Err(RequestError::HeadTooLong),
        Err(error) => return Err(trouble(error, RequestError::ClosedBeforeAnswer)),
    };
    let ((body, at), (parts, _)) = (kept, response.into_parts());
    Ok(Answer {
        status: parts.status,
        headers: parts.headers,
        trailers: HeaderMap::new(),
        bytes: body.len() as u64,
        body: body.into(),
        head,
        took: at - started,
        at,
    })
}

/// The request that asks for the WebSocket.
fn handshake(request: &Request<Full<Bytes>>) -> Result<Request<()>, hyper::http::Error> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    // Only its path is sent; the headers name the host.
    let mut handshake = Request::get(format!("ws://host{path}")).body(())?;
    let headers = handshake.headers_mut();
    headers.clone_from(request.headers());
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    headers.insert(SEC_WEBSOCKET_KEY, HeaderValue::try_from(generate_key())?);
    Ok(handshake)
}

/// Sends messages, and waits for as many as are expected.
async fn exchange(
    socket: &mut WebSocketStream<Stream>,
    messages: Option<&Messages>,
    expected: u64,
) -> Result<Vec<u8>, RequestError> {
    for message in messages.iter().flat_map(|messages| messages.0.iter()) {
        let sent = socket.send(Message::text(message.as_str())).await;
        sent.map_err(|error| trouble(error, RequestError::ClosedInBody))?;
    }
    let (mut kept, mut received) = (Vec::new(), 0);
    while received < expected {
        let message = match socket.next().await {
            Some(Ok(message)) => message,
            Some(Err(error)) => return Err(trouble(error, RequestError::ClosedInBody)),
            None => return Err(RequestError::FewMessages),
        };
        match message {
            Message::Text(_) | Message::Binary(_) => {
                if received > 0 {
                    kept.push(b'\n');
                }
                kept.extend_from_slice(&message.into_data());
                received += 1;
            }
            Message::Close(_) => return Err(RequestError::FewMessages),
            // A ping is answered with the next message that is sent or awaited.
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
        if kept.len() > MOST_KEPT {
            return Err(RequestError::TooLong);
        }
    }
    Ok(kept)
}

fn trouble(error: Error, closed: RequestError) -> RequestError {
    use tokio_tungstenite::tungstenite::error::ProtocolError;
    match error {
        Error::ConnectionClosed | Error::AlreadyClosed => closed,
        Error::Protocol(
            ProtocolError::HandshakeIncomplete | ProtocolError::ResetWithoutClosingHandshake,
        ) => closed,
        Error::Io(error) => match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => closed,
            kind => RequestError::Broken(kind),
        },
        Error::Capacity(_) => RequestError::TooLong,
        _ => RequestError::NotWebSocket,
    }
}
