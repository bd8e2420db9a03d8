//! One request from its arrival to its end, told once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Buf;
use fastant::Instant;
use http::header::CONTENT_LENGTH;
use http::{Extensions, HeaderMap, Method, StatusCode, Uri, Version};
use http_body::Body;
use talea::{Bytes, Histogram};

use crate::arrival::Head;
use crate::broken;
use crate::caught_panic::{self, CaughtPanic};
use crate::handler_error::HandlerError;
use crate::meters::{Answer, Arrival, End, Meters};
use crate::outcome::Outcome;
use crate::upgrade::UpgradeGuard;

/// A request in flight, until the head of its response is there. It ends once: with that
/// head, or with the body that comes behind it, or, where it is dropped before, as one that
/// broke off or panicked. It is moved with the future that carries it, so it is small.
///
/// It is opened in place, and while it is young nothing else is written to it: what copies
/// it soon after would have to wait until that has reached the cache.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// `None` where it is closed: not opened yet, or ended.
    arrival: Option<&'static Arrival>,
    start: Instant,
    request: RequestBytes,
    is_head: bool,
    /// Whether code of others panicked that ran on its behalf.
    unwound: bool,
    /// Whether something inside panicked, and was caught there.
    panicked: bool,
    /// Whether the request has a body, and whether that broke off.
    has_body: bool,
    broke_off: bool,
    /// Whether the response says that the service failed. Known only where that is counted.
    failed: bool,
}

/// Code of others that runs on an exchange's behalf. If this is dropped, that panicked.
#[derive(Debug)]
pub(crate) struct Running<'a>(&'a mut Exchange);

/// The same while the response's body passes.
#[derive(Debug)]
pub(crate) struct Passing {
    exchange: Exchange,
    answer: &'static Answer,
    /// How it ends if all of the body passes.
    whole: Outcome,
    /// Bytes that have passed, and how many there are, if the body or the head says so.
    passed: u64,
    length: Option<u64>,
    /// Whether the body may be that of a panic that was caught.
    may_be_panic: bool,
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

impl Watch {
    /// That of a body which is watched as it passes. Its length is what it says itself, or else
    /// what the head declares: a server of HTTP/1 sends no more than that, and does not ask the
    /// body for its end.
    pub(crate) fn passing(body: &impl Body, headers: &HeaderMap) -> Self {
        Self::Passing(body.size_hint().exact().or_else(|| content_length(headers)))
    }
}

impl Exchange {
    /// One that tells nothing.
    #[inline]
    pub(crate) fn closed() -> Self {
        Self {
            arrival: None,
            start: Instant::ZERO,
            request: RequestBytes::Told,
            is_head: false,
            unwound: false,
            panicked: false,
            has_body: false,
            broke_off: false,
            failed: false,
        }
    }

    /// A request has arrived. What is returned goes with its body, which is counted as it
    /// passes, if there is anything to count.
    #[inline(always)]
    pub(crate) fn open(
        &mut self,
        meters: &'static Meters,
        request: Head<'_>,
        body: &impl Body,
    ) -> Option<RequestTally> {
        self.start = Instant::now();
        let arrival = meters.arrival(request);
        arrival.in_flight.inc();
        self.arrival = Some(arrival);
        self.is_head = *request.method == Method::HEAD;
        self.has_body = !body.is_end_stream();
        let declared = arrival.declared_request_size;
        self.request = RequestBytes::Known(if declared { declared_size(request) } else { 0 });
        if self.has_body { Some(self.tally(arrival)) } else { None }
    }

    /// Code of others begins to run.
    #[inline]
    pub(crate) fn run(&mut self) -> Running<'_> {
        self.begin();
        Running(self)
    }

    /// The same where who calls sees to it that it is told of the [end](Self::returned), or
    /// that [there was a panic](Self::unwind).
    #[inline]
    pub(crate) fn begin(&mut self) {
        if self.has_body {
            broken::watch();
        }
    }

    /// It panicked.
    #[inline]
    pub(crate) fn unwind(&mut self) {
        self.unwound = true;
    }

    /// Something inside panicked, and was caught there: whatever the answer is. False where
    /// that is nothing to this exchange.
    #[inline]
    #[cfg(feature = "axum")]
    pub(crate) fn panicked_inside(&mut self) -> bool {
        self.panicked = true;
        self.is_open()
    }

    /// Code of others has run.
    #[inline]
    pub(crate) fn returned(&mut self) {
        if self.has_body && broken::is_told() {
            self.broke_off = true;
        }
    }

