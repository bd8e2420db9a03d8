//! A request in flight while the body of its response is sent.

use bytes::Buf;

use super::caught_panic;
use super::request::{Exchange, Latency};
use crate::labels::outcome::Outcome;
use crate::meters::request::{RequestMeters, ResponseMeters};

#[derive(Debug)]
pub(crate) struct ResponseTransfer {
    pub(super) exchange: Exchange,
    meters: &'static ResponseMeters,
    /// The outcome if the whole body is sent.
    outcome: Outcome,
    /// The bytes that were sent, and the length of the body, if the body or the head states it.
    sent: u64,
    length: Option<u64>,
    /// Whether the body may be that of a panic that was caught.
    may_be_panic: bool,
}

/// A response whose head is recorded and whose body is to be watched.
#[derive(Debug)]
pub(crate) struct RecordedHead {
    pub(super) meters: &'static ResponseMeters,
    pub(super) outcome: Outcome,
    pub(super) length: Option<u64>,
    pub(super) may_be_panic: bool,
}

impl RecordedHead {
    /// Takes over an exchange as the body begins.
    #[inline]
    pub(crate) fn begin(self, exchange: &mut Exchange) -> ResponseTransfer {
        let Self { meters, outcome, length, may_be_panic } = self;
        let exchange = std::mem::replace(exchange, Exchange::closed());
        ResponseTransfer { exchange, meters, outcome, sent: 0, length, may_be_panic }
    }
}

impl ResponseTransfer {
    #[inline]
    pub(super) fn add(&mut self, data: Option<&impl Buf>) {
        let Some(data) = data else { return };
        self.sent += data.remaining() as u64;
        if self.may_be_panic && data.chunk() == caught_panic::BODY {
            self.outcome = Outcome::Panicked;
        }
    }

    pub(super) fn add_len(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// Ends the request: the body has ended.
    #[inline]
    pub(super) fn end(&mut self) {
        if let Some(meters) = self.exchange.meters {
            self.finish(meters).keep_trace();
        }
    }

    /// The body failed: it is not whole, however many bytes were sent.
    pub(super) fn fail(&mut self) {
        self.length = Some(u64::MAX);
    }

    /// Ends the request. The body is whole if as many bytes were sent as its length, or, without
    /// a length, if it has ended.
    fn finish(&mut self, meters: &'static RequestMeters) -> Latency {
        let Self { exchange, meters: response, outcome, sent, length, .. } = self;
        let is_whole = !exchange.unwound && length.is_none_or(|length| length <= *sent);
        let outcome = |exchange: &Exchange, took| {
            if is_whole { *outcome } else { exchange.abort_outcome(meters, took) }
        };
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
