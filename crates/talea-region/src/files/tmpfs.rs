//! Files on tmpfs: made without a name, and moved aside by one process at a time.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::trust;
use crate::memory::mapping::checked;

/// How long a start waits for another that moves the same file aside, which takes far less.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether `directory` is on tmpfs, where a written page stays in memory.
pub(crate) fn is_tmpfs(directory: &Path) -> io::Result<bool> {
    let path = std::ffi::CString::new(directory.as_os_str().as_bytes())?;
    // SAFETY: statfs is plain integers, for which zero is a valid value.
    let mut found: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path is NUL-terminated, the result is ours to write.
    checked(unsafe { libc::statfs(path.as_ptr(), &mut found) })?;
    Ok(found.f_type as i64 == libc::TMPFS_MAGIC)
}

/// An empty file in `directory` without a name, so that no process can open it before it is
/// complete and has its mode.
pub(crate) fn unnamed(directory: &Path) -> io::Result<File> {
    let options = &mut OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE).open(directory)
}

/// Runs `work` under a lock of the file. `None` if the path names no file, or names another one
/// meanwhile. `ResourceBusy` if another process has the file locked for as long as a start may
/// take.
pub(crate) fn alone_with<T>(path: &Path, work: impl FnOnce() -> T) -> io::Result<Option<T>> {
    let opened =
        OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let end = Instant::now() + PATIENCE;
    // SAFETY: a call on an open descriptor with integers only. The lock goes
    // when the file is closed, at the end of this function or of the process.
    let lock = || unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    while let Err(error) = checked(lock()) {
        match error.kind() {
            io::ErrorKind::Interrupted => {}
            // Any process that may read the file can hold the lock, for any time.
            io::ErrorKind::WouldBlock if Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(5));
            }
            io::ErrorKind::WouldBlock => return Err(io::ErrorKind::ResourceBusy.into()),
            _ => return Err(error),
        }
    }
    Ok(trust::names(path, &file).then(work))
}
