//! The head of a response is sent: it ends the request, or the body follows.

use http::{Extensions, Response, StatusCode};
use http_body::Body;

use super::arrival::Exchange;
use super::end::{Latency, ResponseTransfer};
use super::marks::{self, CaughtPanic, HandlerError};
use super::meters::{RequestMeters, ResponseMeters};
use super::request_size::content_length;
use super::upgrade::UpgradeGuard;
use crate::labels::outcome::Outcome;

/// How the end of a response's body is found.
#[derive(Clone, Copy, Debug)]
pub(super) enum BodyEnd {
    /// With the head: this number of bytes is buffered, and treated as sent.
    WithHead(u64),
    /// By watching the body, whose length may be known.
    Watched(Option<u64>),
}

/// A response whose head is recorded and whose body is to be watched.
#[derive(Debug)]
pub(crate) struct RecordedHead {
    meters: &'static ResponseMeters,
    outcome: Outcome,
    length: Option<u64>,
    may_be_panic: bool,
}

impl RecordedHead {
    /// Takes over an exchange as the body begins.
    #[inline]
    pub(crate) fn begin(self, exchange: &mut Exchange) -> ResponseTransfer {
        let Self { meters, outcome, length, may_be_panic } = self;
        let exchange = std::mem::replace(exchange, Exchange::closed());
        ResponseTransfer { exchange, meters, outcome, sent: 0, length, may_be_panic, failed: false }
    }
}

impl Exchange {
    /// Records a response. A body that states its length is treated as sent with the head if it is
    /// not longer than `sent_at_most`. If the body is to be watched, this returns the state for that;
    /// otherwise the request has ended.
    #[inline]
    pub(crate) fn respond(
        &mut self,
        response: &Response<impl Body>,
        sent_at_most: u64,
    ) -> Option<RecordedHead> {
        self.meters?;
        let (status, body) = (response.status(), response.body());
        let end = match body.size_hint().exact() {
            // The text of the body shows whether it is the body of a panic.
            length if may_be_panic(status.as_u16(), length) => BodyEnd::Watched(length),
            Some(length) if length <= sent_at_most => BodyEnd::WithHead(length),
            None if body.is_end_stream() => BodyEnd::WithHead(0),
            // A server of HTTP/1 sends no more than the head declares, and does not ask the body
            // for its end.
            length => BodyEnd::Watched(length.or_else(|| content_length(response.headers()))),
        };
        self.head(status, response.extensions(), end)
    }

    /// Records the head of a response, as [`respond`](Self::respond) does.
    #[inline]
    pub(super) fn head(
        &mut self,
        status: StatusCode,
        extensions: &Extensions,
        end: BodyEnd,
    ) -> Option<RecordedHead> {
        let meters = self.meters?;
        if meters.counts_errors {
            self.failed = is_failure(status, extensions);
        }
        let outcome = match status.as_u16() {
            _ if self.caught_panic || is_marked_panic(status, extensions) => Outcome::Panicked,
            // Request Timeout, Gateway Timeout (RFC 9110, 15.5.9 and 15.6.5).
            408 | 504 => Outcome::TimedOut,
            // The client that would read the response has gone, unless a limit ended the body: 413.
            status if self.aborted_body && status != 413 => Outcome::Aborted,
            _ => Outcome::Complete,
        };
        if status == StatusCode::SWITCHING_PROTOCOLS && self.upgrade(meters, status, extensions) {
            return None;
        }
        let is_head_alone =
            self.is_head || self.is_connect && status.is_success() || has_no_body(status);
        let sent = match if is_head_alone { BodyEnd::WithHead(0) } else { end } {
            BodyEnd::Watched(length) => {
                let may_be_panic = may_be_panic(status.as_u16(), length);
                let meters = self.record_head(meters, status, extensions);
                return Some(RecordedHead { meters, outcome, length, may_be_panic });
            }
            BodyEnd::WithHead(0) if self.tunnels(meters, status, extensions) => return None,
            BodyEnd::WithHead(bytes) => bytes,
        };
        let response = (Some(status.as_u16()), Some(extensions));
        self.record_whole(meters, response, Some(outcome), sent).keep_trace();
        None
    }

    /// Records the head of a response whose body is still to be sent.
    #[inline(never)]
    fn record_head(
        &mut self,
        meters: &'static RequestMeters,
        status: StatusCode,
        extensions: &Extensions,
    ) -> &'static ResponseMeters {
        let took = self.start.elapsed();
        self.costs.record(took);
        let response = meters.count_response(Some(status.as_u16()), Some(extensions));
        if let Some(to_head) = response.to_head {
            to_head.observe(took);
        }
        Latency { histogram: response.to_head, took }.keep_trace();
        response
    }

    /// Whether a response without a body hands the request to a guard: over HTTP/2 a WebSocket begins
    /// with a 200 to an extended `CONNECT` (RFC 8441, 5), in place of a 101.
    #[cold]
    fn tunnels(
        &mut self,
        meters: &'static RequestMeters,
        status: StatusCode,
        extensions: &Extensions,
    ) -> bool {
        status == StatusCode::OK && self.upgrade(meters, status, extensions)
    }

    /// Hands the request to the guard of its upgraded connection, if there is one.
    #[cold]
    fn upgrade(
        &mut self,
        meters: &'static RequestMeters,
        status: StatusCode,
        extensions: &Extensions,
    ) -> bool {
        let Some(guard) = extensions.get::<UpgradeGuard>() else { return false };
        let meters = self.record_head(meters, status, extensions);
        let (outcome, length) = (Outcome::Complete, Some(0));
        let head = RecordedHead { meters, outcome, length, may_be_panic: false };
        guard.keep(head.begin(self));
        true
    }
}

#[inline]
pub(super) fn is_marked_panic(status: StatusCode, extensions: &Extensions) -> bool {
    status.is_server_error() && extensions.get::<CaughtPanic>().is_some()
}

/// Whether a response may be the one of a caught panic, by its status and length.
#[inline]
fn may_be_panic(status: u16, length: Option<u64>) -> bool {
    status == marks::PANIC_STATUS && length == Some(marks::PANIC_BODY.len() as u64)
}

fn is_failure(status: StatusCode, extensions: &Extensions) -> bool {
    status.is_server_error() || extensions.get::<HandlerError>().is_some()
}

/// Whether a response of this status is its head alone (RFC 9110, 6.4.1).
#[inline]
fn has_no_body(status: StatusCode) -> bool {
    // Most responses are a 200.
    status != StatusCode::OK && (status.is_informational() || matches!(status.as_u16(), 204 | 304))
}
