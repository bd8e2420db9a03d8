//! Support for tests with real processes: a directory on tmpfs, and this test binary started again.

use std::path::PathBuf;
use std::process::Command;

/// A directory on tmpfs of one test's own, removed at its end.
pub(crate) struct Shm(PathBuf);

impl Shm {
    pub(crate) fn new(name: &str) -> Self {
        let path = PathBuf::from(format!("/dev/shm/talea-test-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
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

/// This test binary, to run one of its tests in a process of its own. Where it is built for
/// another processor, `TALEA_TEST_RUNNER` says what runs it.
pub(crate) fn again(test: &str) -> Command {
    let runner = std::env::var("TALEA_TEST_RUNNER").unwrap_or_default();
    let this = std::env::current_exe().unwrap();
    let mut words = runner.split_whitespace().map(Into::into).chain([this.into_os_string()]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(["--exact", test, "--nocapture"]);
    command
}
