//! Directories and files on tmpfs.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A directory on tmpfs that is removed when the test ends.
pub(crate) struct Shm(PathBuf);

impl Shm {
    pub(crate) fn new(name: &str) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let (process, n) = (std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let path = PathBuf::from(format!("/dev/shm/talea-test-{name}-{process}-{n}"));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("shop.talea")
    }
}

impl Drop for Shm {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes a file that its owner alone may write to, whatever the umask.
pub(crate) fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
    std::fs::write(&path, bytes).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
}
