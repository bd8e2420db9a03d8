//! A request in flight, until the head of its response.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http::{Extensions, Method, Request};
use http_body::Body;
use talea::{Histogram, Seconds};

use super::aborted_body;
use super::clock::Instant;
use super::request_size::{RequestBytes, RequestSize, declared_size};
use crate::labels::outcome::Outcome;
use crate::meters::attributes::RequestHead;
use crate::meters::endpoint::EndpointMeters;
use crate::meters::request::{OutcomeMeters, RequestMeters, ResponseMeters};

/// A request in flight, until the head of its response. It ends once: with that head, with the
/// body behind it, or when it is dropped before, as aborted or panicked. It moves with the future
/// that carries it, so it is small.
///
/// It is opened in place, and nothing else is written to it soon after: a copy of bytes that were
/// just written waits until the writes have reached the cache.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// `None` if it is closed: not opened yet, or ended.
    pub(super) meters: Option<&'static RequestMeters>,
    start: Instant,
    request_size: RequestSize,
    pub(super) is_head: bool,
    pub(super) is_connect: bool,
    /// Whether a panic left the service's code.
    pub(super) unwound: bool,
    /// Whether a layer inside caught a panic.
    pub(super) caught_panic: bool,
    /// Whether the request has a body, and whether that ended with an error.
    has_body: bool,
    pub(super) aborted_body: bool,
    /// Whether the response is an error. Set only if errors are counted.
    pub(super) failed: bool,
}

/// A latency that was recorded, and that may have an exemplar.
#[derive(Clone, Copy, Debug)]
pub(super) struct Latency {
    histogram: Option<&'static Histogram<Seconds>>,
    took: Duration,
}

impl Latency {
    /// Keeps the trace that this thread is in as the exemplar. For calls while the service or its
    /// response is polled: then the thread is in the request's span.
    #[inline]
    pub(super) fn keep_trace(self) {
        #[cfg(feature = "tracing")]
        if let Some(histogram) = self.histogram {
            histogram.keep_trace(self.took);
        }
        #[cfg(not(feature = "tracing"))]
        let _ = (self.histogram, self.took);
    }
}

/// A call of the service's code on an exchange's behalf. If this is dropped, the call panicked.
#[derive(Debug)]
pub(crate) struct CallGuard<'a>(&'a mut Exchange);

impl Exchange {
    /// An exchange that records nothing.
    #[inline]
    pub(crate) fn closed() -> Self {
        Self {
            meters: None,
            start: Instant::ZERO,
            request_size: RequestSize::RecordedByBody,
            is_head: false,
            is_connect: false,
            unwound: false,
            caught_panic: false,
            has_body: false,
            aborted_body: false,
            failed: false,
        }
    }

    /// Records that a request arrived. The counter that it returns is for the request's body, if
    /// there is a body to watch.
    #[inline(always)]
    pub(crate) fn open(
        &mut self,
        meters: &'static EndpointMeters,
        request: &Request<impl Body>,
    ) -> Option<RequestBytes> {
        self.start();
        // Mostly nobody reads the head, so it is made where it is read.
        let meters = meters.request(|| RequestHead::from(request));
        self.enter_at(meters, request.method());
        self.has_body = !request.body().is_end_stream();
        self.request_size = RequestSize::Known(match meters.declared_request_size {
            true => declared_size(RequestHead::from(request)),
            false => 0,
        });
        if self.has_body { Some(self.request_bytes(meters)) } else { None }
    }

    #[inline(always)]
    pub(super) fn start(&mut self) {
        self.start = Instant::now();
    }

    /// Records that the request is in flight at these meters.
    #[inline(always)]
    pub(super) fn enter_at(&mut self, meters: &'static RequestMeters, method: &Method) {
        meters.in_flight.inc();
        self.meters = Some(meters);
        self.is_head = *method == Method::HEAD;
        self.is_connect = *method == Method::CONNECT;
    }

    pub(super) fn received(&mut self, bytes: u64) {
        self.request_size = RequestSize::Known(bytes);
    }

