//! Set-up that several tests share.

// The binaries of their own use a part of it.
#![allow(dead_code)]

#[cfg(target_os = "linux")]
pub(crate) mod agent;
pub(crate) mod counting_server;
pub(crate) mod event_stream;
pub(crate) mod http2_client;
pub(crate) mod items_api;
pub(crate) mod keep_alive;
pub(crate) mod prometheus;
#[cfg(target_os = "linux")]
pub(crate) mod region_folder;
pub(crate) mod sample_file;
pub(crate) mod stand_in;
pub(crate) mod study_output;
pub(crate) mod test_server;
pub(crate) mod tls_client;
pub(crate) mod web_config;

use std::ffi::OsStr;
use std::fmt::Debug;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The program under test.
pub(crate) const TALEA: &str = env!("CARGO_BIN_EXE_talea");

/// A scenario of one request, whose step is named `hello`.
pub(crate) const HELLO_SCENARIO: &str =
    "[[step]]\nname = \"hello\"\nmethod = \"GET\"\npath = \"/hello\"\n";

/// Runs the program, which must end by itself within five minutes.
#[track_caller]
pub(crate) fn talea<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    let mut command = Command::new("timeout");
    let output =
        command.args(["300", TALEA]).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert_ne!(output.status.code(), Some(124), "it hangs: {output:?}");
    output
}

/// A program whose signals have their default actions, whatever started the tests: `nohup` has SIGHUP ignored,
/// and a shell has SIGINT and SIGQUIT ignored by what it starts in the background.
pub(crate) fn with_default_signals(program: &str) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal").arg(program);
    command
}

/// Starts the program, whose output is kept.
pub(crate) fn start<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Child {
    let mut command = with_default_signals(TALEA);
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs the program, which must succeed and report nothing: its output.
#[track_caller]
pub(crate) fn done(arguments: &[&str]) -> String {
    let output = talea(arguments);
    assert_eq!(assert_ends(&output, 0, &[]), "");
    stdout(&output)
}

/// Runs a program on what it reads from its standard input.
pub(crate) fn piped(command: &mut Command, input: &[u8]) -> Output {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // Its output may fill before it has read all; a program that will not read it has ended.
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().unwrap()
    })
}

/// The value of a series in a page of text, by its name and labels as they are written.
pub(crate) fn sample<T: FromStr>(page: &str, series: &str) -> Option<T> {
    page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

/// Asserts how a program ended, and that its standard error has these parts; all of that.
#[track_caller]
pub(crate) fn assert_ends(output: &Output, status: i32, parts: &[&str]) -> String {
    let stderr = stderr(output);
    let has_all = parts.iter().all(|part| stderr.contains(part));
    let is_as_expected = output.status.code() == Some(status) && has_all;
    assert!(is_as_expected, "expected {status} and {parts:?}: {output:?}");
    stderr
}

/// Asserts that a program ended with status 2 and said why in one line, which has each part once.
#[track_caller]
pub(crate) fn assert_refused(output: &Output, parts: &[&str]) {
    let stderr = assert_ends(output, 2, parts);
    assert!(stderr.starts_with("error: ") && stderr.trim_end().lines().count() == 1, "{stderr}");
    parts.iter().for_each(|part| assert_eq!(stderr.matches(part).count(), 1, "{part}: {stderr}"));
    assert_eq!(stdout(output), "");
}

/// When a wait for something that has to happen, and takes milliseconds, is given up.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

/// Tries until there is a value, for [`LONGEST`] at most: a busy machine takes its time.
#[track_caller]
pub(crate) fn wait_for<T, E: Debug>(mut attempt: impl FnMut() -> Result<T, E>) -> T {
    let began = Instant::now();
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(lacks) => assert!(began.elapsed() < LONGEST, "{lacks:?}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(|| holds().then_some(()).ok_or_else(|| format!("waited for: {what}")));
}

/// Ends the threads that run beside, also if this one panics.
pub(crate) struct End<'a>(pub(crate) &'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// A process that is killed when it is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Ends a process as Ctrl-C does.
pub(crate) fn interrupt(child: &Child) {
    signal(child, "INT");
}

/// Sends a signal to a process alone.
pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The JSON that a program printed.
#[track_caller]
pub(crate) fn printed_json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[track_caller]
pub(crate) fn json_file(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}
