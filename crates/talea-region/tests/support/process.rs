//! This test binary, started again to run one function in a process of its own: the body of that process,
//! and no claim, so the function is an ignored test. A body does nothing without [`arguments`], as when all
//! ignored tests are run.

use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::{fs::PermissionsExt, process::CommandExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const ARGUMENTS: &str = "TALEA_TEST_ARGUMENTS";

/// Starts a test of a module in a process of its own: see `again!`. If the binary is
/// built for another processor, `TALEA_TEST_RUNNER` names the program that runs it.
pub(crate) fn again(module: &str, test: &str, arguments: &[&OsStr]) -> Command {
    // The first part of a module's path is the binary.
    let test = match module.split_once("::") {
        Some((_, module)) => format!("{module}::{test}"),
        None => test.to_owned(),
    };
    let runner = std::env::var("TALEA_TEST_RUNNER").unwrap_or_default();
    let this = std::env::current_exe().unwrap();
    let mut words = runner.split_whitespace().map(OsString::from).chain([this.into()]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(["--ignored", "--exact", &test, "--nocapture"]);
    command.env(ARGUMENTS, arguments.join(OsStr::new("\n")));
    command
}

/// The arguments of a body; `None` if nobody started it as one.
pub(crate) fn arguments<const N: usize>() -> Option<[String; N]> {
    let all = std::env::var(ARGUMENTS).ok()?;
    let all: Vec<String> = all.split('\n').map(str::to_owned).collect();
    Some(all.try_into().expect("as many as the body takes"))
}

/// Waits in a body for a line of its input, or the end of it.
pub(crate) fn wait_for_input() {
    let _ = std::io::stdin().lines().next();
}

/// A command that another program starts, which gets its words last.
pub(crate) fn started_by(program: &str, arguments: &[&str], command: &Command) -> Command {
    let mut outer = Command::new(program);
    outer.args(arguments).arg(command.get_program()).args(command.get_args());
    outer.envs(environment(command));
    outer
}

fn environment(command: &Command) -> impl Iterator<Item = (&OsStr, &OsStr)> {
    command.get_envs().filter_map(|(name, value)| Some((name, value?)))
}

/// A command that a shell starts when it has done something else.
pub(crate) fn by_shell(script: &str, command: &Command) -> Command {
    started_by("sh", &["-c", &format!("{script} && exec \"$@\""), "sh"], command)
}

/// The output of a command that ends well.
pub(crate) fn output_of(command: &mut Command) -> String {
    let done = command.stdin(Stdio::null()).output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(done.status.success(), "{command:?}: {}: {said}", done.status);
    said
}

/// The rest of the first line that begins so.
pub(crate) fn line_of<'a>(said: &'a str, beginning: &str) -> &'a str {
    let mut lines = said.lines().filter_map(|line| line.strip_prefix(beginning));
    lines.next().unwrap_or_else(|| panic!("no line begins with {beginning:?}: {said}"))
}

/// A process with pipes to and from this one. It is killed with its owner.
pub(crate) struct Process {
    child: Child,
    /// Not the child's any more: waiting for it would close its input, which a process that it made
    /// may still read.
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let input = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, input, lines }
    }

    /// Starts one and waits for a line that begins so.
    pub(crate) fn start_until(beginning: &str, command: &mut Command) -> Self {
        let mut process = Self::start(command);
        process.wait_for(beginning);
        process
    }

    /// Waits for a line that begins so, and returns the rest of it.
    pub(crate) fn wait_for(&mut self, beginning: &str) -> String {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        let found = lines.find_map(|line| line.strip_prefix(beginning).map(str::to_owned));
        found.unwrap_or_else(|| panic!("it never said {beginning:?}"))
    }

    pub(crate) fn write_line(&mut self) {
        self.input.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends its input, and waits until it has ended well.
    pub(crate) fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success(), "{:?}", self.child);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A user and a group that are neither root nor those of the tests.
pub(crate) const NOBODY: u32 = 65_534;

/// A command as another user, who runs a copy of this binary: root's folders are closed to them.
pub(crate) struct AsUser {
    pub(crate) command: Command,
    /// The folder of the copy.
    folder: PathBuf,
}

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
        other.args(&words[1..]).envs(environment(command));
        other.uid(user).gid(user).current_dir("/");
        Self { command: other, folder }
    }
}

impl Drop for AsUser {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
