//! Two things that the standard library lacks for sockets: whether a read would wait, and forks.

#[cfg(unix)]
use std::os::fd::{AsRawFd, BorrowedFd};
#[cfg(unix)]
use std::sync::Once;
#[cfg(unix)]
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst};

#[cfg(unix)]
use crate::fork::at_fork;

/// Whether a read from a descriptor would not wait; of a socket that listens, whether a connection waits to
/// be accepted. False if the system could not say.
#[cfg(unix)]
pub fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let mut polled = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: `polled` is one entry, as the length says, and outlives the call, which does not wait.
    unsafe { libc::poll(&mut polled, 1, 0) > 0 }
}

/// A socket that children made by `fork` close.
#[cfg(unix)]
#[derive(Debug)]
struct Listed {
    /// Its number, or -1.
    descriptor: AtomicI32,
    /// Its identity: a program that closed all descriptors may have another file of that number.
    inode: AtomicU64,
}

#[cfg(unix)]
static CLOSED_IN_CHILDREN: [Listed; 128] =
    [const { Listed { descriptor: AtomicI32::new(-1), inode: AtomicU64::new(0) } }; 128];

/// Has a socket closed in children made by `fork`, which would keep its port or its connection beyond the
/// end of this process. Drop it before the socket is closed here. Of more than 128 at once, the rest stay open.
#[cfg(unix)]
#[derive(Debug)]
pub struct ClosedInChildren(Option<&'static Listed>);

#[cfg(unix)]
impl ClosedInChildren {
    /// Lists a socket.
    pub fn new(socket: BorrowedFd<'_>) -> Self {
        static HANDLER: Once = Once::new();
        // SAFETY: the handler calls only functions that are safe in the child of a process with threads.
        HANDLER.call_once(|| unsafe { at_fork(None, close_in_child) });
        let number = socket.as_raw_fd();
        let listed = CLOSED_IN_CHILDREN
            .iter()
            .find(|listed| listed.descriptor.compare_exchange(-1, number, SeqCst, SeqCst).is_ok());
        if let (Some(listed), Some(inode)) = (listed, inode_of_socket(number)) {
            listed.inode.store(inode, SeqCst);
        }
        Self(listed)
    }
}

#[cfg(unix)]
impl Drop for ClosedInChildren {
    fn drop(&mut self) {
        if let Some(listed) = self.0 {
            listed.descriptor.store(-1, SeqCst);
        }
    }
}

/// The inode of a descriptor that is open and a socket.
#[cfg(unix)]
fn inode_of_socket(descriptor: i32) -> Option<u64> {
    // SAFETY: all bytes of a `stat` may be zero.
    let mut found: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: a call with an integer and a place for its result.
    let is_open = unsafe { libc::fstat(descriptor, &mut found) } == 0;
    (is_open && found.st_mode & libc::S_IFMT == libc::S_IFSOCK).then_some(found.st_ino)
}

/// Runs in a child that was just made. `/dev/null` takes the number of each socket, since a value in
/// the child's memory owns that number.
#[cfg(unix)]
extern "C" fn close_in_child() {
    for listed in &CLOSED_IN_CHILDREN {
        let descriptor = listed.descriptor.load(SeqCst);
        if descriptor < 0 || inode_of_socket(descriptor) != Some(listed.inode.load(SeqCst)) {
            continue;
        }
        // SAFETY: the path ends with a zero byte. The number is the listed socket's; it stays
        // open, and is another file. Without a free descriptor the socket stays open as it is.
        unsafe {
            let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            if null >= 0 {
                libc::dup2(null, descriptor);
                libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
                libc::close(null);
            }
        }
    }
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