    /// Whether it tells what becomes of its request.
    #[inline]
    #[cfg(feature = "axum")]
    pub(crate) fn is_open(&self) -> bool {
        self.arrival.is_some()
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
        let arrival = self.arrival?;
        if arrival.counts_errors {
            self.failed = is_failure(status, extensions);
        }
        let whole = match Outcome::of_status(status.as_u16()) {
            _ if self.panicked || says_panic(status, extensions) => Outcome::Panicked,
            // Whoever answers, nobody hears it.
            Outcome::Complete if self.broke_off => Outcome::Aborted,
            outcome => outcome,
        };
        if status == StatusCode::SWITCHING_PROTOCOLS && self.is_kept(arrival, extensions) {
            return None;
        }
        let (status, has_none) = (Some(status.as_u16()), self.is_head || has_no_body(status));
        let sent = match watch {
            Watch::Passing(_) if has_none => 0,
            Watch::Passing(length) => {
                let answer = self.tell_head(arrival, status, extensions);
                let may_be_panic = may_be_panic(status, length);
                return Some(Ahead { answer, whole, length, may_be_panic });
            }
            Watch::Sent(bytes) => {
                if has_none {
                    0
                } else {
                    bytes
                }
            }
        };
        self.tell(arrival, (status, Some(extensions)), |_, _| whole, sent);
        None
    }

    /// Whether a guard takes over the request, whose connection goes on.
    #[cold]
    fn is_kept(&mut self, arrival: &'static Arrival, extensions: &Extensions) -> bool {
        let Some(guard) = extensions.get::<UpgradeGuard>() else { return false };
        let status = Some(StatusCode::SWITCHING_PROTOCOLS.as_u16());
        let answer = self.tell_head(arrival, status, extensions);
        let (whole, length) = (Outcome::Complete, Some(0));
        guard.keep(Ahead { answer, whole, length, may_be_panic: false }.pass(self));
        true
    }

    #[cold]
    fn break_off(&mut self, arrival: &'static Arrival) {
        // Whoever catches a panic answers with a 500.
        let status = self.unwound.then_some(500);
        self.tell(arrival, (status, None), |exchange, took| exchange.broken(arrival, took), 0);
    }

    /// How it broke off.
    fn broken(&self, arrival: &Arrival, took: Duration) -> Outcome {
        let limit = arrival.families().timed_out_after;
        if self.unwound {
            Outcome::Panicked
        } else if limit.is_some_and(|limit| took >= limit) {
            Outcome::TimedOut
        } else {
            Outcome::Aborted
        }
    }

    /// Tells the head of a response whose body is to be watched.
    #[inline(never)]
    fn tell_head(
        &self,
        arrival: &'static Arrival,
        status: Option<u16>,
        extensions: &Extensions,
    ) -> &'static Answer {
        let took = self.start.elapsed();
        let answer = answered(arrival, status, Some(extensions));
        if let Some(to_head) = answer.to_head {
            to_head.observe(took);
        }
        answer
    }

    /// Ends a request whose response's head and end come together.
    #[inline]
    fn tell(
        &mut self,
        arrival: &'static Arrival,
        (status, extensions): (Option<u16>, Option<&Extensions>),
        outcome: impl FnOnce(&Self, Duration) -> Outcome,
        sent: u64,
    ) {
        let took = self.close(arrival);
        let answer = answered(arrival, status, extensions);
        let end = arrival.end(answer, outcome(self, took));
        match (answer.to_head, end.to_end) {
            (Some(to_head), Some(to_end)) => to_head.observe_in_both(to_end, took),
            (Some(only), None) | (None, Some(only)) => only.observe(took),
            (None, None) => {}
        }
        self.tell_end(arrival, end, sent);
    }

    /// Ends a request whose response has a head already.
    #[inline]
    fn finish(
        &mut self,
        arrival: &'static Arrival,
        answer: &'static Answer,
        outcome: impl FnOnce(&Self, Duration) -> Outcome,
        sent: u64,
    ) {
        let took = self.close(arrival);
        let end = arrival.end(answer, outcome(self, took));
        if let Some(to_end) = end.to_end {
            to_end.observe(took);
        }
        self.tell_end(arrival, end, sent);
    }

    /// It is in flight no more; how long it took.
    #[inline]
    fn close(&mut self, arrival: &Arrival) -> Duration {
        self.arrival = None;
        // Before the clock is read: an atomic add waits for all before it, and what a
        // reading takes to become a time can pass beside what follows.
        arrival.in_flight.dec();
        self.start.elapsed()
    }

    #[inline]
    fn tell_end(&self, arrival: &'static Arrival, end: &End, sent: u64) {
        if let Some(outcomes) = end.outcomes {
            outcomes.inc();
        }
        if let Some(errors) = end.errors {
            if end.is_failure || self.failed {
                errors.inc();
            }
        }
        if let Some(response_size) = end.response_size {
            response_size.observe(sent);
        }
        let request = match &self.request {
            RequestBytes::Told => return,
            RequestBytes::Known(bytes) => *bytes,
            RequestBytes::Passing(bytes) => bytes.load(Relaxed),
        };
        if let Some(request_size) = end.request_size.or(arrival.request_size) {
            request_size.observe(request);
        }
    }

    /// Who counts the bytes of a request with a body. Out of line, as most have none.
    #[inline(never)]
    fn tally(&mut self, arrival: &Arrival) -> RequestTally {
        let families = arrival.families();
        if families.declared_request_size {
            return RequestTally::Nothing;
        }
        if families.request_size.is_none() {
            self.request = RequestBytes::Told;
            RequestTally::Nothing
        } else if let Some(to) = arrival.request_size {
            self.request = RequestBytes::Told;
            RequestTally::Tells { bytes: 0, to }
        } else {
            let bytes = Arc::new(AtomicU64::new(0));
            self.request = RequestBytes::Passing(Arc::clone(&bytes));
            RequestTally::Shares(bytes)
        }
    }
}

