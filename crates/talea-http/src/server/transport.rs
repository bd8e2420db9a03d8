//! The bytes of a connection, encrypted or not, observed as they pass.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::phase::Phase;

/// The bytes of a connection in both directions.
trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {
    /// The TCP connection below.
    fn tcp(&self) -> &TcpStream;
}

impl ByteStream for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

/// The stream of a connection: TCP, or a layer above it such as TLS.
pub struct Transport(Box<dyn ByteStream>);

impl Transport {
    /// TCP without a layer above it.
    pub fn plain(tcp: TcpStream) -> Self {
        Self(Box::new(tcp))
    }

    /// A layer above TCP; `tcp` returns the connection below.
    pub fn layered<S>(stream: S, tcp: fn(&S) -> &TcpStream) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Self(Box::new(Layered { stream, tcp }))
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Transport").field(self.0.tcp()).finish()
    }
}

struct Layered<S> {
    stream: S,
    tcp: fn(&S) -> &TcpStream,
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for Layered<S> {
    fn tcp(&self) -> &TcpStream {
        (self.tcp)(&self.stream)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Layered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Layered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// A transport that notes reads and writes in its connection's phase.
pub(super) struct WatchedTransport {
    stream: Box<dyn ByteStream>,
    phase: Arc<Phase>,
}

impl WatchedTransport {
    pub(super) fn new(transport: Transport, phase: Arc<Phase>) -> Self {
        Self { stream: transport.0, phase }
    }

    /// Notes if bytes that could not be written wait for the client.
    fn note_pending<T>(&self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_pending() {
            self.phase.note_sent(false);
        }
        written
    }
}

/// Bytes that a slow client did not take are not kept in the system's buffers either.
impl Drop for WatchedTransport {
    fn drop(&mut self) {
        if self.phase.is_reset() {
            // If this fails, the connection is gone already.
            let _ = self.stream.tcp().set_zero_linger();
        }
    }
}

impl AsyncRead for WatchedTransport {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, into);
        if into.filled().len() > before {
            self.phase.note_read(&into.filled()[before..]);
        }
        read
    }
}

impl AsyncWrite for WatchedTransport {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note_pending(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.note_pending(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// A completed flush means that everything was written; a few bytes now and then do not count
    /// as progress.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if flushed.is_ready() {
            self.phase.note_sent(true);
        }
        self.note_pending(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.note_pending(shut)
    }
}
