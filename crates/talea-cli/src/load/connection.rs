//! One connection, driven by the task that uses it.
//!
//! hyper hands out a sender and a driver. The driver usually gets a task of its own; here the client
//! waits for its one answer anyway, so it drives the connection itself and no request crosses
//! threads.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::{TrySendError, http1, http2};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

use crate::connect::Stream;

/// The protocol that a load speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1 {
        /// Whether a connection serves more than one request.
        keep_alive: bool,
    },
    /// HTTP/2, with prior knowledge where there is no TLS to agree on it.
    Http2,
}

impl Protocol {
    /// Whether a connection serves more than one request.
    pub fn keeps_alive(self) -> bool {
        self != Self::Http1 { keep_alive: false }
    }

    /// What TLS calls it (RFC 7301).
    pub fn alpn(self) -> &'static str {
        match self {
            Self::Http1 { .. } => "http/1.1",
            Self::Http2 => "h2",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http1 { keep_alive: true } => "HTTP/1.1",
            Self::Http1 { keep_alive: false } => "HTTP/1.1 without keep-alive",
            Self::Http2 => "HTTP/2",
        })
    }
}

/// What reads and writes, whichever protocol it is.
type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An open connection.
pub(super) struct Connection {
    sender: Sender,
    /// None once it has ended, which is when the connection is closed.
    driver: Option<Driver>,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

type Refused = TrySendError<Request<Full<Bytes>>>;

impl Sender {
    async fn ready(&mut self) -> Result<(), hyper::Error> {
        match self {
            Self::Http1(sender) => sender.ready().await,
            Self::Http2(sender) => sender.ready().await,
        }
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Refused> {
        match self {
            Self::Http1(sender) => sender.try_send_request(request).await,
            Self::Http2(sender) => sender.try_send_request(request).await,
        }
    }

    fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }
}

/// An answer that was read to its end.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its body, where it was asked for; empty otherwise.
    pub body: Bytes,
    /// From the start of the request to the end of the body.
    pub took: Duration,
    /// When that was.
    pub at: Instant,
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// No connection could be opened, so that nothing was sent.
    NotConnected(io::ErrorKind),
    /// The server closed each fresh connection before the request, so that nothing was sent.
    ClosedBeforeRequest,
    /// The connection ended before the answer's head.
    ClosedBeforeAnswer,
    /// The connection ended before the end of the answer's body.
    ClosedInBody,
    /// What came back is not HTTP.
    NotHttp,
    /// Reading or writing failed otherwise.
    Broken(io::ErrorKind),
    /// The connection or the answer took longer than the limit.
    TimedOut {
        /// Whether the request had been sent.
        sent: bool,
    },
}

impl Trouble {
    /// Whether the request was sent, so that the server may have received it.
    pub fn was_sent(self) -> bool {
        !matches!(
            self,
            Trouble::NotConnected(_)
                | Trouble::ClosedBeforeRequest
                | Trouble::TimedOut { sent: false }
        )
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::NotConnected(kind) => write!(f, "not sent: could not connect ({kind})"),
            Trouble::ClosedBeforeRequest => {
                f.write_str("not sent: each connection was closed as soon as it was open")
            }
            Trouble::ClosedBeforeAnswer => {
                f.write_str("the connection was closed before the answer")
            }
            Trouble::ClosedInBody => f.write_str("the connection was closed in the answer's body"),
            Trouble::NotHttp => f.write_str("the answer was not HTTP"),
            Trouble::Broken(kind) => write!(f, "the connection broke ({kind})"),
            Trouble::TimedOut { sent: true } => f.write_str("no answer in time"),
            Trouble::TimedOut { sent: false } => f.write_str("not sent: no connection in time"),
        }
    }
}

/// Why an exchange gave no answer.
pub(super) enum NoAnswer {
    /// The connection was closed before any of the request went out; here it is again.
    Unsent(Box<Request<Full<Bytes>>>),
    /// The request went out.
    Sent(Trouble),
}