/// Tells by what a request was answered, or that it was not.
#[inline]
fn answered<'a>(
    arrival: &'a Arrival,
    status: Option<u16>,
    extensions: Option<&Extensions>,
) -> &'a Answer {
    let answer = arrival.answer(status, extensions);
    if let Some(requests) = answer.requests {
        requests.inc();
    }
    answer
}

impl Running<'_> {
    /// It has returned.
    #[inline]
    pub(crate) fn returned(self) {
        self.0.returned();
        std::mem::forget(self);
    }
}

impl Drop for Running<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.unwind();
    }
}

impl Drop for Exchange {
    #[inline]
    fn drop(&mut self) {
        if let Some(arrival) = self.arrival {
            self.break_off(arrival);
        }
    }
}

/// What is known of a body that is to be watched.
#[derive(Debug)]
pub(crate) struct Ahead {
    answer: &'static Answer,
    whole: Outcome,
    length: Option<u64>,
    may_be_panic: bool,
}

impl Ahead {
    /// The body begins to pass.
    #[inline]
    pub(crate) fn pass(self, exchange: &mut Exchange) -> Passing {
        let Self { answer, whole, length, may_be_panic } = self;
        let exchange = std::mem::replace(exchange, Exchange::closed());
        Passing { exchange, answer, whole, passed: 0, length, may_be_panic }
    }
}

impl Passing {
    /// Code of others begins to run.
    #[inline]
    pub(crate) fn run(&mut self) -> Running<'_> {
        self.exchange.run()
    }

    /// Something panicked on its behalf.
    pub(crate) fn unwind(&mut self) {
        self.exchange.unwind();
    }

    /// A piece of the body has passed.
    #[inline]
    pub(crate) fn pass(&mut self, data: Option<&impl Buf>) {
        let Some(data) = data else { return };
        self.passed += data.remaining() as u64;
        if self.may_be_panic && data.chunk() == caught_panic::BODY {
            self.whole = Outcome::Panicked;
        }
    }

    /// The body has come to its end.
    #[inline]
    pub(crate) fn end(&mut self) {
        if let Some(arrival) = self.exchange.arrival {
            self.finish(arrival);
        }
    }

    /// Ends the request. All of a body has passed if as much has as was said; or if nothing was,
    /// when it has come to its end.
    fn finish(&mut self, arrival: &'static Arrival) {
        let Self { exchange, answer, whole, passed, length, .. } = self;
        let is_whole = !exchange.unwound && length.is_none_or(|length| length <= *passed);
        let outcome = |exchange: &Exchange, took| {
            if is_whole { *whole } else { exchange.broken(arrival, took) }
        };
        exchange.finish(arrival, answer, outcome, *passed);
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        let Some(arrival) = self.exchange.arrival else { return };
        // Without a length, only its end says that it is whole.
        self.length.get_or_insert(u64::MAX);
        self.finish(arrival);
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

/// Whether a response says that it stands for a panic.
#[inline]
fn says_panic(status: StatusCode, extensions: &Extensions) -> bool {
    status.is_server_error() && extensions.get::<CaughtPanic>().is_some()
}

/// Whether a response may stand for a panic, by its status and length.
#[inline]
pub(crate) fn may_be_panic(status: Option<u16>, length: Option<u64>) -> bool {
    status == Some(caught_panic::STATUS) && length == Some(caught_panic::BODY.len() as u64)
}

/// Whether a response says that the service failed.
fn is_failure(status: StatusCode, extensions: &Extensions) -> bool {
    status.is_server_error() || extensions.get::<HandlerError>().is_some()
}

/// Whether a response of this status is its head alone (RFC 9110, 6.4.1).
#[inline]
fn has_no_body(status: StatusCode) -> bool {
    status.is_informational() || matches!(status.as_u16(), 204 | 304)
}
