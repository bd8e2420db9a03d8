//! One connection, driven by the task that uses it.
//!
//! hyper hands out a sender and a driver. The driver usually gets a task of its own; here the
//! client waits for its one answer anyway, so it drives the connection itself and no request
//! crosses threads, nor wakes the task that made it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::{TrySendError, http1, http2};
use hyper::header::HeaderMap;
use hyper::http::response::Parts;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

use crate::coalescing_waker::CoalescingWaker;
use crate::connect::{MOST_KEPT, Stream};
use crate::event_counter::EventCounter;
use crate::progress::Progress;

/// The version of HTTP that clients speak.
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

    /// Its ALPN name in TLS (RFC 7301).
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

/// The task that reads and writes, for either protocol.
type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(super) struct Connection {
    sender: Sender,
    driver: Driver,
}

/// Reads and writes for the request that waits.
struct Driver {
    /// None once it has ended, which is when the connection is closed.
    running: Option<Running>,
    protocol: Protocol,
    /// The waker of the task that waited last.
    waker: Option<Arc<CoalescingWaker>>,
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
    /// Its headers.
    pub headers: HeaderMap,
    /// Headers behind its body, where that was asked for; none otherwise.
    pub trailers: HeaderMap,
    /// Its body, where it was asked for; empty otherwise.
    pub body: Bytes,
    /// Bytes of its body.
    pub bytes: u64,
    /// From the start of the request to the head of the response.
    pub head: Duration,
    /// From the start of the request to the end of the body.
    pub took: Duration,
    /// When its body had been read.
    pub at: Instant,
}

/// How much of an answer is read and kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All of its body is read, and none kept.
    Nothing,
    /// All of its body.
    Body,
    /// Its body up to the end of this many server-sent events; the connection is then closed.
    Events(u64),
    /// So many messages of a WebSocket, which the request opens.
    Messages(u64),
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestError {
    /// No connection could be opened, so that nothing was sent.
    NotConnected(io::ErrorKind),
    /// The server closed each fresh connection before the request, so that nothing was sent.
    ClosedBeforeRequest,
    /// The connection ended before the answer's head.
    ClosedBeforeAnswer,
    /// The connection ended before the end of the answer's body.
    ClosedInBody,
    /// Over HTTP/2 the server reset the request's stream, with a code (RFC 9113, section 7).
    Reset(u32),
    /// Over HTTP/2 the server reset the request's stream in the body of the response, as if that were no error.
    ResetInBody,
    NotHttp,
    /// The answer's head is longer than hyper takes.
    HeadTooLong,
    /// The body ended before as many server-sent events as were expected.
    FewEvents,
    /// The server closed the WebSocket before as many messages as were expected.
    FewMessages,
    /// What the server sent is no WebSocket.
    NotWebSocket,
    /// The answer's body was to be kept, and is longer than that may be.
    TooLong,
    /// Reading or writing failed otherwise.
    Broken(io::ErrorKind),
    /// The connection or the answer took longer than the limit.
    TimedOut {
        sent: bool,
    },
}

impl RequestError {
    /// Whether it says that the request took at least as long as it was waited for.
    pub fn is_timeout(self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }

    /// Whether the request was sent, so that the server may have received it.
    pub fn was_sent(self) -> bool {
        !matches!(
            self,
            Self::NotConnected(_) | Self::ClosedBeforeRequest | Self::TimedOut { sent: false }
        )
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected(kind) => write!(f, "not sent: could not connect ({kind})"),
            Self::ClosedBeforeRequest => {
                f.write_str("not sent: each connection was closed as soon as it opened")
            }
            Self::ClosedBeforeAnswer => {
                f.write_str("the connection was closed before the response")
            }
            Self::ClosedInBody => {
                f.write_str("the connection was closed in the body of the response")
            }
            Self::Reset(code) => {
                write!(f, "the server reset the stream ({:?})", h2::Reason::from(*code))
            }
            Self::ResetInBody => {
                f.write_str("the server reset the stream in the body of the response")
            }
            Self::NotHttp => f.write_str("the response was not HTTP"),
            Self::HeadTooLong => f.write_str("the response has more than 100 headers, or 400 KiB"),
            Self::FewEvents => {
                f.write_str("the response ended before the expected number of events")
            }
            Self::FewMessages => f.write_str(
                "the server closed the WebSocket before the expected number of messages",
            ),
            Self::NotWebSocket => f.write_str("the response was not a valid WebSocket"),
            Self::TooLong => write!(f, "the response is longer than {} MiB", MOST_KEPT >> 20),
            Self::Broken(kind) => write!(f, "the connection broke ({kind})"),
            Self::TimedOut { sent: true } => f.write_str("no response in time"),
            Self::TimedOut { sent: false } => f.write_str("not sent: no connection in time"),
        }
    }
}

