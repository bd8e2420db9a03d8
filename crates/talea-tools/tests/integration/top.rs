//! `talea top`: the real program in a real terminal, which tmux emulates, on the real items API.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::items_api::ItemsApi;
use crate::support::region_folder::RegionFolder;
use crate::support::stand_in::{StandIn, answer};
use crate::support::{TALEA, assert_ends, stdout, talea, until};

/// A terminal with a shell in it, on a tmux server of its own, ended when it is dropped.
pub(super) struct Terminal(tempfile::TempDir);

impl Terminal {
    pub(super) fn new(width: u16, height: u16) -> Self {
        let terminal = Self(tempfile::tempdir().unwrap());
        let (width, height) = (width.to_string(), height.to_string());
        let shell = "env PS1=ready: HISTFILE= sh";
        let size = ["-x", &width, "-y", &height, shell];
        terminal.tmux(&[&["-f", "/dev/null", "new-session", "-d"], &size[..]].concat());
        terminal.shows("ready:");
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let socket = self.0.path().join("tmux");
        let output = Command::new("tmux").arg("-S").arg(socket).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(super) fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until the screen has a text; the whole screen then.
    #[track_caller]
    pub(super) fn shows(&self, text: &str) -> String {
        let mut screen = String::new();
        until(text, || {
            screen = self.screen();
            screen.contains(text)
        });
        screen
    }

    /// The program that the shell runs.
    fn child(&self) -> Pid {
        let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
        let shell = shell.trim();
        let path = format!("/proc/{shell}/task/{shell}/children");
        let children = std::fs::read_to_string(path).unwrap();
        Pid::from_raw(children.trim().parse().unwrap()).unwrap()
    }

    /// The settings of the terminal, written by `stty` to a file of their own.
    fn settings(&self, file: &str) -> String {
        let path = self.0.path().join(file);
        self.keys(&["clear; stty -g >", path.to_str().unwrap(), "Enter"]);
        let mut settings = String::new();
        until("the settings are written", || {
            settings = std::fs::read_to_string(&path).unwrap_or_default();
            settings.ends_with('\n')
        });
        settings
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let socket = self.0.path().join("tmux");
        let _ = Command::new("tmux").arg("-S").arg(socket).arg("kill-server").output();
    }
}

fn top(source: &str, more: &[&str]) -> Output {
    talea([&["top", source], more].concat())
}

fn text(output: &Output) -> String {
    assert_ends(output, 0, &[]);
    stdout(output)
}

fn command(region: &Path) -> String {
    format!("{TALEA} top --every 100ms {}; echo ended with $?", region.display())
}

#[test]
fn a_pipe_gets_the_table_once_from_any_source() {
    let folder = RegionFolder::new();
    let region = folder.region();
    let mut service = ItemsApi::start(Some(&region));
    service.make_and_list(3);
    let url = format!("http://{}/metrics", service.metrics);
    let in_memory = ItemsApi::start(None);
    in_memory.make_and_list(3);
    let pid = in_memory.pid().to_string();
    for source in [region.to_str().unwrap(), &url, &pid] {
        let shown = text(&top(source, &["--every", "50ms"]));
        let line = |name: &str| shown.lines().find(|line| line.contains(name)).unwrap().to_owned();
        assert!(line(" POST /api/items ").trim_end().ends_with(" 3"), "{source}: {shown}");
        assert!(line(" all ").trim_end().ends_with(" 6"), "{source}: {shown}");
    }
    // The dead too.
    service.kill();
    assert!(text(&top(region.to_str().unwrap(), &["--once", "--every", "50ms"])).contains(" all "));
    for (source, reason) in [
        ("/no/such/file", "/no/such/file"),
        ("http://127.0.0.1:1/metrics", "cannot be reached"),
        ("4194304", "process 4194304"),
    ] {
        assert_ends(&top(source, &[]), 2, &[reason]);
    }
}

#[test]
fn a_service_is_watched_until_it_dies_and_longer() {
    let folder = RegionFolder::new();
    let region = folder.region();
    let mut service = ItemsApi::start(Some(&region));
    service.make_and_list(5);
    let terminal = Terminal::new(80, 24);
    let before = terminal.settings("before");
    terminal.keys(&[&command(&region), "Enter"]);
    let screen = terminal.shows("1 process ");
    assert!(screen.contains("REQ/S▼") && screen.contains("POST /api/items "), "{screen}");
    assert!(screen.lines().last().unwrap().starts_with("q quit"), "{screen}");

    service.make_and_list(2);
    terminal.keys(&["/", "PATCH", "Enter"]);
    let screen = terminal.shows("filter: patch");
    assert!(!screen.contains("POST /api/items "), "{screen}");
    terminal.keys(&["Escape"]);
    // With what comes at once after it, Escape would be another key.
    terminal.shows("q quit");
    terminal.keys(&["/", "post", "Enter", "Enter"]);
    assert!(terminal.shows("7 since its series began").contains("2xx"));
    terminal.keys(&["?"]);
    terminal.shows("sort by the next column");
    terminal.keys(&["Escape"]);
    terminal.shows("filter: post");
    terminal.tmux(&["resize-window", "-x", "120", "-y", "12"]);
    terminal.shows("P90");

    service.kill();
    let screen = terminal.shows("no process lives");
    assert!(screen.contains("POST /api/items "), "what it counted stays: {screen}");
    terminal.keys(&["q"]);
    let screen = terminal.shows("ended with 0");
    assert!(!screen.contains("REQ/S"), "{screen}");
    terminal.tmux(&["resize-window", "-x", "80", "-y", "24"]);
    assert_eq!(terminal.settings("after"), before);
}

#[test]
fn the_terminal_is_as_it_was_after_a_signal() {
    let folder = RegionFolder::new();
    let region = folder.region();
    let _service = ItemsApi::start(Some(&region));
    let terminal = Terminal::new(80, 24);
    let before = terminal.settings("before");
    for (after, signal) in [("terminated", Signal::TERM), ("interrupted", Signal::INT)] {
        terminal.keys(&["clear; ", &command(&region), "Enter"]);
        terminal.shows("REQ/S▼");
        kill_process(terminal.child(), signal).unwrap();
        let screen = terminal.shows("ended with 130");
        assert!(!screen.contains("REQ/S"), "{screen}");
        assert_eq!(terminal.settings(after), before);
    }
}

#[test]
fn a_window_covers_as_much_time_as_it_is_asked_to() {
    let requests = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&requests);
    let family = "http_request_duration_seconds";
    let service = StandIn::counting(
        move |_| {
            let count = counted.load(SeqCst);
            format!("# TYPE {family} histogram\n{family}_count{{route=\"/a\"}} {count}\n")
        },
        |_, request| answer(request),
    );
    let windows = ["1h", "1s"].map(|window| {
        let terminal = Terminal::new(80, 24);
        let command = command(Path::new(&service.metrics_url()));
        terminal
            .keys(&[&command.replace("--every", &format!("--window {window} --every")), "Enter"]);
        terminal.shows("/a ");
        terminal
    });
    requests.store(1_000_000, SeqCst);
    for terminal in &windows {
        until("there were requests", || !terminal.screen().contains("\n0 req/s"));
    }
    let [long, short] = windows;
    short.shows("\n0 req/s");
    // Also if it is read once more.
    for key in ["?", "Escape"] {
        long.keys(&[key]);
        long.shows(if key == "?" { "sort by" } else { "q quit  ? help" });
    }
    assert!(!long.screen().contains("\n0 req/s"), "{}", long.screen());
}

#[test]
fn keys_have_their_effect_while_a_service_does_not_answer() {
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/metrics", service.local_addr().unwrap());
    let (send, stalled) = mpsc::channel();
    thread::spawn(move || {
        let mut connections = service.incoming().map(Result::unwrap);
        let mut first = connections.next().unwrap();
        let _ = first.read(&mut [0; 1024]);
        let _ = first.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n# a page.\n");
        connections.for_each(|connection| send.send(connection).unwrap());
    });
    let terminal = Terminal::new(80, 24);
    terminal.keys(&[&command(Path::new(&url)), "Enter"]);
    terminal.shows("REQ/S▼");
    let mut stalled = stalled.recv().unwrap();
    terminal.keys(&["?"]);
    terminal.shows("sort by the next column");
    stalled.set_nonblocking(true).unwrap();
    let read = stalled.read_to_end(&mut Vec::new()).map_err(|error| error.kind());
    assert_eq!(read, Err(ErrorKind::WouldBlock), "the reading goes on");
    terminal.keys(&["q"]);
    terminal.shows("ended with 0");
}
