//! Futures that are metered to their response, with axum's bodies.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::axum::body::Body;
use ::axum::response::{IntoResponse, Response};
use http_body::Body as _;
use pin_project_lite::pin_project;

use super::panics;
use crate::body::{RequestBody, ResponseBody};
use crate::exchange::{Ahead, Exchange, RequestTally, Running, Watch};

/// A body that says its length and is no longer than this is taken as sent. Nearly all of
/// them lie in memory as a whole, which axum hides; and to watch one costs an allocation,
/// a part of what it costs to send this much.
const SENT_AT_MOST: u64 = 16 << 10;

/// Counts a request's body as it passes. In place, since a request is large to move.
#[inline(never)]
pub(super) fn count(body: &mut Body, tally: RequestTally) {
    *body = Body::new(RequestBody::new(std::mem::take(body), Some(tally)));
}

/// A response is there: watches its body, where that is not as good as sent.
#[inline]
fn answer(response: &mut Response, exchange: &mut Exchange) {
    if !exchange.is_open() {
        return;
    }
    let body = response.body();
    let watch = match body.size_hint().exact() {
        Some(len) if len <= SENT_AT_MOST => Watch::Sent(len),
        None if body.is_end_stream() => Watch::Sent(0),
        length => Watch::Passing(length),
    };
    if let Some(ahead) = exchange.head(response.status(), response.extensions(), watch) {
        pass(response.body_mut(), ahead, exchange);
    }
}

/// Watches a response's body as it passes.
#[inline(never)]
fn pass(body: &mut Body, ahead: Ahead, exchange: &mut Exchange) {
    let passing = Some(ahead.pass(exchange));
    *body = Body::new(ResponseBody::new(std::mem::take(body), passing));
}

pin_project! {
    /// A handler's future.
    pub(super) struct OfHandler<F> {
        // Dropped first: what the handler holds goes while the request is in flight.
        #[pin]
        future: F,
        exchange: Exchange,
    }
}

impl<F> OfHandler<F> {
    /// What a handler's call returned, during which the exchange [ran](Exchange::run).
    #[inline]
    pub(super) fn new(future: F, exchange: Exchange) -> Self {
        Self { future, exchange }
    }
}

impl<F: Future<Output = Response>> Future for OfHandler<F> {
    type Output = Response;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response> {
        let this = self.project();
        let running = this.exchange.run();
        let mut polled = this.future.poll(cx);
        running.returned();
        // In place, since a response is large to move.
        if let Poll::Ready(response) = &mut polled {
            answer(response, this.exchange);
        }
        polled
    }
}

pin_project! {
    /// The future of a service, with what stands inside of it.
    pub struct OfService<F> {
        #[pin]
        future: F,
        exchange: Exchange,
    }
}

impl<F> OfService<F> {
    /// What a service's call returned, which was [`Inside`] of the exchange.
    #[inline]
    pub(super) fn new(future: F, exchange: Exchange) -> Self {
        Self { future, exchange }
    }
}

/// A service that runs inside of an exchange, which learns of panics that are caught there.
pub(super) struct Inside<'a> {
    running: Running<'a>,
    /// Who stands further out is not to learn of what is told here.
    outside: panics::Outside,
}

impl<'a> Inside<'a> {
    /// It begins to run.
    #[inline]
    pub(super) fn of(exchange: &'a mut Exchange) -> Self {
        Self { running: exchange.run(), outside: panics::watch() }
    }

    /// It has returned.
    #[inline]
    pub(super) fn returned(mut self) {
        if self.outside.end() && !self.running.panicked_inside() {
            panics::pass_on();
        }
        self.running.returned();
    }
}

impl<F, R, E> Future for OfService<F>
where
    F: Future<Output = Result<R, E>>,
    R: IntoResponse + 'static,
{
    type Output = Result<Response, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let inside = Inside::of(this.exchange);
        let mut polled = this.future.poll(cx);
        inside.returned();
        // Dropped without a response, it broke off.
        let Poll::Ready(Ok(found)) = &mut polled else {
            return polled.map(|found| found.map(IntoResponse::into_response));
        };
        // Mostly it is one already. It is looked at in place, and moved then: to copy it
        // right after it was written would have to wait until that has reached the cache.
        let in_place = (found as &mut dyn Any).downcast_mut::<Response>();
        let is_told = in_place.map(|response| answer(response, this.exchange)).is_some();
        polled.map(|found| {
            let mut response = found.map(IntoResponse::into_response);
            if let (Ok(response), false) = (&mut response, is_told) {
                answer(response, this.exchange);
            }
            response
        })
    }
}

pin_project! {
    /// A future whose meter stands further out, and is told when it panics.
    pub(super) struct Watched<F> {
        #[pin]
        future: F,
    }
}

impl<F> Watched<F> {
    #[inline]
    pub(super) fn new(future: F) -> Self {
        Self { future }
    }
}

impl<F: Future> Future for Watched<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        panics::tell(|| this.future.poll(cx))
    }
}
