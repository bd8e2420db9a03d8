//! The bytes of a connection, encrypted or not, observed as they pass.

use std::fmt;
use std::io::{self, IoSlice};
#[cfg(unix)]
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::phase::Phase;
use super::socket::Socket;

pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// The stream of a connection: its socket, or a layer above it such as TLS.
pub struct Transport(Box<dyn FnOnce(Arc<Phase>) -> Box<dyn ByteStream> + Send>);

impl Transport {
    /// A socket without a layer above it.
    pub fn plain(socket: Socket) -> Self {
        Self::layered(socket, |socket| socket)
    }

    /// A layer above a socket; `socket` returns what is below.
    pub fn layered<S>(stream: S, socket: fn(&S) -> &Socket) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Self(Box::new(move |phase| {
            Box::new(WatchedTransport {
                #[cfg(unix)]
                _closed_in_children: talea_region::ClosedInChildren::new(socket(&stream).as_fd()),
                stream,
                socket,
                phase,
            })
        }))
    }

    /// The stream, which notes reads and writes in the connection's phase.
    pub(super) fn watched(self, phase: Arc<Phase>) -> Box<dyn ByteStream> {
        (self.0)(phase)
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").finish_non_exhaustive()
    }
}

/// A stream that notes reads and writes in its connection's phase.
struct WatchedTransport<S> {
    // Dropped before the stream.
    #[cfg(unix)]
    _closed_in_children: talea_region::ClosedInChildren,
    stream: S,
    socket: fn(&S) -> &Socket,
    phase: Arc<Phase>,
}

impl<S> WatchedTransport<S> {
    /// Notes if bytes that could not be written wait for the client.
    fn note_pending<T>(&self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_pending() {
            self.phase.note_sent(false);
        }
        written
    }
}

/// Bytes that a slow client did not take are not kept in the system's buffers either.
impl<S> Drop for WatchedTransport<S> {
    fn drop(&mut self) {
        if self.phase.is_reset() {
            (self.socket)(&self.stream).drop_unsent();
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedTransport<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, room) = (into.filled().len(), into.remaining());
        let read = Pin::new(&mut self.stream).poll_read(cx, into);
        if into.filled().len() > before {
            self.phase.note_read(&into.filled()[before..]);
        } else if room > 0 && matches!(read, Poll::Ready(Ok(()))) {
            // hyper would take the client as gone. With its own `half_close` it would not read at all
            // during a response, and not see a reset either.
            return self.phase.poll_closed(cx).map(Ok);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedTransport<S> {
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
