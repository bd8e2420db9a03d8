//! A client's session with the server: one connection, reopened when it was closed.

use std::pin::pin;
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;

use crate::connect::Stream;
pub use crate::connection::{Answer, Keep};
use crate::connection::{Connection, NoAnswer, Protocol, RequestError};
use crate::progress::Progress;
use crate::target::Target;
use crate::time_limit::TimeLimit;
use crate::websocket::converse;

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
    progress: Progress,
}

impl Session {
    /// A session that connects with its first request, and waits `timeout` for a connection and an
    /// answer together. Needs a tokio runtime.
    pub fn new(target: Target, protocol: Protocol, timeout: Duration) -> Self {
        let (connection, connecting) = (None, None);
        let progress = Progress::default();
        let line = Line { target, protocol, connection, opened: 0, connecting, progress };
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

    /// How far the last request came: of one that timed out, or whose [`Session::send`] was dropped.
    pub(super) fn progress(&self) -> Progress {
        self.line.progress
    }

    /// Sends a request once, and reads the answer as far as `keep` says.
    ///
    /// A request that a closing connection did not take is sent over the next one: that is its
    /// first sending. A request that went out is never sent again.
    /// Fails when there is no answer; the error says whether the request went out.
    pub async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
        keep: Keep,
    ) -> Result<Answer, RequestError> {
        let Self { limit, line } = self;
        line.progress = Progress::default();
        // Pinned where it is, a future is not there twice, which each client would pay for.
        let answer = limit.wait(pin!(line.send(Some(request), keep))).await;
        let answer = answer.unwrap_or_else(|| {
            Err(RequestError::TimedOut { sent: line.progress.sent_at.is_some() })
        });
        if answer.is_err() || !line.protocol.keeps_alive() || matches!(keep, Keep::Events(_)) {
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
        keep: Keep,
    ) -> Result<Answer, RequestError> {
        if let (Keep::Messages(expected), Some(request)) = (keep, &request) {
            return self.converse(request, expected).await;
        }
        for _ in 0..ATTEMPTS {
            let is_open = self.connection.as_mut().is_some_and(Connection::is_open);
            let connection = match &mut self.connection {
                Some(connection) if is_open => connection,
                other => {
                    let begun = Instant::now();
                    self.progress.connecting_since = Some(begun);
                    let stream = connected(&self.target).await?;
                    let fresh = Connection::open(stream, self.protocol).await;
                    let fresh = fresh.map_err(|_| RequestError::ClosedBeforeRequest)?;
                    self.opened += 1;
                    self.connecting = Some(begun.elapsed());
                    self.progress.connecting_since = None;
                    other.insert(fresh)
                }
            };
            match connection.exchange(&mut request, keep, &mut self.progress).await {
                Ok(answer) => return Ok(answer),
                Err(NoAnswer::Sent(trouble)) => return Err(trouble),
                Err(NoAnswer::Unsent) => self.connection = None,
            }
        }
        Err(RequestError::ClosedBeforeRequest)
    }

    /// Opens a WebSocket over a connection of its own.
    async fn converse(
        &mut self,
        request: &Request<Full<Bytes>>,
        expected: u64,
    ) -> Result<Answer, RequestError> {
        let begun = Instant::now();
        self.progress.connecting_since = Some(begun);
        let stream = connected(&self.target).await?;
        self.opened += 1;
        self.connecting = Some(begun.elapsed());
        self.progress.connecting_since = None;
        converse(stream, request, expected, &mut self.progress).await
    }
}

async fn connected(target: &Target) -> Result<Stream, RequestError> {
    target.connect().await.map_err(|error| RequestError::NotConnected(error.kind()))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::fetch::fetch;

    /// What a server does with a connection.
    type Serve = fn(&mut TcpStream);

    fn server(answer: Serve) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    answer(&mut stream);
                });
            }
        });
        url
    }

    fn endless(stream: &mut TcpStream) {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'x'; 1 << 16]).is_ok() {}
    }

    /// The type of a frame of HTTP/2 (RFC 9113, section 6).
    const HEADERS: u8 = 1;

    /// Reads a frame, and gives its type.
    fn next_frame(stream: &mut TcpStream) -> u8 {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        stream.read_exact(&mut vec![0; len as usize]).unwrap();
        head[3]
    }

    /// Waits for the first request of a connection of HTTP/2, behind the preface.
    fn begin_http2(stream: &mut TcpStream) {
        let settings = b"\0\0\0\x04\0\0\0\0\0";
        let _ = stream.write_all(settings);
        stream.read_exact(&mut [0; 24]).unwrap();
        while next_frame(stream) != HEADERS {}
    }

    /// Over HTTP/2, sends some frames once a request has come.
    fn http2_frames(stream: &mut TcpStream, frames: &[&[u8]]) {
        begin_http2(stream);
        let _ = stream.write_all(&frames.concat());
        let _ = stream.read_to_end(&mut Vec::new());
    }

    /// The head of an answer in HPACK: 200.
    const OK_HEAD: &[u8] = b"\0\0\x01\x01\x04\0\0\0\x01\x88";
    /// With a content length of 4, and of 10.
    const OK_HEAD_4: &[u8] = b"\0\0\x05\x01\x04\0\0\0\x01\x88\x0f\x0d\x014";
    const OK_HEAD_10: &[u8] = b"\0\0\x06\x01\x04\0\0\0\x01\x88\x0f\x0d\x0210";
    const DATA: &[u8] = b"\0\0\x04\0\0\0\0\0\x01half";
    const LAST_DATA: &[u8] = b"\0\0\x04\0\x01\0\0\0\x01rest";
    const NO_ERROR: &[u8] = b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\0";
    const REFUSED: &[u8] = b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x07";
    const CANCEL: &[u8] = b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08";

    /// Over HTTP/2, answers one request, and says before that it takes no further ones.
    fn one_answer(stream: &mut TcpStream) {
        begin_http2(stream);
        let go_away = b"\0\0\x08\x07\0\0\0\0\0\0\0\0\x01\0\0\0\0";
        let head = b"\0\0\x01\x01\x05\0\0\0\x01\x88";
        let _ = stream.write_all(&[&go_away[..], head].concat());
        let _ = stream.read_to_end(&mut Vec::new());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_connection_that_takes_no_further_requests_is_replaced() {
        let url = server(one_answer).parse().unwrap();
        // On the thread of its connections, as each client is.
        let client = tokio::spawn(async {
            let mut session = Session::new(url, Protocol::Http2, Duration::from_secs(60));
            for opened in 1..=20 {
                let request = Request::get("http://a/").body(Full::default()).unwrap();
                assert!(session.send(request, Keep::Nothing).await.is_ok(), "{opened}");
                assert_eq!(session.opened(), opened);
            }
        });
        client.await.unwrap();
    }

    #[tokio::test]
    async fn an_answer_over_http2_ends_with_its_stream_and_with_nothing_else() {
        let cases: [(Serve, Result<u64, &str>); 12] = [
            (|to| http2_frames(to, &[OK_HEAD, DATA, LAST_DATA]), Ok(8)),
            // The server does not want the rest of the request (RFC 9113, 8.1).
            (|to| http2_frames(to, &[OK_HEAD, DATA, LAST_DATA, NO_ERROR]), Ok(8)),
            (
                |to| http2_frames(to, &[OK_HEAD, NO_ERROR]),
                Err("reset the stream in the body of the response"),
            ),
            (
                |to| http2_frames(to, &[OK_HEAD, DATA, NO_ERROR]),
                Err("reset the stream in the body of the response"),
            ),
            (
                |to| http2_frames(to, &[OK_HEAD_10, NO_ERROR]),
                Err("reset the stream in the body of the response"),
            ),
            (
                |to| http2_frames(to, &[OK_HEAD_10, DATA, NO_ERROR]),
                Err("reset the stream in the body of the response"),
            ),
            (
                |to| http2_frames(to, &[OK_HEAD_4, DATA, NO_ERROR]),
                Err("reset the stream in the body of the response"),
            ),
            (|to| http2_frames(to, &[OK_HEAD, DATA, CANCEL]), Err("reset the stream (CANCEL)")),
            (|to| http2_frames(to, &[REFUSED]), Err("reset the stream (REFUSED_STREAM)")),
            (|to| http2_frames(to, &[NO_ERROR]), Err("reset the stream (NO_ERROR)")),
            // Shorter than stated.
            (|to| http2_frames(to, &[OK_HEAD_10, LAST_DATA]), Err("was not HTTP")),
            (
                |to| {
                    begin_http2(to);
                    let _ = to.write_all(OK_HEAD);
                },
                Err("the connection was closed in the body of the response"),
            ),
        ];
        for (n, (answer, expected)) in cases.into_iter().enumerate() {
            for keep in [Keep::Nothing, Keep::Body] {
                let url = server(answer).parse().unwrap();
                let mut session = Session::new(url, Protocol::Http2, Duration::from_secs(60));
                let request = Request::get("http://a/").body(Full::default()).unwrap();
                let answer = session.send(request, keep).await;
                match (answer, expected) {
                    (Ok(answer), Ok(bytes)) => assert_eq!(answer.bytes, bytes, "{n}"),
                    (Err(error), Err(words)) => {
                        assert!(error.to_string().contains(words), "{n}: {error}");
                        assert!(error.was_sent(), "{n}");
                    }
                    (answer, _) => panic!("{n}: {answer:?}"),
                }
            }
        }
    }

    #[tokio::test]
    async fn a_head_that_is_too_long_is_http_all_the_same() {
        let url = server(|stream| {
            let _ = stream.read(&mut [0; 4096]);
            let head = format!("HTTP/1.1 204 No Content\r\n{}\r\n", "x: y\r\n".repeat(101));
            let _ = stream.write_all(head.as_bytes());
        });
        let protocol = Protocol::Http1 { keep_alive: true };
        let mut session = Session::new(url.parse().unwrap(), protocol, Duration::from_secs(60));
        let request = Request::get("/").header("host", "a").body(Full::default()).unwrap();
        assert_eq!(
            session.send(request, Keep::Nothing).await.unwrap_err(),
            RequestError::HeadTooLong
        );
    }

    /// Answers a request with a head and then the same bytes for ever.
    fn forever(stream: &mut TcpStream, head: &[u8], bytes: &[u8]) {
        let _ = stream.write_all(head);
        let many = bytes.repeat((1 << 16) / bytes.len());
        while stream.write_all(&many).is_ok() {}
    }

    fn http1_forever(stream: &mut TcpStream, head: &str, bytes: &str) {
        let _ = stream.read(&mut [0; 4096]);
        forever(stream, head.as_bytes(), bytes.as_bytes());
    }

    fn http2_forever(stream: &mut TcpStream, head: &[u8], frame: &[u8]) {
        begin_http2(stream);
        let mut unread = stream.try_clone().unwrap();
        std::thread::spawn(move || std::io::copy(&mut unread, &mut std::io::sink()));
        forever(stream, head, frame);
    }

    const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

    #[test]
    fn a_server_that_always_has_bytes_ready_does_not_hold_a_request() {
        let http1 = Protocol::Http1 { keep_alive: true };
        let servers: [(&str, Protocol, Serve); 11] = [
            ("interim heads", http1, |to| {
                http1_forever(to, "", "HTTP/1.1 103 Early Hints\r\n\r\n")
            }),
            ("headers", http1, |to| http1_forever(to, "HTTP/1.1 200 OK\r\n", "a: b\r\n")),
            ("one header", http1, |to| http1_forever(to, "HTTP/1.1 200 OK\r\na: ", "b")),
            ("blank lines", http1, |to| http1_forever(to, "", "\r\n")),
            ("trailers", http1, |to| http1_forever(to, &format!("{CHUNKED}0\r\n"), "a: b\r\n")),
            ("a chunk's extension", http1, |to| http1_forever(to, &format!("{CHUNKED}1;"), "a")),
            ("chunks", http1, |to| http1_forever(to, CHUNKED, "1;a=b\r\nx\r\n")),
            ("a body", http1, |to| http1_forever(to, "HTTP/1.1 200 OK\r\n\r\n", "x")),
            // 103 in HPACK, as a literal; it does not end the stream.
            ("interim heads", Protocol::Http2, |to| {
                http2_forever(to, b"", b"\0\0\x05\x01\x04\0\0\0\x01\x08\x03103");
            }),
            ("empty data", Protocol::Http2, |to| {
                http2_forever(to, b"\0\0\x01\x01\x04\0\0\0\x01\x88", b"\0\0\0\0\0\0\0\0\x01");
            }),
            ("pings", Protocol::Http2, |to| {
                http2_forever(to, b"", b"\0\0\x08\x06\0\0\0\0\0\0\0\0\0\0\0\0\0");
            }),
        ];
        for (bytes, protocol, answer) in servers {
            let (send, ended) = std::sync::mpsc::channel();
            let target: Target = server(answer).parse().unwrap();
            std::thread::spawn(move || {
                let mut runtime = tokio::runtime::Builder::new_multi_thread();
                let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
                let client = runtime.spawn(async move {
                    let mut session = Session::new(target, protocol, Duration::from_millis(100));
                    let request = Request::get("http://a/").header("host", "a");
                    session
                        .send(request.body(Full::default()).unwrap(), Keep::Nothing)
                        .await
                        .map(|_| ())
                });
                let _ = send.send(runtime.block_on(client).unwrap());
                runtime.shutdown_background();
            });
            let result = ended.recv_timeout(Duration::from_secs(60));
            let result = result.unwrap_or_else(|_| panic!("{bytes} over {protocol}: no end"));
            assert!(result.is_err(), "{bytes} over {protocol}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_body_without_an_end_is_kept_up_to_a_bound() {
        let url = server(endless);
        let protocol = Protocol::Http1 { keep_alive: true };
        let mut session = Session::new(url.parse().unwrap(), protocol, Duration::from_secs(60));
        let request = Request::get("/").header("host", "a").body(Full::default()).unwrap();
        assert_eq!(session.send(request, Keep::Body).await.unwrap_err(), RequestError::TooLong);
        let error = fetch(&url.parse().unwrap(), "*/*").await.err().unwrap();
        assert_eq!(error.to_string(), "the response is longer than 1 MiB");
    }
}
