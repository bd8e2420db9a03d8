//! One request from its arrival to its end, told once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use fastant::Instant;
use http::header::CONTENT_LENGTH;
use http::{Extensions, HeaderMap, Method, StatusCode, Uri, Version};
use http_body::Body;
use talea::{Bytes, Histogram};

use crate::arrival::Head;
use crate::broken;
use crate::meters::{Answer, Arrival, Meters};
use crate::outcome::Outcome;

/// A request in flight, until the head of its response is there. It ends once: with that
/// head, or with the body that comes behind it, or, where it is dropped before, as one that
/// broke off or panicked. It is moved with the future that carries it, so it is small.
#[derive(Debug)]
pub(crate) struct Exchange {
    arrival: &'static Arrival,
    start: Instant,
    request: RequestBytes,
    is_head: bool,
    /// Whether code of others is running on its behalf: if it is dropped then, that panicked.
    busy: bool,
    /// Whether something inside panicked, and was caught there.
    panicked: bool,
    /// Whether the request has a body, and whether that broke off.
    has_body: bool,
    broke_off: bool,
    open: bool,
}

/// The same while the response's body passes.
#[derive(Debug)]
pub(crate) struct Passing {
    exchange: Exchange,
    answer: &'static Answer,
    /// How it ends if all of the body passes.
    whole: Outcome,
    /// Bytes that have passed, and how many there are, if the body says so.
    passed: u64,
    length: Option<u64>,
}

/// Who counts the bytes of a request.
#[derive(Debug)]
enum RequestBytes {
    /// Its body, which tells them too.
    Told,
    /// They were known when it arrived.
    Known(u64),
    /// Its body, for us to tell.
    Passing(Arc<AtomicU64>),
}

/// What goes with a request's body: counts its bytes as they pass.
#[derive(Debug)]
pub(crate) enum RequestTally {
    /// Tells them itself, when the body is dropped.
    Tells { bytes: u64, to: &'static Histogram<Bytes> },
    /// Shares them with the exchange.
    Shares(Arc<AtomicU64>),
    /// Counts nothing: nobody tells them, or they were known when the request arrived. The
    /// body may break off all the same.
    Nothing,
}

/// How a response's body is watched.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Watch {
    /// Not at all: it is as good as sent, and has so many bytes.
    Sent(u64),
    /// As it passes. Some know how long it is.
    Passing(Option<u64>),
}

impl Exchange {
    /// A request has arrived. What comes beside it goes with its body, which is counted as
    /// it passes, if there is anything to count.
    ///
    /// It is busy until it is said to [`rest`](Self::rest).
    #[inline]
    pub(crate) fn start(
        meters: &'static Meters,
        request: Head<'_>,
        body: &impl Body,
    ) -> (Self, Option<RequestTally>) {
        let arrival = meters.arrival(request);
        arrival.in_flight.inc();
        let (bytes, tally) = request_bytes(arrival, request, body);
        if tally.is_some() {
            broken::watch();
        }
        let exchange = Self {
            arrival,
            start: Instant::now(),
            request: bytes,
            is_head: *request.method == Method::HEAD,
            busy: true,
            panicked: false,
            has_body: tally.is_some(),
            broke_off: false,
            open: true,
        };
        (exchange, tally)
    }

    /// Code of others begins to run.
    #[inline]
    pub(crate) fn work(&mut self) {
        self.busy = true;
        if self.has_body {
            broken::watch();
        }
    }

    /// It has returned.
    #[inline]
    pub(crate) fn rest(&mut self) {
        self.busy = false;
        if self.has_body && broken::is_told() {
            self.broke_off = true;
        }
    }

    /// Something inside panicked, and was caught there: whatever the answer is.
    pub(crate) fn panicked_inside(&mut self) {
        self.panicked = true;
    }

    /// The head of the response is there. If there is a body to watch, what does so is made
    /// of this by [`Ahead::pass`]; if not, the request has ended.
    #[inline]
    pub(crate) fn head(
        &mut self,
        status: StatusCode,
        extensions: &Extensions,
        watch: Watch,
    ) -> Option<Ahead> {
        let took = self.start.elapsed();
        let answer = self.answered(Some(status.as_u16()), Some(extensions), took);
        let whole = match Outcome::of_status(status.as_u16()) {
            _ if self.panicked => Outcome::Panicked,
            // Whoever answers, nobody hears it.
            Outcome::Complete if self.broke_off => Outcome::Aborted,
            outcome => outcome,
        };
        let passed = match watch {
            _ if self.is_head || has_no_body(status) => 0,
            Watch::Sent(bytes) => bytes,
            Watch::Passing(length) => return Some(Ahead { answer, whole, length }),
        };
        self.finish(answer, whole, took, passed);
        None
    }

    #[cold]
    fn break_off(&mut self) {
        let took = self.start.elapsed();
        // Whoever catches a panic answers with a 500.
        let answer = self.answered(self.busy.then_some(500), None, took);
        self.finish(answer, self.broken(took), took, 0);
    }

    /// How it broke off.
    fn broken(&self, took: Duration) -> Outcome {
        let limit = self.arrival.families().timed_out_after;
        if self.busy {
            Outcome::Panicked
        } else if limit.is_some_and(|limit| took >= limit) {
            Outcome::TimedOut
        } else {
            Outcome::Aborted
        }
    }

