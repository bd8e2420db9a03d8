//! Facts of a socket that the standard library does not show.

/// Whether a read from a descriptor would not wait; of a socket that listens, whether a connection waits to
/// be accepted. False if the system could not say.
#[cfg(unix)]
pub fn is_readable(descriptor: std::os::fd::BorrowedFd<'_>) -> bool {
    use std::os::fd::AsRawFd;

    let mut polled = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: `polled` is one entry, as the length says, and outlives the call, which does not wait.
    unsafe { libc::poll(&mut polled, 1, 0) > 0 }
}

// Miri has no `poll`.
#[cfg(all(test, unix, not(miri)))]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::is_readable;

    #[test]
    fn a_listener_is_readable_while_a_connection_waits() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(!is_readable(listener.as_fd()));
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(is_readable(listener.as_fd()));
        let (accepted, _) = listener.accept().unwrap();
        assert!(!is_readable(listener.as_fd()));
        assert!(!is_readable(accepted.as_fd()));
        drop(client);
        assert!(is_readable(accepted.as_fd()), "the end of a connection can be read");
    }
}
