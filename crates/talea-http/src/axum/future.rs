//! Futures that are metered to their response, with axum's bodies.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::axum::body::Body;
use ::axum::response::{IntoResponse, Response};
use http_body::Body as _;
use pin_project_lite::pin_project;

use super::panics;
use crate::body::{RequestBody, ResponseBody};
use crate::exchange::{Exchange, RequestTally, Watch};

/// A body that says its length and is no longer than this is taken as sent. Nearly all of
/// them lie in memory as a whole, which axum hides; and to watch one costs an allocation,
/// a part of what it costs to send this much.
const SENT_AT_MOST: u64 = 16 << 10;

/// Counts a request's body as it passes, if there is one. In place, since a request is large
/// to move.
#[inline]
pub(super) fn count(body: &mut Body, tally: Option<RequestTally>) {
    if tally.is_some() {
        *body = Body::new(RequestBody::new(std::mem::take(body), tally));
    }
}

/// A response is there: watches its body, where that is not as good as sent.
#[inline]
fn answer(response: &mut Response, exchange: &mut Option<Exchange>) {
    let Some(open) = exchange else { return };
    let body = response.body();
    let watch = match body.size_hint().exact() {
        Some(len) if len <= SENT_AT_MOST => Watch::Sent(len),
        None if body.is_end_stream() => Watch::Sent(0),
        length => Watch::Passing(length),
    };
    let ahead = open.head(response.status(), response.extensions(), watch);
    let passing = ahead.and_then(|ahead| exchange.take().map(|exchange| ahead.pass(exchange)));
    if passing.is_some() {
        let body = response.body_mut();
        *body = Body::new(ResponseBody::new(std::mem::take(body), passing));
    }
}

pin_project! {
    /// A handler's future.
    pub(super) struct OfHandler<F> {
        // Dropped first: what the handler holds goes while the request is in flight.
        #[pin]
        future: F,
        exchange: Option<Exchange>,
    }
}

impl<F> OfHandler<F> {
    /// Calls a handler.
    #[inline]
    pub(super) fn call(mut exchange: Option<Exchange>, call: impl FnOnce() -> F) -> Self {
        // Whatever panics, the exchange is dropped while it is busy.
        let future = call();
        if let Some(exchange) = &mut exchange {
            exchange.rest();
        }
        Self { future, exchange }
    }
}

impl<F: Future<Output = Response>> Future for OfHandler<F> {
    type Output = Response;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response> {
        let this = self.project();
        if let Some(exchange) = this.exchange {
            exchange.work();
        }
        let polled = this.future.poll(cx);
        if let Some(exchange) = this.exchange {
            exchange.rest();
        }
        let mut response = ready!(polled);
        answer(&mut response, this.exchange);
        Poll::Ready(response)
    }
}

pin_project! {
    /// The future of a service, with what stands inside of it.
    pub struct OfService<F> {
        #[pin]
        future: F,
        exchange: Option<Exchange>,
    }
}

impl<F> OfService<F> {
    /// Calls a service.
    #[inline]
    pub(super) fn call(mut exchange: Option<Exchange>, call: impl FnOnce() -> F) -> Self {
        let future = watched(&mut exchange, call);
        Self { future, exchange }
    }
}

/// Runs code of others on an exchange's behalf.
#[inline]
fn watched<T>(exchange: &mut Option<Exchange>, inside: impl FnOnce() -> T) -> T {
    let Some(exchange) = exchange else { return inside() };
    exchange.work();
    let (done, panicked) = panics::watch(inside);
    exchange.rest();
    if panicked {
        exchange.panicked_inside();
    }
    done
}

impl<F, R, E> Future for OfService<F>
where
    F: Future<Output = Result<R, E>>,
    R: IntoResponse,
{
    type Output = Result<Response, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let polled = watched(this.exchange, || this.future.poll(cx));
        // Dropped without a response, it broke off.
        Poll::Ready(ready!(polled).map(|response| {
            let mut response = response.into_response();
            answer(&mut response, this.exchange);
            response
        }))
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
