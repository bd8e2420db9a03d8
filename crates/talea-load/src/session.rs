//! A client's session with the server: one connection, reopened when it was closed.

use std::pin::pin;
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;

pub use crate::connection::Answer;
use crate::connection::{Connection, NoAnswer, Protocol, RequestError};
use crate::target::Target;
use crate::time_limit::TimeLimit;

/// How many fresh connections may be closed under an unsent request before it is given up.
const ATTEMPTS: usize = 3;

/// One connection to a target at a time.
pub struct Session {
    limit: TimeLimit,
    line: Line,
}

struct Line {
    target: Target,
    protocol: Protocol,
    connection: Option<Connection>,
    opened: u64,
    /// How long the connection took that was opened last, until somebody asks.
    connecting: Option<Duration>,
    /// Whether a request is out that has neither an answer nor a failure yet.
    waiting: bool,
}

impl Session {
    /// A session that connects with its first request, and waits `timeout` for a connection and an
    /// answer together. Needs a tokio runtime.
    pub fn new(target: Target, protocol: Protocol, timeout: Duration) -> Self {
        let (connection, connecting) = (None, None);
        let line = Line { target, protocol, connection, opened: 0, connecting, waiting: false };
        Self { limit: TimeLimit::new(timeout), line }
    }

    /// How many connections it has opened.
    pub fn opened(&self) -> u64 {
        self.line.opened
    }

    /// How long the connection took that was opened since the last call: with TLS, if there is any.
    pub fn take_connecting(&mut self) -> Option<Duration> {
        self.line.connecting.take()
    }

    /// Whether a request went out and [`Session::send`] was dropped before its end.
    pub fn is_waiting(&self) -> bool {
        self.line.waiting
    }

    /// Sends a request once, and reads the answer to the end of its body, which is kept if asked
    /// for.
    ///
    /// A request that a closing connection did not take is sent over the next one: that is its
    /// first sending. A request that went out is never sent again.
    /// Fails when there is no answer; the error says whether the request went out.
    pub async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
        keep_body: bool,
    ) -> Result<Answer, RequestError> {
        let Self { limit, line } = self;
        // Pinned where it is, a future is not there twice, which each client would pay for.
        let answer = limit.wait(pin!(line.send(Some(request), keep_body))).await;
        let answer = answer.unwrap_or(Err(RequestError::TimedOut { sent: line.waiting }));
        line.waiting = false;
        if answer.is_err() || !line.protocol.keeps_alive() {
            // The rest of this answer could be read as the answer to the next request.
            line.connection = None;
        }
        answer
    }
}

impl Line {
    async fn send(
        &mut self,
        mut request: Option<Request<Full<Bytes>>>,
        keep_body: bool,
    ) -> Result<Answer, RequestError> {
        for _ in 0..ATTEMPTS {
            let is_open = self.connection.as_mut().is_some_and(Connection::is_open);
            let connection = match &mut self.connection {
                Some(connection) if is_open => connection,
                other => {
                    let begun = Instant::now();
                    let stream = self.target.connect().await;
                    let stream =
                        stream.map_err(|error| RequestError::NotConnected(error.kind()))?;
                    let fresh = Connection::open(stream, self.protocol).await;
                    let fresh = fresh.map_err(|_| RequestError::ClosedBeforeRequest)?;
                    self.opened += 1;
                    self.connecting = Some(begun.elapsed());
                    other.insert(fresh)
                }
            };
            match connection.exchange(&mut request, keep_body, &mut self.waiting).await {
                Ok(answer) => return Ok(answer),
                Err(NoAnswer::Sent(trouble)) => return Err(trouble),
                Err(NoAnswer::Unsent) => self.connection = None,
            }
        }
        Err(RequestError::ClosedBeforeRequest)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::connect::{Trust, fetch};

    /// A server that answers each request with a body that has no end.
    fn endless() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    let _ = stream.read(&mut [0; 4096]);
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
                    while stream.write_all(&[b'x'; 1 << 16]).is_ok() {}
                });
            }
        });
        url
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_body_without_an_end_is_kept_up_to_a_bound() {
        let url = endless();
        let protocol = Protocol::Http1 { keep_alive: true };
        let mut session = Session::new(url.parse().unwrap(), protocol, Duration::from_secs(60));
        let request = Request::get("/").header("host", "a").body(Full::default()).unwrap();
        assert_eq!(session.send(request, true).await.unwrap_err(), RequestError::TooLong);
        let trust = Trust::of(None, false);
        let error = fetch(&url.parse().unwrap(), "*/*", trust).await.err().unwrap();
        assert_eq!(error.to_string(), "the answer is longer than 1 MiB");
    }
}
