//! A request ends: with the head of its response, with the body behind it, or without either.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Buf;
use http::Extensions;
use talea::{Histogram, Seconds};

use super::arrival::Exchange;
use super::marks;
use super::meters::{OutcomeMeters, RequestMeters, ResponseMeters};
use super::request_size::RequestSize;
use crate::labels::outcome::Outcome;

impl Exchange {
    /// Ends a request whose response's head and end come together. Without an outcome, the request
    /// did not complete.
    #[inline]
    pub(super) fn record_whole(
        &mut self,
        meters: &'static RequestMeters,
        (status, extensions): (Option<u16>, Option<&Extensions>),
        outcome: Option<Outcome>,
        sent: u64,
    ) -> Latency {
        let took = self.close(meters);
        self.costs.record(took);
        let response = meters.count_response(status, extensions);
        let outcome = outcome.unwrap_or_else(|| self.abort_outcome(meters, took));
        let end = meters.outcome(response, outcome);
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
    fn record_end(
        &mut self,
        meters: &'static RequestMeters,
        response: &'static ResponseMeters,
        outcome: Option<Outcome>,
        sent: u64,
    ) -> Latency {
        let took = self.close(meters);
        let outcome = outcome.unwrap_or_else(|| self.abort_outcome(meters, took));
        let end = meters.outcome(response, outcome);
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

    /// The outcome of a request that did not complete.
    fn abort_outcome(&self, meters: &RequestMeters, took: Duration) -> Outcome {
        let limit = meters.families.timed_out_after;
        if self.unwound {
            Outcome::Panicked
        } else if limit.is_some_and(|limit| took >= limit) {
            Outcome::TimedOut
        } else {
            Outcome::Aborted
        }
    }

    #[cold]
    fn abort(&mut self, meters: &'static RequestMeters) -> Latency {
        // A panic that is caught further out becomes a 500.
        let status = self.unwound.then_some(500);
        self.record_whole(meters, (status, None), None, 0)
    }

    /// Ends a request whose service returned an error in place of a response, while it is polled.
    #[cold]
    pub(crate) fn refuse(&mut self) {
        if let Some(meters) = self.meters {
            self.abort(meters).keep_trace();
        }
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

/// A request in flight while the body of its response is sent.
#[derive(Debug)]
pub(crate) struct ResponseTransfer {
    pub(super) exchange: Exchange,
    pub(super) meters: &'static ResponseMeters,
    /// The outcome if the whole body is sent.
    pub(super) outcome: Outcome,
    /// The bytes that were sent, and the length of the body, if the body or the head states it.
    pub(super) sent: u64,
    pub(super) length: Option<u64>,
    /// Whether the body may be the one of a caught panic.
    pub(super) may_be_panic: bool,
    /// Whether the body failed: it is not whole, however many bytes were sent.
    pub(super) failed: bool,
}

impl ResponseTransfer {
    #[inline]
    pub(super) fn add(&mut self, data: Option<&impl Buf>) {
        let Some(data) = data else { return };
        self.sent += data.remaining() as u64;
        if self.may_be_panic && data.chunk() == marks::PANIC_BODY {
            self.outcome = Outcome::Panicked;
        }
    }

    /// Ends the request: the body has ended, or failed.
    #[inline]
    pub(super) fn end(&mut self) {
        if let Some(meters) = self.exchange.meters {
            self.finish(meters).keep_trace();
        }
    }

    /// Ends the request: the body has failed.
    #[cold]
    pub(super) fn fail(&mut self) {
        self.failed = true;
        self.end();
    }

    /// Ends the request. The body is whole if as many bytes were sent as its length, or, without
    /// a length, if it has ended.
    fn finish(&mut self, meters: &'static RequestMeters) -> Latency {
        let Self { exchange, meters: response, outcome, sent, length, failed, .. } = self;
        let is_whole = !exchange.unwound && !*failed && length.is_none_or(|length| length <= *sent);
        let failure = Some(meters.families.body_failure)
            .filter(|failure| *failed && *failure == Outcome::Failed);
        let outcome = if is_whole { Some(*outcome) } else { failure };
        exchange.record_end(meters, response, outcome, *sent)
    }
}

impl Drop for ResponseTransfer {
    fn drop(&mut self) {
        let Some(meters) = self.exchange.meters else { return };
        // Without a length, only the end of the body shows that it is whole.
        self.length.get_or_insert(u64::MAX);
        self.finish(meters);
    }
}

/// A latency that was recorded, and that may have an exemplar.
#[derive(Clone, Copy, Debug)]
pub(super) struct Latency {
    pub(super) histogram: Option<&'static Histogram<Seconds>>,
    pub(super) took: Duration,
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
