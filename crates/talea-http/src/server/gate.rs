//! The decision over connections and requests: encryption, authentication, headers.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;

use ::axum::response::Response;
use ::http::HeaderMap;

use super::socket::Socket;
use super::transport::Transport;

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Decides how connections are accepted and which requests reach the application.
pub trait Gate: fmt::Debug + Send + Sync + 'static {
    /// Prepares a new connection, for example by a TLS handshake.
    ///
    /// # Errors
    ///
    /// The handshake failed: the connection is closed and counted as
    /// [`Reason::Handshake`](super::Reason::Handshake).
    fn accept(&self, socket: Socket) -> Boxed<'_, io::Result<AcceptedConnection>>;

    /// Lets a request through, by its headers and its client's address.
    ///
    /// # Errors
    ///
    /// The response that the client gets in place of the application's.
    fn admit<'a>(
        &'a self,
        headers: &'a HeaderMap,
        client: SocketAddr,
    ) -> Boxed<'a, Result<(), Response>>;

    /// Adds headers to every response, refusals included.
    fn add_headers(&self, headers: &mut HeaderMap);
}

/// A connection that is ready for requests.
#[derive(Debug)]
pub struct AcceptedConnection {
    /// The bytes of requests and responses.
    pub transport: Transport,
    /// Whether HTTP/2 is spoken beside HTTP/1, which needs the feature `http2`.
    pub http2: bool,
}

/// Plain connections and HTTP/1, open to every client.
#[derive(Clone, Copy, Debug)]
pub struct OpenGate;

impl Gate for OpenGate {
    fn accept(&self, socket: Socket) -> Boxed<'_, io::Result<AcceptedConnection>> {
        let accepted = AcceptedConnection { transport: Transport::plain(socket), http2: false };
        Box::pin(std::future::ready(Ok(accepted)))
    }

    fn admit<'a>(&'a self, _: &'a HeaderMap, _: SocketAddr) -> Boxed<'a, Result<(), Response>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn add_headers(&self, _: &mut HeaderMap) {}
}
