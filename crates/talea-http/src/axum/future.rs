//! Futures that are metered to their response, with axum's bodies.

use std::any::Any;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::axum::body::Body;
use ::axum::extract::Request;
use ::axum::response::{IntoResponse, Response};
use http_body::Body as _;
use pin_project_lite::pin_project;
use tower_service::Service;

use super::panics;
use crate::body::{RequestBody, ResponseBody};
use crate::exchange::{Ahead, Exchange, RequestTally, Watch, may_be_panic};

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
        // What it says tells whether it stands for a panic.
        length if may_be_panic(Some(response.status().as_u16()), length) => Watch::Passing(length),
        Some(len) if len <= SENT_AT_MOST => Watch::Sent(len),
        None if body.is_end_stream() => Watch::Sent(0),
        _ => Watch::passing(body, response.headers()),
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
    /// A service's call, for which an exchange is opened before.
    ///
    /// The service's future is large to move. It is written where it stays if it comes from a
    /// function out of line, and nothing has to be dropped should that panic: so that function
    /// sees to it. Who asks for this is out of line too, or the whole is moved once more.
    #[inline]
    pub(super) fn of<S: Service<Request, Future = F>>(
        inner: &mut S,
        request: Request,
        open: impl FnOnce(&mut Exchange, &mut Request),
    ) -> Self {
        let mut exchange = ManuallyDrop::new(Exchange::closed());
        let future = inner.called(request, &mut exchange, open);
        Self { future, exchange: ManuallyDrop::into_inner(exchange) }
    }
}

/// What is called. This is a method of the service's so that it is compiled beside the
/// service's own, which can then become a part of it: else the request is moved once more.
trait Called: Service<Request> {
    /// Calls it. If that panics the exchange ends here, since nobody drops it.
    fn called(
        &mut self,
        request: Request,
        exchange: &mut Exchange,
        open: impl FnOnce(&mut Exchange, &mut Request),
    ) -> Self::Future;
}

impl<S: Service<Request>> Called for S {
    #[inline(never)]
    fn called(
        &mut self,
        mut request: Request,
        exchange: &mut Exchange,
        open: impl FnOnce(&mut Exchange, &mut Request),
    ) -> S::Future {
        let mut inside = Inside::of(exchange);
        open(inside.exchange, &mut request);
        inside.exchange.begin();
        let future = self.call(request);
        inside.has_returned = true;
        future
    }
}

/// A service that runs inside of an exchange, which learns of panics that are caught there,
/// and ends with one that is not.
struct Inside<'a> {
    exchange: &'a mut Exchange,
    /// Who stands further out is not to learn of what is told here.
    outside: panics::Outside,
    has_returned: bool,
}

impl<'a> Inside<'a> {
    #[inline]
    fn of(exchange: &'a mut Exchange) -> Self {
        Self { exchange, outside: panics::watch(), has_returned: false }
    }

    #[cold]
    #[inline(never)]
    fn panicked(exchange: &mut Exchange) {
        exchange.unwind();
        *exchange = Exchange::closed();
    }
}

impl Drop for Inside<'_> {
    // Always, as a part of what is done for each request.
    #[inline(always)]
    fn drop(&mut self) {
        if self.has_returned {
            self.outside.end(self.exchange);
            self.exchange.returned();
        } else {
            Self::panicked(self.exchange);
        }
    }
}

impl<F, R, E> Future for OfService<F>
where
    F: Future<Output = Result<R, E>>,
    R: IntoResponse + 'static,
{
    type Output = Result<Response, E>;

    // Always: of calls that lie so deep, processors forget where the outermost return to.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut inside = Inside::of(this.exchange);
        inside.exchange.begin();
        let mut polled = this.future.poll(cx);
        inside.has_returned = true;
        drop(inside);
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
