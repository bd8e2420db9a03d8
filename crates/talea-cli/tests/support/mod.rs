//! Set-up that several tests share.

// The binaries of their own use a part of it.
#![allow(dead_code)]

#[cfg(target_os = "linux")]
pub(crate) mod agent;
pub(crate) mod counting_server;
pub(crate) mod event_stream;
#[cfg(unix)]
pub(crate) mod items_api;
#[cfg(unix)]
pub(crate) mod keep_alive;
#[cfg(unix)]
pub(crate) mod prometheus;
#[cfg(target_os = "linux")]
pub(crate) mod region_folder;
pub(crate) mod sample_file;
pub(crate) mod stand_in;
#[cfg(unix)]
pub(crate) mod test_server;
#[cfg(unix)]
pub(crate) mod tls_client;
#[cfg(unix)]
pub(crate) mod web_config;

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The program under test.
pub(crate) const TALEA: &str = env!("CARGO_BIN_EXE_talea");

/// A scenario of one request, whose step is named `hello`.
pub(crate) const HELLO_SCENARIO: &str =
    "[[step]]\nname = \"hello\"\nmethod = \"GET\"\npath = \"/hello\"\n";

/// Runs the program, which must end by itself within a minute.
#[track_caller]
pub(crate) fn talea<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    let mut command = Command::new("timeout");
    let output = command.args(["60", TALEA]).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert_ne!(output.status.code(), Some(124), "it hangs: {output:?}");
    output
}

/// Waits until a condition holds, for a minute at most: a busy machine takes its time.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "waited for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends a process as Ctrl-C does.
pub(crate) fn interrupt(child: &Child) {
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
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
