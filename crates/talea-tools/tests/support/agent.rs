//! The real `talea serve` as a process, and a client that asks it one thing at a time.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use super::{LONGEST, Running, TALEA, wait_for};

/// An agent that serves on a port of its own; it is killed when it is dropped.
pub(crate) struct Agent {
    process: Running,
    /// Where it listens, as `127.0.0.1:9465`.
    pub(crate) address: String,
    /// Whether clients have to speak TLS.
    pub(crate) is_encrypted: bool,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Agent {
    /// Starts one with arguments, which need no `--listen`. It panics with what the agent said if
    /// that ends before it listens.
    pub(crate) fn start<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Self {
        Self::by(Command::new(TALEA).arg("serve").args(arguments)).unwrap()
    }

    /// Likewise, by a command; an error says that it cannot be run.
    pub(crate) fn by(command: &mut Command) -> io::Result<Self> {
        let command = command.args(["--listen", "127.0.0.1:0"]).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let lines = Arc::new(Mutex::new(Vec::new()));
        let stderr = child.stderr.take().unwrap();
        let noted = lines.clone();
        thread::spawn(move || note(stderr, &noted));
        let process = Running(child);
        let mut agent = Self { process, address: String::new(), is_encrypted: false, lines };
        let line = agent.says("listening on ");
        let (_, url) = line.split_once("listening on ").unwrap();
        let (scheme, rest) = url.split_once("://").unwrap();
        agent.is_encrypted = scheme == "https";
        agent.address = rest.split_once('/').unwrap().0.to_owned();
        Ok(agent)
    }

    /// Its standard error until now, line by line.
    pub(crate) fn stderr(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// Waits for a line on standard error that has a part; the first such one.
    pub(crate) fn says(&self, part: &str) -> String {
        wait_for(|| {
            let lines = self.stderr();
            if let Some(line) = lines.iter().find(|line| line.contains(part)) {
                return Ok(line.clone());
            }
            // All lines of its standard error are known by then.
            let is_over = Arc::strong_count(&self.lines) == 1;
            assert!(!is_over || self.stderr().len() > lines.len(), "it ended: {lines:?}");
            Err(format!("it never said {part:?}, but {lines:?}"))
        })
    }

    /// Asks for a path, with headers as `Accept: text/plain`.
    pub(crate) fn get(&self, path: &str, headers: &[&str]) -> Answer {
        ask(&self.address, "GET", path, headers)
    }

    /// The body at `/metrics`, which has to be answered with a page.
    pub(crate) fn scrape(&self) -> String {
        let answer = self.get("/metrics", &[]);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.text()
    }

    /// Asks until an answer is as expected; that answer.
    pub(crate) fn until(&self, path: &str, is: impl Fn(&Answer) -> bool) -> Answer {
        wait_for(|| {
            let answer = self.get(path, &[]);
            if is(&answer) { Ok(answer) } else { Err((answer.text(), self.stderr())) }
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// Stops it by SIGTERM, and waits: its exit status.
    pub(crate) fn stop(mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.process.0), Signal::TERM).unwrap();
        wait_for(|| self.process.0.try_wait().unwrap().ok_or("it does not end")).code()
    }
}

fn note(stderr: ChildStderr, lines: &Mutex<Vec<String>>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        lines.lock().unwrap().push(line);
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The status line and the headers.
    pub(crate) head: String,
    /// As it was sent, but for its chunks, which are put together.
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find_map(|(n, value)| n.eq_ignore_ascii_case(name).then_some(value.trim()))
    }
}

/// Sends a request to the server at an address, over a connection of its own. It panics if the
/// answer is not whole.
pub(crate) fn ask(address: &str, method: &str, path: &str, headers: &[&str]) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONGEST)).unwrap();
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n"
    )
    .unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    let end = all.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8(all[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut answer = Answer { status, head, body: all.split_off(end + 4) };
    if answer.header("transfer-encoding") == Some("chunked") {
        answer.body = joined(&answer.body);
    } else if method != "HEAD" {
        let len = answer.header("content-length").map(|len| len.parse().unwrap());
        assert!(len.is_none_or(|len: usize| len == answer.body.len()), "it broke off");
    }
    answer
}

/// A body without the marks of its chunks.
fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = chunks.windows(2).position(|two| two == b"\r\n").expect("it broke off");
        let len = std::str::from_utf8(&chunks[..end]).unwrap();
        let len = usize::from_str_radix(len, 16).unwrap();
        if len == 0 {
            return body;
        }
        chunks = &chunks[end + 2..];
        body.extend_from_slice(chunks.get(..len).expect("it broke off"));
        chunks = &chunks[len + 2..];
    }
}
