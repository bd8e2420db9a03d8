//! `scripts/postgres` leaves nothing behind.

use crate::postgres::SCRIPT;
use crate::service::until;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The script beside `words`, in a folder that its server may enter too. Its signals have their
/// default actions: a shell that starts the tests in the background has SIGINT ignored, and a
/// shell script cannot trap a signal that was ignored when it started.
fn script(words: &[&str]) -> (Command, TempDir) {
    let temporary = tempfile::tempdir().unwrap();
    fs::set_permissions(temporary.path(), Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new("env");
    command
        .args(["--default-signal", SCRIPT])
        .args(words)
        .env("TMPDIR", temporary.path())
        .stdin(Stdio::null());
    (command, temporary)
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

/// The id of the server's process in `folder`.
fn server(folder: &Path) -> Pid {
    let data = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path().join("data");
    let text = fs::read_to_string(data.join("postmaster.pid")).unwrap();
    Pid::from_raw(text.lines().next().unwrap().parse().unwrap()).unwrap()
}

/// Starts `command`, whose first line says that it runs.
fn started(command: &mut Command) -> Child {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "runs\n");
    child
}

#[test]
fn the_exit_status_is_that_of_the_command() {
    let (mut command, temporary) = script(&["sh", "-c", "exit 7"]);
    assert_eq!(command.status().unwrap().code(), Some(7));
    assert!(is_empty(temporary.path()));
}

#[test]
fn a_signal_ends_the_command_and_the_server() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let (mut command, temporary) = script(&["sh", "-c", "echo runs; exec sleep 60"]);
        let mut child = started(&mut command);
        let server = server(temporary.path());
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal:?}");
        assert!(is_empty(temporary.path()), "{signal:?}");
        assert!(test_kill_process(server).is_err(), "{signal:?}: the server runs");
    }
}

#[test]
fn the_server_does_not_outlive_a_script_that_is_killed() {
    let (mut command, temporary) = script(&["sh", "-c", "echo runs; exec cat"]);
    let mut child = started(command.stdin(Stdio::piped()));
    let server = server(temporary.path());
    child.kill().unwrap();
    child.wait().unwrap();
    until(|| test_kill_process(server).is_err());
}

#[test]
fn two_at_once_have_a_server_each() {
    let children = [(); 2].map(|()| script(&["sh", "-c", "echo runs; exec cat"]));
    let mut running: Vec<_> = children
        .into_iter()
        .map(|(mut command, temporary)| (started(command.stdin(Stdio::piped())), temporary))
        .collect();
    assert_ne!(server(running[0].1.path()), server(running[1].1.path()));
    for (child, temporary) in &mut running {
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        assert!(is_empty(temporary.path()));
    }
}
