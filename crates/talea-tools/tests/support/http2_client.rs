//! Clients of HTTP/2 that reset their streams, or take nothing.

use std::future::poll_fn;

use axum::body::Bytes;
use axum::http::Request;
use h2::Reason;
use h2::client::{Builder, ResponseFuture, SendRequest};
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio::task::JoinHandle;

/// A connection, which goes on by itself until its task is aborted; none if it is refused.
pub(crate) async fn connect(
    address: impl ToSocketAddrs,
    window: u32,
) -> Option<(SendRequest<Bytes>, JoinHandle<Result<(), h2::Error>>)> {
    let stream = TcpStream::connect(address).await.ok()?;
    let mut client = Builder::new();
    client.initial_window_size(window).max_concurrent_reset_streams(100_000);
    let (sends, connection) = client.handshake(stream).await.ok()?;
    let goes_on = tokio::spawn(connection);
    Some((sends.ready().await.ok()?, goes_on))
}

pub(crate) fn asks(path: &str) -> Request<()> {
    Request::get(format!("http://x{path}")).body(()).unwrap()
}

/// Asks for a path, once the connection has room for a stream; none if the connection is gone.
pub(crate) async fn ask(
    sends: &mut SendRequest<Bytes>,
    path: &str,
) -> Option<(ResponseFuture, h2::SendStream<Bytes>)> {
    poll_fn(|cx| sends.poll_ready(cx)).await.ok()?;
    sends.send_request(asks(path), true).ok()
}

/// Opens a stream and resets it; whether the connection is still there.
pub(crate) async fn ask_and_reset(sends: &mut SendRequest<Bytes>, path: &str) -> bool {
    let Some((_, mut stream)) = ask(sends, path).await else { return false };
    stream.send_reset(Reason::CANCEL);
    true
}
