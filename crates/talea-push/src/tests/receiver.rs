//! A receiver that keeps requests, and answers them by a script.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use prost::Message;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::remote_write::message::{Request, v1};

/// The longest that a test waits for what must come.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

/// How a request is answered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// As a receiver of the version that the request has: all is written.
    Take,
    /// A status, and lines of headers.
    Status(u16, &'static str),
    /// The connection is closed.
    Close,
    /// A response whose head is cut off.
    Half,
    /// A status and lines of headers, with a body of a length, of which so much is sent before the connection is closed.
    Body(u16, &'static str, usize, usize),
    /// There is no response.
    Nothing,
}

#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// Lines of the head in lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

#[derive(Default)]
struct State {
    script: VecDeque<Answer>,
    /// What comes behind the script.
    then: Option<Answer>,
    received: Vec<Received>,
    /// Connections that get no response.
    silent: Vec<Box<dyn Send>>,
}

/// A receiver on a port of its own. Its threads end with the process.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Receiver {
    /// One that answers so, and then takes everything.
    pub(crate) fn new(script: &[Answer]) -> Self {
        Self::with_tls(script, None)
    }

    /// One that speaks TLS, if there is a configuration of it.
    pub(crate) fn with_tls(script: &[Answer], tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = State { script: script.iter().copied().collect(), ..State::default() };
        let receiver = Self { address, state: Arc::new((Mutex::new(state), Condvar::new())) };
        let of_thread = receiver.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (receiver, stream) = (of_thread.clone(), stream.unwrap());
                let tls = tls.clone();
                thread::spawn(move || match tls {
                    None => receiver.serve(stream),
                    Some(tls) => {
                        let connection = ServerConnection::new(tls).unwrap();
                        receiver.serve(StreamOwned::new(connection, stream));
                    }
                });
            }
        });
        receiver
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/api/v1/write", self.address)
    }

    /// Answers so from now on.
    pub(crate) fn then(&self, answer: Answer) {
        self.state.0.lock().unwrap().then = Some(answer);
    }

    /// What it got so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.state.0.lock().unwrap().received.clone()
    }

    /// Waits until it got so many requests.
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Received> {
        let (state, changed) = &*self.state;
        let state = state.lock().unwrap();
        let (state, waited) =
            changed.wait_timeout_while(state, LONGEST, |it| it.received.len() < count).unwrap();
        assert!(!waited.timed_out(), "{} requests instead of {count}", state.received.len());
        state.received.clone()
    }

    fn serve<S: Read + Write + Send + 'static>(&self, stream: S) {
        let mut reader = BufReader::new(stream);
        while let Some(received) = read(&mut reader) {
            let (state, changed) = &*self.state;
            let mut state = state.lock().unwrap();
            let next = state.script.pop_front().or(state.then).unwrap_or(Answer::Take);
            let response = match next {
                Answer::Take => taken(&received),
                Answer::Status(status, headers) => respond(status, headers),
                Answer::Half => "HTTP/1.1 200 OK\r\nContent-".to_owned(),
                Answer::Body(status, headers, length, sent) => {
                    let head = format!(
                        "HTTP/1.1 {status} So\r\nContent-Length: {length}\r\n{headers}\r\n"
                    );
                    head + &"x".repeat(sent)
                }
                Answer::Close | Answer::Nothing => String::new(),
            };
            state.received.push(received);
            changed.notify_all();
            match next {
                Answer::Nothing => return state.silent.push(Box::new(reader)),
                Answer::Close => return,
                _ => drop(state),
            }
            // The client may have gone meanwhile.
            let stream = reader.get_mut();
            let is_sent = stream.write_all(response.as_bytes()).and_then(|()| stream.flush());
            if is_sent.is_err() || matches!(next, Answer::Half | Answer::Body(..)) {
                return;
            }
        }
    }
}

fn respond(status: u16, headers: &str) -> String {
    let length = if status == 204 { "" } else { "Content-Length: 0\r\n" };
    format!("HTTP/1.1 {status} So\r\n{length}{headers}\r\n")
}

/// The response of a receiver that knows the request's version, and wrote all of it.
fn taken(received: &Received) -> String {
    if !received.head.contains("write-version: 2.0.0") {
        return respond(204, "");
    }
    let request = received.v2();
    let all = || request.timeseries.iter();
    let counts = [
        ("Samples", all().map(|it| it.samples.len()).sum::<usize>()),
        ("Histograms", all().map(|it| it.histograms.len()).sum()),
        ("Exemplars", all().map(|it| it.exemplars.len()).sum()),
    ];
    let headers = counts
        .map(|(kind, count)| format!("X-Prometheus-Remote-Write-{kind}-Written: {count}\r\n"))
        .concat();
    respond(204, &headers)
}

fn read(from: &mut impl BufRead) -> Option<Received> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if from.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.parse().ok()?];
    from.read_exact(&mut body).ok()?;
    Some(Received { head, body })
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    fn message(&self) -> Vec<u8> {
        snap::raw::Decoder::new().decompress_vec(&self.body).unwrap()
    }

    pub(crate) fn v2(&self) -> Request {
        Request::decode(&*self.message()).unwrap()
    }

    pub(crate) fn v1(&self) -> v1::WriteRequest {
        v1::WriteRequest::decode(&*self.message()).unwrap()
    }
}
