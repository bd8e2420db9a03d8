//! Directories and files on tmpfs.

use std::fs::{File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
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

    /// The path of a region beside the file.
    pub(crate) fn sibling(&self, n: u32) -> PathBuf {
        self.0.join(format!("shop.talea.{n}"))
    }

    /// The names of the files in it, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
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

/// Opens a file to damage it.
pub(crate) fn open(path: impl AsRef<Path>) -> File {
    File::options().read(true).write(true).open(path).unwrap()
}

/// Opens a copy of a file, to damage that.
pub(crate) fn open_copy(path: impl AsRef<Path>, copy: impl AsRef<Path>) -> File {
    std::fs::copy(path, &copy).unwrap();
    open(copy)
}

/// The word at an offset.
pub(crate) fn word(file: &File, at: u64) -> u64 {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, at).unwrap();
    u64::from_le_bytes(bytes)
}

/// Writes a word.
pub(crate) fn put(file: &File, at: u64, word: u64) {
    file.write_all_at(&word.to_le_bytes(), at).unwrap();
}
