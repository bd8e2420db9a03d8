//! Listening on a Unix socket.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use tokio::net::{UnixListener, UnixSocket};

use super::address::UnixAddress;

/// The file of a socket that listens, which is removed with it unless another has taken its place.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

/// Listens on a path, with its mode and group before the first client can connect.
///
/// # Errors
/// Another process listens there, the file is no socket, or the system refuses it.
pub(super) fn listen(
    address: &UnixAddress,
    backlog: u32,
) -> io::Result<(UnixListener, SocketFile)> {
    let UnixAddress { path, mode, group } = address;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    // Of two servers that start here at the same time, one must not take the other's socket for a dead one.
    let folder = File::open(folder.unwrap_or(Path::new(".")))?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
        rustix::io::Errno::WOULDBLOCK => {
            io::Error::new(ErrorKind::AddrInUse, "another server starts in this folder; try again")
        }
        error => error.into(),
    })?;
    remove_dead(path)?;
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    let found = fs::symlink_metadata(path)?;
    let file = SocketFile { path: path.clone(), identity: (found.dev(), found.ino()) };
    chown(path, None, *group)?;
    fs::set_permissions(path, Permissions::from_mode(*mode))?;
    // Until now the system refuses clients.
    Ok((socket.listen(backlog)?, file))
}

/// Removes the socket of a dead process.
fn remove_dead(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        let reason =
            "a file that is no socket is there, and stays; remove it, or choose another path";
        return Err(io::Error::new(ErrorKind::AlreadyExists, reason));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        _ => Err(io::Error::new(ErrorKind::AddrInUse, "a living process listens there")),
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let found = fs::symlink_metadata(&self.path).map(|found| (found.dev(), found.ino()));
        if found.is_ok_and(|found| found == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use crate::MetricsServer;

    fn bind(address: UnixAddress) -> io::Result<MetricsServer> {
        MetricsServer::bind_unix(address, &talea::Registry::for_test().unwrap())
    }

    fn page(path: &Path) -> String {
        let mut client = UnixStream::connect(path).unwrap();
        client
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: any\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut page = String::new();
        client.read_to_string(&mut page).unwrap();
        page
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_socket_is_there_for_whom_it_is_meant_as_long_as_it_is_served() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.sock");
        let group = fs::metadata(folder.path()).unwrap().gid();
        for (address, expected) in [
            (UnixAddress::new(&path), 0o600),
            (UnixAddress::new(&path).group(group), 0o660),
            (UnixAddress { mode: 0o666, ..UnixAddress::new(&path) }, 0o666),
        ] {
            let server = bind(address).unwrap();
            assert_eq!(mode(&path), expected);
            assert!(page(&path).starts_with("HTTP/1.1 200 "));
            drop(server);
            assert!(!path.exists());
        }
    }

    #[test]
    fn what_a_dead_process_left_is_replaced_and_all_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let first = bind(UnixAddress::new(&path)).unwrap();
        let error = bind(UnixAddress::new(&path)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert!(error.to_string().contains("a living process listens there"), "{error}");
        assert!(page(&path).starts_with("HTTP/1.1 200 "), "it is the first one's still");
        // Another takes the place: it outlives the first.
        fs::remove_file(&path).unwrap();
        let second = bind(UnixAddress::new(&path)).unwrap();
        drop(first);
        assert!(page(&path).starts_with("HTTP/1.1 200 "));
        drop(second);

        let file = folder.path().join("file");
        fs::write(&file, "kept").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for (what, path, part) in [
            ("a file", file.clone(), "no socket is there"),
            ("a folder", folder.path().to_owned(), "no socket is there"),
            ("a link", link.clone(), "no socket is there"),
            ("no folder", folder.path().join("missing/metrics.sock"), "make the folder first"),
            ("too long", folder.path().join("x".repeat(120)), "at most 107 bytes"),
        ] {
            let error = bind(UnixAddress::new(&path)).unwrap_err().to_string();
            let names = error.contains(&format!("cannot listen on unix:{}", path.display()));
            assert!(names && error.contains(part), "{what}: {error}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
        assert!(link.is_symlink());
    }
}