    #[inline]
    fn answered(
        &self,
        status: Option<u16>,
        extensions: Option<&Extensions>,
        took: Duration,
    ) -> &'static Answer {
        let answer = self.arrival.answer(status, extensions);
        if let Some(requests) = answer.requests {
            requests.inc();
        }
        if let Some(to_head) = answer.to_head {
            to_head.observe(took);
        }
        answer
    }

    #[inline]
    fn finish(&mut self, answer: &'static Answer, outcome: Outcome, took: Duration, response: u64) {
        self.open = false;
        self.arrival.in_flight.dec();
        let end = self.arrival.end(answer, outcome);
        if let Some(outcomes) = end.outcomes {
            outcomes.inc();
        }
        if let Some(errors) = end.errors {
            errors.inc();
        }
        if let Some(to_end) = end.to_end {
            to_end.observe(took);
        }
        if let Some(response_size) = end.response_size {
            response_size.observe(response);
        }
        let request = match &self.request {
            RequestBytes::Told => return,
            RequestBytes::Known(bytes) => *bytes,
            RequestBytes::Passing(bytes) => bytes.load(Relaxed),
        };
        if let Some(request_size) = end.request_size.or(self.arrival.request_size) {
            request_size.observe(request);
        }
    }
}

impl Drop for Exchange {
    #[inline]
    fn drop(&mut self) {
        if self.open {
            self.break_off();
        }
    }
}

/// What is known of a body that is to be watched.
#[derive(Debug)]
pub(crate) struct Ahead {
    answer: &'static Answer,
    whole: Outcome,
    length: Option<u64>,
}

impl Ahead {
    /// The body begins to pass.
    #[inline]
    pub(crate) fn pass(self, exchange: Exchange) -> Passing {
        let Self { answer, whole, length } = self;
        Passing { exchange, answer, whole, passed: 0, length }
    }
}

impl Passing {
    /// Code of others begins to run.
    #[inline]
    pub(crate) fn work(&mut self) {
        self.exchange.work();
    }

    /// It has returned.
    #[inline]
    pub(crate) fn rest(&mut self) {
        self.exchange.rest();
    }

    /// So many bytes of the body have passed.
    #[inline]
    pub(crate) fn pass(&mut self, bytes: u64) {
        self.passed += bytes;
    }

    /// All of the body has passed.
    #[inline]
    pub(crate) fn end(mut self) {
        self.close(self.whole, self.exchange.start.elapsed());
    }

    fn close(&mut self, outcome: Outcome, took: Duration) {
        let Self { exchange, answer, passed, .. } = self;
        exchange.finish(answer, outcome, took, *passed);
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        if !self.exchange.open {
            return;
        }
        let took = self.exchange.start.elapsed();
        // Whoever sends it knows the length, and asks for no more.
        let is_whole = !self.exchange.busy && self.length == Some(self.passed);
        let outcome = if is_whole { self.whole } else { self.exchange.broken(took) };
        self.close(outcome, took);
    }
}

impl RequestTally {
    #[inline]
    pub(crate) fn add(&mut self, passed: u64) {
        match self {
            Self::Tells { bytes, .. } => *bytes += passed,
            Self::Shares(bytes) => {
                bytes.fetch_add(passed, Relaxed);
            }
            Self::Nothing => {}
        }
    }
}

impl Drop for RequestTally {
    fn drop(&mut self) {
        if let Self::Tells { bytes, to } = self {
            to.observe(*bytes);
        }
    }
}

/// Who counts a request's bytes.
#[inline]
fn request_bytes(
    arrival: &'static Arrival,
    request: Head<'_>,
    body: &impl Body,
) -> (RequestBytes, Option<RequestTally>) {
    let families = arrival.families();
    let has_body = !body.is_end_stream();
    if families.declared_request_size {
        let tally = has_body.then_some(RequestTally::Nothing);
        (RequestBytes::Known(declared_size(request)), tally)
    } else if !has_body {
        (RequestBytes::Known(0), None)
    } else if families.request_size.is_none() {
        (RequestBytes::Told, Some(RequestTally::Nothing))
    } else if let Some(to) = arrival.request_size {
        (RequestBytes::Told, Some(RequestTally::Tells { bytes: 0, to }))
    } else {
        let bytes = Arc::new(AtomicU64::new(0));
        (RequestBytes::Passing(Arc::clone(&bytes)), Some(RequestTally::Shares(bytes)))
    }
}

/// About how large a request is, without its body if that does not say how long it is:
/// method, target, version, headers, body. So does Prometheus' client for Go reckon it.
fn declared_size(request: Head<'_>) -> u64 {
    let Head { method, uri, version, headers, .. } = request;
    let header = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        name.as_str().len() + value.as_bytes().len()
    };
    let line = method.as_str().len() + target_len(uri) + version_len(version);
    let size = line + headers.iter().map(header).sum::<usize>();
    size as u64 + content_length(headers).unwrap_or(0)
}

fn target_len(uri: &Uri) -> usize {
    let path = uri.path_and_query().map_or(0, |path| path.as_str().len());
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
    path + authority
}

fn version_len(version: Version) -> usize {
    match version {
        Version::HTTP_2 => "HTTP/2.0".len(),
        Version::HTTP_3 => "HTTP/3.0".len(),
        _ => "HTTP/1.1".len(),
    }
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

/// Whether a response of this status is its head alone (RFC 9110, 6.4.1).
#[inline]
fn has_no_body(status: StatusCode) -> bool {
    status.is_informational() || matches!(status.as_u16(), 204 | 304)
}
