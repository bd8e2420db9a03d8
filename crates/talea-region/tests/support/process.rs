//! This test binary, started again to run one test in a process of its own.

#[cfg(target_os = "linux")]
use std::fs::Permissions;
use std::io::{BufRead, BufReader};
#[cfg(target_os = "linux")]
use std::os::unix::{fs::PermissionsExt, process::CommandExt};
#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Starts a test of a module in a process of its own: see `again!`. If the binary is
/// built for another processor, `TALEA_TEST_RUNNER` names the program that runs it.
pub(crate) fn again(module: &str, test: &str) -> Command {
    // The first part of a module's path is the binary.
    let test = match module.split_once("::") {
        Some((_, module)) => format!("{module}::{test}"),
        None => test.to_owned(),
    };
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
    command.args(["--exact", &test, "--nocapture"]);
    command
}

/// Starts a process and waits until it prints a line that ends with `said`. Its input stays open.
pub(crate) fn start_until(said: &str, command: &mut Command) -> Child {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.ends_with(said)), "it never said {said:?}");
    child
}

/// A command as another user, who runs a copy of this binary: root's folders are closed to them.
#[cfg(target_os = "linux")]
pub(crate) struct AsUser {
    pub(crate) command: Command,
    /// The folder of the copy.
    folder: PathBuf,
}

#[cfg(target_os = "linux")]
impl AsUser {
    pub(crate) fn new(command: &Command, user: u32) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let (process, n) = (std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let folder = std::env::temp_dir().join(format!("talea-test-user-{process}-{n}"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        let this = std::env::current_exe().unwrap();
        let copy = folder.join("tests");
        // A file cannot be run while a process has it open for writing, and children that other tests
        // start at this instant have all files of this process. So another process copies it.
        if std::fs::hard_link(&this, &copy).is_err() {
            assert!(Command::new("cp").arg(&this).arg(&copy).status().unwrap().success());
        }
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<_> =
            words.map(|word| if word == this { copy.as_os_str() } else { word }).collect();
        let mut other = Command::new(words[0]);
        other.args(&words[1..]).uid(user).gid(user).current_dir("/");
        Self { command: other, folder }
    }
}

#[cfg(target_os = "linux")]
impl Drop for AsUser {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