pub(super) enum NoAnswer {
    /// The connection was closed before any of the request went out, which is where it was.
    Unsent,
    Sent(RequestError),
}

impl Connection {
    pub(super) async fn open(stream: Stream, protocol: Protocol) -> Result<Self, hyper::Error> {
        let io = TokioIo::new(stream);
        // How a connection ends shows in what it does to its requests.
        let (sender, running): (_, Running) = match protocol {
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
        Ok(Self { sender, driver: Driver { running: Some(running), protocol, waker: None } })
    }

    /// Whether the connection can take a request: looks whether the server has closed it meanwhile.
    pub(super) fn is_open(&mut self) -> bool {
        // Nobody waits: the next look, which comes at once, says who is to be woken.
        !self.driver.has_ended(&mut Context::from_waker(Waker::noop())) && !self.sender.is_closed()
    }

    /// Sends the request and reads the answer to the end of its body, which is kept if asked for.
    /// Takes the request when it goes out, and notes how far it comes.
    ///
    /// After [`NoAnswer`], or when it is dropped half-way, the connection is of no more use.
    pub(super) async fn exchange(
        &mut self,
        request: &mut Option<Request<Full<Bytes>>>,
        keep: Keep,
        progress: &mut Progress,
    ) -> Result<Answer, NoAnswer> {
        let Self { sender, driver } = self;
        let protocol = driver.protocol;
        if driver.drive(pin!(sender.ready())).await.is_none_or(|ready| ready.is_err()) {
            return Err(NoAnswer::Unsent);
        }
        let Some(going) = request.take() else { return Err(NoAnswer::Unsent) };
        let started = Instant::now();
        progress.sent_at = Some(started);
        let (head_parts, body) = match driver.drive(pin!(sender.send(going))).await {
            None => return Err(NoAnswer::Sent(RequestError::ClosedBeforeAnswer)),
            Some(Err(mut error)) => {
                *request = error.take_message();
                if request.is_some() {
                    progress.sent_at = None;
                    return Err(NoAnswer::Unsent);
                }
                let trouble = trouble(error.error(), RequestError::ClosedBeforeAnswer);
                return Err(NoAnswer::Sent(trouble));
            }
            Some(Ok(answer)) => answer.into_parts(),
        };
        let head = started.elapsed();
        progress.head = Some(head);
        match driver.drive(pin!(read(body, keep))).await {
            None => Err(NoAnswer::Sent(RequestError::ClosedInBody)),
            Some(Err(error)) => Err(NoAnswer::Sent(match error.downcast_ref() {
                Some(error) => trouble(error, RequestError::ClosedInBody),
                None if error.is::<FewEvents>() => RequestError::FewEvents,
                None => RequestError::TooLong,
            })),
            Some(Ok(body))
                if protocol == Protocol::Http2
                    && !body.is_whole
                    && !matches!(keep, Keep::Events(_)) =>
            {
                Err(NoAnswer::Sent(RequestError::ResetInBody))
            }
            Some(Ok(ReadBody { kept: body, trailers, bytes, .. })) => {
                let at = Instant::now();
                let Parts { status, headers, .. } = head_parts;
                let took = at - started;
                Ok(Answer { status, headers, trailers, body, bytes, head, took, at })
            }
        }
    }
}

/// A body that was read as far as it came.
struct ReadBody {
    /// Empty unless it was to be kept.
    kept: Bytes,
    trailers: HeaderMap,
    bytes: u64,
    /// Whether the stream of HTTP/2 ended with it. hyper takes a stream that is reset with NO_ERROR for one that
    /// has ended. Of HTTP/1 it says nothing.
    is_whole: bool,
}

/// Reads a body to its end, and keeps it if asked for. The error is hyper's, or that of a body which is too
/// long to be kept.
async fn read(
    mut body: Incoming,
    keep: Keep,
) -> Result<ReadBody, Box<dyn std::error::Error + Send + Sync>> {
    let (mut kept, mut trailers, mut bytes) = (Bytes::new(), HeaderMap::new(), 0);
    if let Keep::Events(events) = keep {
        kept = read_events(&mut body, events).await?;
        bytes = kept.len() as u64;
    } else if keep == Keep::Body {
        let all = Limited::new(&mut body, MOST_KEPT).collect().await?;
        trailers = all.trailers().cloned().unwrap_or_default();
        kept = all.to_bytes();
        bytes = kept.len() as u64;
    } else {
        while let Some(frame) = body.frame().await {
            bytes += frame?.data_ref().map_or(0, |data| data.len() as u64);
        }
    }
    Ok(ReadBody { kept, trailers, bytes, is_whole: body.is_end_stream() })
}

/// A body that ended too early.
#[derive(Debug)]
struct FewEvents;

impl fmt::Display for FewEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too few events")
    }
}

