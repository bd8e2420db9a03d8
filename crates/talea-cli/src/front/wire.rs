//! A connection's bytes, encrypted or not, noted as they pass.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::phase::Phase;

/// What requests come over.
pub(super) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {
    /// The connection below.
    fn tcp(&self) -> &TcpStream;
}

impl Wire for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Wire for TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// A wire whose connection knows what it is at.
pub(super) struct Watched {
    wire: Box<dyn Wire>,
    phase: Arc<Phase>,
}

impl Watched {
    pub(super) fn new(wire: impl Wire + 'static, phase: Arc<Phase>) -> Self {
        Self { wire: Box::new(wire), phase }
    }

    /// What could not be written waits for the client.
    fn write<T>(&self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_pending() {
            self.phase.sent(false);
        }
        written
    }
}

/// Whoever does not take what it is sent does not keep it in the system's memory either.
impl Drop for Watched {
    fn drop(&mut self) {
        if self.phase.is_reset() {
            // It is gone already then.
            let _ = self.wire.tcp().set_zero_linger();
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.wire).poll_read(cx, into);
        if into.filled().len() > before {
            self.phase.read(&into.filled()[before..]);
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.wire).poll_write(cx, bytes);
        self.write(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.wire).poll_write_vectored(cx, parts);
        self.write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }

    /// Flushed is what was written whole: some bytes now and then are not enough.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.wire).poll_flush(cx);
        if flushed.is_ready() {
            self.phase.sent(true);
        }
        self.write(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.wire).poll_shutdown(cx);
        self.write(shut)
    }
}
