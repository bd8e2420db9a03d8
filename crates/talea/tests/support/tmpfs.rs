//! A directory on tmpfs.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use talea::{Config, Registry};

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

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("shop.talea")
    }

    /// A small region in the file, as opened by a process of its own.
    pub(crate) fn opened(&self) -> Registry {
        Registry::open_with(self.file(), Config::with_len(4 << 20)).unwrap()
    }

    /// The values that a reader outside finds, of the families whose names are wanted.
    #[cfg(target_os = "linux")]
    pub(crate) fn outside(&self, wants: impl Fn(&str) -> bool) -> talea::Snapshot {
        let mut snapshot = talea::Snapshot::default();
        let reader = talea::outside::Reader::open(self.file()).unwrap();
        reader.snapshot_into(&mut snapshot, wants).unwrap();
        snapshot
    }
}

impl Drop for Shm {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
