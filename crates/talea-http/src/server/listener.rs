//! The socket that a server listens on.

use std::io;
use std::net::SocketAddr;
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};

#[cfg(unix)]
use tokio::net::UnixListener;
use tokio::net::{TcpListener, TcpSocket};

use super::address::Address;
use super::socket::Socket;
#[cfg(unix)]
use super::unix::{self, SocketFile};

/// Connections that the system queues until they are accepted.
const BACKLOG: u32 = 1024;
/// Bytes that the system buffers for a client that reads slowly. Its own default is megabytes for
/// each connection.
const SEND_BUFFER: u32 = 128 << 10;
/// Bytes that the system buffers until they are read.
const RECEIVE_BUFFER: u32 = 32 << 10;

/// A socket that listens, in this process only: a child made by `fork` does not keep the port.
#[derive(Debug)]
pub(super) struct Listener {
    // Dropped before the socket.
    #[cfg(unix)]
    _closed_in_children: talea_region::ClosedInChildren,
    socket: ListeningSocket,
}

#[derive(Debug)]
enum ListeningSocket {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener, #[expect(dead_code, reason = "its drop removes the file")] SocketFile),
}

impl Listener {
    /// Listens. Connections over TCP inherit the sizes of the system's buffers. Also returns the address with the
    /// port that the system chose.
    ///
    /// # Errors
    ///
    /// The address cannot be listened on. The error names it and has the kind of the system's.
    pub(super) fn bind(address: Address) -> io::Result<(Self, Address)> {
        let (socket, bound) = match &address {
            Address::Tcp(tcp) => {
                let socket =
                    open(*tcp).map_err(|error| cannot_listen(&address, &error, advice(&error)))?;
                let bound = socket.local_addr()?;
                (ListeningSocket::Tcp(socket), bound.into())
            }
            #[cfg(unix)]
            Address::Unix(unix) => {
                let (socket, file) = unix::listen(unix, BACKLOG)
                    .map_err(|error| cannot_listen(&address, &error, advice_for_path(&error)))?;
                (ListeningSocket::Unix(socket, file), address)
            }
        };
        let listener = Self {
            #[cfg(unix)]
            _closed_in_children: talea_region::ClosedInChildren::new(socket.as_fd()),
            socket,
        };
        Ok((listener, bound))
    }

    /// The next connection, and the address of its client.
    pub(super) async fn accept(&self) -> io::Result<(Socket, SocketAddr)> {
        match &self.socket {
            ListeningSocket::Tcp(listener) => {
                let (tcp, client) = listener.accept().await?;
                Ok((Socket::Tcp(tcp), client))
            }
            #[cfg(unix)]
            ListeningSocket::Unix(listener, _) => {
                let (unix, _) = listener.accept().await?;
                Ok((Socket::Unix(unix), ([127, 0, 0, 1], 0).into()))
            }
        }
    }

    /// Whether a connection waits to be accepted. The system reports a lack of descriptors even if
    /// none does. Where the system does not say, it is assumed.
    pub(super) fn has_pending_connection(&self) -> bool {
        #[cfg(unix)]
        return talea_region::is_readable(self.socket.as_fd());
        #[cfg(not(unix))]
        true
    }
}

#[cfg(unix)]
impl AsFd for ListeningSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener, _) => listener.as_fd(),
        }
    }
}

fn cannot_listen(address: &Address, error: &io::Error, advice: &str) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen on {address}: {error}; {advice}"))
}

#[cfg(unix)]
fn advice_for_path(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "stop the program that listens there, or choose another path",
        io::ErrorKind::NotFound => "make the folder first",
        io::ErrorKind::PermissionDenied => {
            "choose a folder that this user may write to, and a group that it is in"
        }
        _ => "choose another path, of at most 107 bytes",
    }
}

/// `ENFILE` and `EMFILE`, which have these numbers on every Unix.
const OUT_OF_DESCRIPTORS: [i32; 2] = [23, 24];

fn advice(error: &io::Error) -> &'static str {
    if cfg!(unix) && error.raw_os_error().is_some_and(|it| OUT_OF_DESCRIPTORS.contains(&it)) {
        return "raise the limit of open files (`ulimit -n`, or LimitNOFILE= of the service), or have the process \
                open fewer before it listens";
    }
    match error.kind() {
        io::ErrorKind::AddrInUse => "stop the program that listens there, or choose another port",
        io::ErrorKind::PermissionDenied => "choose a port from 1024 on: lower ones need privileges",
        io::ErrorKind::AddrNotAvailable => {
            "choose an address of this machine, 127.0.0.1 for itself or 0.0.0.0 for all"
        }
        _ => "choose a free address of this machine",
    }
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Takes over the port of a server that has just ended. On Windows the option would take it
    // from one that still runs.
    if cfg!(not(windows)) {
        socket.set_reuseaddr(true)?;
    }
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Whether accepting failed because of one connection and not for lack of resources.
pub(super) fn is_of_the_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_needs_privileges_is_not_said_to_be_taken() {
        let words = advice(&io::ErrorKind::PermissionDenied.into());
        assert!(words.contains("1024") && !words.contains("free"), "{words}");
    }

    #[cfg(unix)]
    #[test]
    fn without_a_descriptor_no_other_address_is_advised() {
        for errno in [libc::EMFILE, libc::ENFILE] {
            let words = advice(&io::Error::from_raw_os_error(errno));
            assert!(words.contains("ulimit -n") && !words.contains("address"), "{words}");
        }
    }
}