    #[inline]
    pub(crate) fn call(&mut self) -> CallGuard<'_> {
        self.begin_call();
        CallGuard(self)
    }

    /// Begins a call without a guard: the caller reports its [end](Self::end_call) or its
    /// [panic](Self::note_unwind).
    #[inline]
    pub(crate) fn begin_call(&mut self) {
        if self.has_body {
            aborted_body::clear();
        }
    }

    #[inline]
    pub(crate) fn end_call(&mut self) {
        if self.has_body && aborted_body::is_noted() {
            self.aborted_body = true;
        }
    }

    #[inline]
    pub(crate) fn note_unwind(&mut self) {
        self.unwound = true;
    }

    /// Notes that a layer inside caught a panic, whatever the response is. False if the exchange
    /// is closed, so that the panic belongs to another one.
    #[inline]
    #[cfg(feature = "axum")]
    pub(crate) fn note_caught_panic(&mut self) -> bool {
        self.caught_panic = true;
        self.is_open()
    }

    #[inline]
    #[cfg(feature = "axum")]
    pub(crate) fn is_open(&self) -> bool {
        self.meters.is_some()
    }

    #[cold]
    fn abort(&mut self, meters: &'static RequestMeters) {
        // A panic that is caught further out becomes a 500.
        let status = self.unwound.then_some(500);
        let outcome = |exchange: &Self, took| exchange.abort_outcome(meters, took);
        self.record_whole(meters, (status, None), outcome, 0);
    }

    /// The outcome of a request that did not complete.
    pub(super) fn abort_outcome(&self, meters: &RequestMeters, took: Duration) -> Outcome {
        let limit = meters.families.timed_out_after;
        if self.unwound {
            Outcome::Panicked
        } else if limit.is_some_and(|limit| took >= limit) {
            Outcome::TimedOut
        } else {
            Outcome::Aborted
        }
    }

    /// Records the head of a response whose body is still to be sent.
    #[inline(never)]
    pub(super) fn record_head(
        &self,
        meters: &'static RequestMeters,
        status: Option<u16>,
        extensions: &Extensions,
    ) -> &'static ResponseMeters {
        let took = self.start.elapsed();
        let response = count_response(meters, status, Some(extensions));
        if let Some(to_head) = response.to_head {
            to_head.observe(took);
        }
        Latency { histogram: response.to_head, took }.keep_trace();
        response
    }

    /// Ends a request whose response's head and end come together.
    #[inline]
    pub(super) fn record_whole(
        &mut self,
        meters: &'static RequestMeters,
        (status, extensions): (Option<u16>, Option<&Extensions>),
        outcome: impl FnOnce(&Self, Duration) -> Outcome,
        sent: u64,
    ) -> Latency {
        let took = self.close(meters);
        let response = count_response(meters, status, extensions);
        let end = meters.outcome(response, outcome(self, took));
        match (response.to_head, end.to_end) {
            (Some(to_head), Some(to_end)) => to_head.observe_in_both(to_end, took),
            (Some(only), None) | (None, Some(only)) => only.observe(took),
            (None, None) => {}
        }
        self.record_outcome(meters, end, sent);
        Latency { histogram: response.to_head.or(end.to_end), took }
    }

    /// Ends a request whose response's head is recorded already.
    #[inline]
    pub(super) fn record_end(
        &mut self,
        meters: &'static RequestMeters,
        response: &'static ResponseMeters,
        outcome: impl FnOnce(&Self, Duration) -> Outcome,
        sent: u64,
    ) -> Latency {
        let took = self.close(meters);
        let end = meters.outcome(response, outcome(self, took));
        if let Some(to_end) = end.to_end {
            to_end.observe(took);
        }
        self.record_outcome(meters, end, sent);
        let histogram = if response.to_head.is_none() { end.to_end } else { None };
        Latency { histogram, took }
    }

    /// Ends the time in flight and returns it.
    #[inline]
    fn close(&mut self, meters: &RequestMeters) -> Duration {
        self.meters = None;
        // Before the clock is read: an atomic add waits for all before it, and the conversion of
        // a reading to a time can overlap with later instructions.
        meters.in_flight.dec();
        self.start.elapsed()
    }

    #[inline]
    fn record_outcome(&self, meters: &'static RequestMeters, end: &OutcomeMeters, sent: u64) {
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
        let received = match &self.request_size {
            RequestSize::RecordedByBody => return,
            RequestSize::Known(bytes) => *bytes,
            RequestSize::Shared(bytes) => bytes.load(Relaxed),
        };
        if let Some(request_size) = end.request_size.or(meters.request_size) {
            request_size.observe(received);
        }
    }

    /// The counter for the body of a request that has one. Out of line, as most have none.
    #[inline(never)]
    fn request_bytes(&mut self, meters: &RequestMeters) -> RequestBytes {
        let families = meters.families;
        if families.declared_request_size {
            return RequestBytes::Ignored;
        }
        if families.request_size.is_none() {
            self.request_size = RequestSize::RecordedByBody;
            RequestBytes::Ignored
        } else if let Some(histogram) = meters.request_size {
            self.request_size = RequestSize::RecordedByBody;
            RequestBytes::Recorded { bytes: 0, histogram }
        } else {
            let bytes = Arc::new(AtomicU64::new(0));
            self.request_size = RequestSize::Shared(Arc::clone(&bytes));
            RequestBytes::Shared(bytes)
        }
    }
}

#[inline]
fn count_response(
    meters: &RequestMeters,
    status: Option<u16>,
    extensions: Option<&Extensions>,
) -> &'static ResponseMeters {
    let response = meters.response(status, extensions);
    if let Some(requests) = &response.requests {
        requests.inc();
    }
    response
}

impl CallGuard<'_> {
    #[inline]
    pub(crate) fn returned(self) {
        self.0.end_call();
        std::mem::forget(self);
    }
}

impl Drop for CallGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.note_unwind();
    }
}

impl Drop for Exchange {
    #[inline]
    fn drop(&mut self) {
        if let Some(meters) = self.meters {
            self.abort(meters);
        }
    }
}
