//! Connections that end when their client stops reading.

use std::future::Future;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use ::axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Sleep, sleep};

/// Accepts connections that wait so long, and no longer, for their client to take
/// something.
pub(super) struct PatientListener {
    inner: TcpListener,
    patience: Duration,
}

/// Such a connection.
pub(super) struct Patient {
    inner: TcpStream,
    patience: Duration,
    /// While the client takes nothing: until when that is borne.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl PatientListener {
    pub(super) fn new(inner: TcpListener, patience: Duration) -> Self {
        Self { inner, patience }
    }
}

impl Listener for PatientListener {
    type Io = Patient;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Patient, SocketAddr) {
        let (inner, address) = Listener::accept(&mut self.inner).await;
        (Patient { inner, patience: self.patience, stalled: None }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

impl Patient {
    /// Does what sends something, if the client has not been waited for too long.
    fn send<T>(
        &mut self,
        cx: &mut Context<'_>,
        send: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let sent = send(Pin::new(&mut self.inner), cx);
        if sent.is_ready() {
            self.stalled = None;
            return sent;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        stalled.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, into)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.send(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.send(cx, |stream, cx| stream.poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.send(cx, |stream, cx| stream.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.send(cx, |stream, cx| stream.poll_shutdown(cx))
    }
}
