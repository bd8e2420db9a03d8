//! A request arrives: from then on it is in flight, and the service's code is called for it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use http::{Method, Request};
use http_body::Body;

use super::aborted_body;
use super::attributes::RequestHead;
use super::clock::Instant;
use super::costs::{Costs, PollStart};
use super::meters::{EndpointMeters, RequestMeters};
use super::request_size::{RequestBytes, RequestSize, declared_size};

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
    pub(super) start: Instant,
    pub(super) request_size: RequestSize,
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
    pub(super) costs: Costs,
}

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
            costs: Costs::NOTHING,
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
        self.start = Instant::now();
        // Mostly nobody reads the head, so it is made where it is read.
        let meters = meters.request(|| RequestHead::from(request));
        self.enter(meters, request.method());
        self.has_body = !request.body().is_end_stream();
        self.request_size = RequestSize::Known(match meters.declared_request_size {
            true => declared_size(RequestHead::from(request)),
            false => 0,
        });
        if self.has_body { Some(self.request_bytes(meters)) } else { None }
    }

    /// Records that the request is in flight at these meters.
    #[inline(always)]
    pub(super) fn enter(&mut self, meters: &'static RequestMeters, method: &Method) {
        meters.in_flight.inc();
        self.meters = Some(meters);
        self.is_head = *method == Method::HEAD;
        self.is_connect = *method == Method::CONNECT;
        self.costs.measure_for(meters);
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

    #[inline]
    #[cfg(feature = "axum")]
    pub(crate) fn is_open(&self) -> bool {
        self.meters.is_some()
    }
}

/// A call of the service's code on an exchange's behalf. If this is dropped, the call panicked.
#[derive(Debug)]
pub(crate) struct CallGuard<'a> {
    exchange: &'a mut Exchange,
    start: PollStart,
}

impl Exchange {
    #[inline]
    pub(crate) fn call(&mut self) -> CallGuard<'_> {
        self.begin_call();
        CallGuard { exchange: self, start: PollStart::UNMEASURED }
    }

    /// As [`call`](Self::call), for a poll of the handler: its costs are measured.
    #[inline]
    pub(crate) fn poll(&mut self) -> CallGuard<'_> {
        self.begin_call();
        CallGuard { start: self.begin_poll(), exchange: self }
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

    /// A poll of the handler begins: its costs are measured.
    #[inline]
    pub(crate) fn begin_poll(&self) -> PollStart {
        self.costs.begin_poll(self.start)
    }

    /// The poll has ended, on the same thread.
    #[inline]
    pub(crate) fn end_poll(&mut self, start: PollStart) {
        self.costs.end_poll(self.start, start);
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
}

impl CallGuard<'_> {
    #[inline]
    pub(crate) fn returned(self) {
        self.exchange.end_poll(self.start);
        self.exchange.end_call();
        std::mem::forget(self);
    }
}

impl Drop for CallGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.exchange.end_poll(self.start);
        self.exchange.note_unwind();
    }
}
