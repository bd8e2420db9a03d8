//! Metering one request: from its arrival to the head of its response, or to
//! the moment when its future is dropped.

use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use ::axum::response::{IntoResponse, Response};
use fastant::Instant;
use pin_project_lite::pin_project;

use crate::endpoint::Meters;

/// A declared endpoint. Its meters come when the whole declaration is known; it
/// lives as long as the program, as a route does.
///
/// It can be met at several levels: around the handler (0), and outside of each
/// layer that was put around it since (1, 2, …). Only the outermost meters, so a
/// request is observed once, together with all that stands inside.
#[derive(Debug, Default)]
pub(crate) struct Endpoint {
    meters: OnceLock<Meters>,
    outermost: AtomicU32,
}

impl Endpoint {
    pub(crate) fn declare() -> &'static Self {
        Box::leak(Box::default())
    }

    pub(crate) fn set_meters(&self, meters: Meters) {
        // Each endpoint has one declaration, which is metered once.
        let _ = self.meters.set(meters);
    }

    /// Another layer is put around it; returns the level outside of that.
    pub(crate) fn add_level(&self) -> u32 {
        self.outermost.fetch_add(1, Relaxed) + 1
    }

    /// Starts to meter a request, if this level is the outermost.
    #[inline]
    pub(crate) fn start(&'static self, level: u32) -> Option<InFlight> {
        if self.outermost.load(Relaxed) != level {
            return None;
        }
        let meters = self.meters.get()?;
        meters.started();
        Some(InFlight { meters, start: Instant::now() })
    }
}

/// A request in flight. It ends once: with a status, or, where it is dropped,
/// without.
#[derive(Debug)]
pub(crate) struct InFlight {
    meters: &'static Meters,
    start: Instant,
}

impl InFlight {
    #[inline]
    fn end(self, status: u16) {
        self.meters.ended(Some(status), self.start.elapsed());
        std::mem::forget(self);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        // A panic becomes a 500 where something catches it; a client that went
        // away gets no status.
        let status = std::thread::panicking().then_some(500);
        self.meters.ended(status, self.start.elapsed());
    }
}

pin_project! {
    /// A future that is metered to its response.
    pub struct Metered<F> {
        // Dropped first: what the handler holds goes while it is in flight.
        #[pin]
        future: F,
        in_flight: Option<InFlight>,
    }
}

impl<F> Metered<F> {
    #[inline]
    pub(crate) fn new(in_flight: Option<InFlight>, future: F) -> Self {
        Self { future, in_flight }
    }
}

impl<F: Future<Output = Response>> Future for Metered<F> {
    type Output = Response;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response> {
        let this = self.project();
        let response = ready!(this.future.poll(cx));
        if let Some(in_flight) = this.in_flight.take() {
            in_flight.end(response.status().as_u16());
        }
        Poll::Ready(response)
    }
}

pin_project! {
    /// The same for the future of a service.
    pub struct MeteredResult<F> {
        #[pin]
        future: F,
        in_flight: Option<InFlight>,
    }
}

impl<F> MeteredResult<F> {
    #[inline]
    pub(crate) fn new(in_flight: Option<InFlight>, future: F) -> Self {
        Self { future, in_flight }
    }
}

impl<F, R, E> Future for MeteredResult<F>
where
    F: Future<Output = Result<R, E>>,
    R: IntoResponse,
{
    type Output = Result<Response, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(this.future.poll(cx)).map(IntoResponse::into_response);
        if let (Some(in_flight), Ok(response)) = (this.in_flight.take(), &answer) {
            in_flight.end(response.status().as_u16());
        }
        Poll::Ready(answer)
    }
}