impl std::error::Error for FewEvents {}

/// Reads up to the end of so many server-sent events.
async fn read_events(
    body: &mut Incoming,
    events: u64,
) -> Result<Bytes, Box<dyn std::error::Error + Send + Sync>> {
    let mut body = Limited::new(body, MOST_KEPT);
    let (mut kept, mut counter) = (Vec::new(), EventCounter::default());
    while let Some(frame) = body.frame().await {
        let frame = frame?;
        let data = frame.data_ref().map_or(&[][..], |data| &data[..]);
        kept.extend_from_slice(data);
        counter.take(data);
        if counter.events >= events {
            return Ok(kept.into());
        }
    }
    Err(Box::new(FewEvents))
}

/// How often the work and the connection are polled before others, such as time limits, have their turn. Where
/// an answer comes faster than it is read, a wake follows each poll; but tokio lets a task read 128 times in
/// one turn and no more.
const ROUNDS: usize = 32;

impl Driver {
    /// Waits for the work while driving the connection; none when the connection ends first.
    async fn drive<T>(&mut self, mut work: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        poll_fn(|task| {
            let coalescing = match &self.waker {
                Some(waker) if waker.is_of(task.waker()) => waker.clone(),
                _ => self.waker.insert(CoalescingWaker::new(task.waker())).clone(),
            };
            let waker = Waker::from(coalescing.clone());
            let mut context = Context::from_waker(&waker);
            for _ in 0..ROUNDS {
                if let Poll::Ready(done) = work.as_mut().poll(&mut context) {
                    return Poll::Ready(Some(done));
                }
                coalescing.look();
                if self.has_ended(&mut context) {
                    // It may have brought what the work waits for with its last breath.
                    let done = work.as_mut().poll(&mut context).map(Some);
                    if done.is_ready() {
                        return done;
                    }
                    // Over HTTP/2 it ends once the server takes no further requests (GOAWAY), and hyper
                    // reads the answer to the last one elsewhere.
                    if self.protocol != Protocol::Http2 {
                        return Poll::Ready(None);
                    }
                }
                if coalescing.wait() {
                    return Poll::Pending;
                }
            }
            task.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    /// Reads and writes what can be now; whether the connection is closed.
    fn has_ended(&mut self, context: &mut Context<'_>) -> bool {
        self.running.take_if(|running| running.as_mut().poll(context).is_ready());
        self.running.is_none()
    }
}

fn trouble(error: &hyper::Error, closed: RequestError) -> RequestError {
    let (io, http2) = (source(error).map(io::Error::kind), source::<h2::Error>(error));
    match (io, http2.and_then(h2::Error::reason)) {
        // The latter is how h2 reports the end of a connection.
        (Some(io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe), _) => closed,
        // A chunk without a length.
        (Some(io::ErrorKind::InvalidInput), _) => RequestError::NotHttp,
        (Some(kind), _) => RequestError::Broken(kind),
        // This side found that the server breaks the protocol.
        (None, Some(_)) if http2.is_some_and(h2::Error::is_library) => RequestError::NotHttp,
        (None, Some(code)) if http2.is_some_and(h2::Error::is_reset) => {
            RequestError::Reset(code.into())
        }
        _ if error.is_parse_too_large() => RequestError::HeadTooLong,
        _ if error.is_parse() => RequestError::NotHttp,
        _ => closed,
    }
}

/// The first error of a type among those that caused one.
fn source<E: std::error::Error + 'static>(error: &hyper::Error) -> Option<&E> {
    let mut sources =
        std::iter::successors(std::error::Error::source(error), |error| error.source());
    sources.find_map(|source| source.downcast_ref())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    // The thread that blocks is none of the runtime's. There a task that has read often enough at a time is
    // woken at once; elsewhere, when it waits.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_connection_that_always_has_more_lets_others_have_their_turn() {
        // As reads where data comes faster than it is read.
        let running = async {
            loop {
                tokio::task::coop::consume_budget().await;
            }
        };
        let protocol = Protocol::Http1 { keep_alive: true };
        let mut driver = Driver { running: Some(Box::pin(running)), protocol, waker: None };
        let turns = Cell::new(0);
        let comes_later = pin!(poll_fn(|_| match turns.get() {
            0..3 => Poll::Pending,
            turns => Poll::Ready(turns),
        }));
        let mut driven = pin!(driver.drive(comes_later));
        let work = poll_fn(|context| {
            turns.set(turns.get() + 1);
            driven.as_mut().poll(context)
        });
        assert_eq!(work.await, Some(3));
    }
}
