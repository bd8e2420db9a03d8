//! What tests with real processes stand on: a directory on tmpfs, and this test
//! binary started again.

// Each test file uses a part of it.
#![allow(dead_code)]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory on tmpfs that goes with the test.
pub(crate) struct Shm(PathBuf);

impl Shm {
    pub(crate) fn new(name: &str) -> Self {
        let path = PathBuf::from(format!("/dev/shm/talea-test-{name}-{}", std::process::id()));
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

/// This test binary, to run one of its tests in a process of its own. Where it
/// is built for another processor, `TALEA_TEST_RUNNER` says what runs it.
pub(crate) fn again(test: &str) -> Command {
    let this = std::env::current_exe().unwrap();
    let runner = std::env::var("TALEA_TEST_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace();
    let mut command = match words.next() {
        Some(program) => {
            let mut command = Command::new(program);
            command.args(words).arg(this);
            command
        }
        None => Command::new(this),
    };
    command.args(["--exact", test, "--nocapture"]);
    command
}