impl Connection {
    pub(super) async fn open(stream: Stream, protocol: Protocol) -> Result<Self, hyper::Error> {
        let io = TokioIo::new(stream);
        // How a connection ends shows in what it does to its requests.
        let (sender, driver): (_, Driver) = match protocol {
            Protocol::Http1 { .. } => {
                let (sender, driver) = http1::handshake(io).await?;
                (Sender::Http1(sender), Box::pin(async move { drop(driver.await) }))
            }
            Protocol::Http2 => {
                let mut builder = http2::Builder::new(TokioExecutor::new());
                builder.timer(TokioTimer::new());
                let (sender, driver) = builder.handshake(io).await?;
                (Sender::Http2(sender), Box::pin(async move { drop(driver.await) }))
            }
        };
        Ok(Self { sender, driver: Some(driver) })
    }

    /// Whether the connection can take a request: looks whether the server has closed it meanwhile.
    pub(super) async fn is_open(&mut self) -> bool {
        let Some(driver) = &mut self.driver else { return false };
        let ended = poll_fn(|context| Poll::Ready(driver.as_mut().poll(context).is_ready())).await;
        if ended {
            self.driver = None;
        }
        !ended && !self.sender.is_closed()
    }

    /// Sends the request and reads the answer to the end of its body, which is kept if asked for.
    /// Sets `waiting` when the request goes out.
    ///
    /// After [`NoAnswer`], or when it is dropped half-way, the connection is of no more use.
    pub(super) async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
        keep_body: bool,
        waiting: &mut bool,
    ) -> Result<Answer, NoAnswer> {
        if driven(&mut self.driver, self.sender.ready()).await.is_none_or(|ready| ready.is_err()) {
            return Err(NoAnswer::Unsent(Box::new(request)));
        }
        let started = Instant::now();
        *waiting = true;
        let answer = self.sender.send(request);
        let (status, body) = match driven(&mut self.driver, answer).await {
            None => return Err(NoAnswer::Sent(Trouble::ClosedBeforeAnswer)),
            Some(Err(mut error)) => {
                return Err(match error.take_message() {
                    Some(request) => {
                        *waiting = false;
                        NoAnswer::Unsent(Box::new(request))
                    }
                    None => NoAnswer::Sent(trouble(error.error(), Trouble::ClosedBeforeAnswer)),
                });
            }
            Some(Ok(answer)) => (answer.status(), answer.into_body()),
        };
        let read = driven(&mut self.driver, read(body, keep_body)).await;
        match read {
            None => Err(NoAnswer::Sent(Trouble::ClosedInBody)),
            Some(Err(error)) => Err(NoAnswer::Sent(trouble(&error, Trouble::ClosedInBody))),
            Some(Ok(body)) => {
                let at = Instant::now();
                Ok(Answer { status, body, took: at - started, at })
            }
        }
    }
}

/// Reads a body to its end, and keeps it if asked for.
async fn read(mut body: Incoming, keep: bool) -> Result<Bytes, hyper::Error> {
    if keep {
        return body.collect().await.map(|collected| collected.to_bytes());
    }
    while let Some(frame) = body.frame().await {
        frame?;
    }
    Ok(Bytes::new())
}

/// Waits for the work while driving the connection; none when the connection ends first.
async fn driven<T>(driver: &mut Option<Driver>, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|context| {
        if let Poll::Ready(done) = work.as_mut().poll(context) {
            return Poll::Ready(Some(done));
        }
        let Some(running) = driver else { return Poll::Ready(None) };
        let ended = running.as_mut().poll(context).is_ready();
        if ended {
            *driver = None;
        }
        // The driver may just have brought what the work waits for, also with its last breath.
        match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if ended => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

fn trouble(error: &hyper::Error, closed: Trouble) -> Trouble {
    let mut sources =
        std::iter::successors(std::error::Error::source(error), |error| error.source());
    // That of HTTP/2 stands one deeper.
    let io = sources.find_map(|source| source.downcast_ref::<io::Error>());
    match io.map(io::Error::kind) {
        Some(io::ErrorKind::UnexpectedEof) => closed,
        Some(kind) => Trouble::Broken(kind),
        None if error.is_parse() => Trouble::NotHttp,
        None => closed,
    }
}
