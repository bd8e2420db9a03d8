//! The socket that is listened on.

use std::io;
use std::net::SocketAddr;

use anyhow::Context;
use tokio::net::{TcpListener, TcpSocket};

/// Connections that the system may keep until they are accepted.
const BACKLOG: u32 = 1024;
/// What the system keeps of a connection for a client that reads slowly. It would be megabytes
/// otherwise, for each.
const SENDING: u32 = 128 << 10;
/// What it keeps that has not been read.
const RECEIVING: u32 = 32 << 10;

/// Listens. Connections inherit the sizes of the system's buffers.
pub(super) fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    open(address).with_context(|| {
        format!("cannot listen on {address}; choose an address of this machine that is free")
    })
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // It takes the port over from one before that has just ended. Windows would let it be taken
    // from one that lives.
    if cfg!(not(windows)) {
        socket.set_reuseaddr(true)?;
    }
    socket.set_send_buffer_size(SENDING)?;
    socket.set_recv_buffer_size(RECEIVING)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Whether somebody waits to be accepted. The system says that there is no descriptor for one
/// even where there is no one.
#[cfg(unix)]
pub(super) fn is_waited_at(listener: &TcpListener) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut waited = [PollFd::new(listener, PollFlags::IN)];
    poll(&mut waited, Some(&at_once)).is_ok_and(|ready| ready > 0)
}

/// Whether somebody waits to be accepted: it cannot be told here.
#[cfg(not(unix))]
pub(super) fn is_waited_at(_listener: &TcpListener) -> bool {
    true
}

/// Whether a connection could not be accepted for a reason that has to do with it alone.
pub(super) fn is_of_the_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    )
}
