//! A connection as the system gives it: TCP, or a Unix socket.

use std::io::{self, IoSlice};
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

/// The socket of a connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum Socket {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix socket.
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Socket {
    /// Sends small pieces at once.
    pub(super) fn send_at_once(&self) {
        // Pieces are large enough as they are. If this fails, the connection is gone.
        if let Self::Tcp(tcp) = self {
            let _ = tcp.set_nodelay(true);
        }
    }

    /// Drops bytes that the client did not take, rather than keep them in the system's buffers. A Unix socket has them in
    /// its client's.
    pub(super) fn drop_unsent(&self) {
        // If this fails, the connection is gone already.
        if let Self::Tcp(tcp) = self {
            let _ = tcp.set_zero_linger();
        }
    }
}

#[cfg(unix)]
impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(tcp) => tcp.as_fd(),
            Self::Unix(unix) => unix.as_fd(),
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(tcp) => Pin::new(tcp).poll_read(cx, into),
            #[cfg(unix)]
            Self::Unix(unix) => Pin::new(unix).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            #[cfg(unix)]
            Self::Unix(unix) => Pin::new(unix).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(tcp) => Pin::new(tcp).poll_write_vectored(cx, parts),
            #[cfg(unix)]
            Self::Unix(unix) => Pin::new(unix).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(tcp) => Pin::new(tcp).poll_flush(cx),
            #[cfg(unix)]
            Self::Unix(unix) => Pin::new(unix).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(tcp) => Pin::new(tcp).poll_shutdown(cx),
            #[cfg(unix)]
            Self::Unix(unix) => Pin::new(unix).poll_shutdown(cx),
        }
    }
}
