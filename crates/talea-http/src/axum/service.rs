//! Services of axum's, with a meter: they may have layers inside, which may catch panics.

use std::any::Any;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::axum::extract::Request;
use ::axum::response::{IntoResponse, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::handler::{Door, MeteredHandler, arrive, respond};
use super::panic_watch::{self, OuterNote};
use crate::request::arrival::Exchange;
use crate::request::costs::PollStart;

impl<S, D> Service<Request> for MeteredHandler<S, D>
where
    S: Service<Request>,
    S::Response: IntoResponse + 'static,
    D: Door<S>,
{
    type Response = Response;
    type Error = S::Error;
    type Future = ServiceFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    // Out of line, see `ServiceFuture::call`.
    #[inline(never)]
    fn call(&mut self, request: Request) -> Self::Future {
        ServiceFuture::call(&mut self.inner, &self.door, request)
    }
}

pin_project! {
    /// The future of a metered service.
    pub struct ServiceFuture<F> {
        #[pin]
        future: F,
        exchange: Exchange,
    }
}

impl<F> ServiceFuture<F> {
    /// Opens an exchange and calls the service.
    ///
    /// The service's future is large to move. The compiler has it written in its final place if it
    /// is returned by a function out of line and nothing here is dropped if that panics. So that
    /// function handles the panic. Callers of this one are out of line too; otherwise the whole
    /// future is moved once more.
    #[inline]
    pub(super) fn call<S: Service<Request, Future = F>>(
        inner: &mut S,
        door: &impl Door<S>,
        request: Request,
    ) -> Self {
        let mut exchange = ManuallyDrop::new(Exchange::closed());
        let future = inner.call_out_of_line(request, &mut exchange, door);
        Self { future, exchange: ManuallyDrop::into_inner(exchange) }
    }
}

/// The call of a service. It is a method of the service so that it is compiled together with the
/// service's own `call`, which can then be inlined; otherwise the request is moved once more.
trait CallOutOfLine: Service<Request> + Sized {
    /// Calls the service. If it panics the exchange ends here, since the caller does not drop it.
    fn call_out_of_line(
        &mut self,
        request: Request,
        exchange: &mut Exchange,
        door: &impl Door<Self>,
    ) -> Self::Future;
}

impl<S: Service<Request>> CallOutOfLine for S {
    #[inline(never)]
    fn call_out_of_line(
        &mut self,
        mut request: Request,
        exchange: &mut Exchange,
        door: &impl Door<Self>,
    ) -> S::Future {
        let mut guard = ServiceCallGuard::new(exchange);
        arrive(door, guard.exchange, &mut request);
        guard.exchange.begin_call();
        let future = self.call(request);
        guard.has_returned = true;
        future
    }
}

/// A call of a service for an exchange: notes panics that are caught inside, and ends the exchange
/// at a panic that is not.
struct ServiceCallGuard<'a> {
    exchange: &'a mut Exchange,
    /// Hides panics inside from enclosing meters.
    outer: OuterNote,
    /// The beginning of a poll.
    start: PollStart,
    has_returned: bool,
}

impl<'a> ServiceCallGuard<'a> {
    #[inline]
    fn new(exchange: &'a mut Exchange) -> Self {
        let start = PollStart::UNMEASURED;
        Self { exchange, outer: panic_watch::watch(), start, has_returned: false }
    }

    #[cold]
    #[inline(never)]
    fn panicked(exchange: &mut Exchange, start: PollStart) {
        exchange.end_poll(start);
        exchange.note_unwind();
        *exchange = Exchange::closed();
    }
}

impl Drop for ServiceCallGuard<'_> {
    // Always, since it runs for each request.
    #[inline(always)]
    fn drop(&mut self) {
        if self.has_returned {
            self.outer.end(self.exchange);
            self.exchange.end_poll(self.start);
            self.exchange.end_call();
        } else {
            Self::panicked(self.exchange, self.start);
        }
    }
}

impl<F, R, E> Future for ServiceFuture<F>
where
    F: Future<Output = Result<R, E>>,
    R: IntoResponse + 'static,
{
    type Output = Result<Response, E>;

    // Always: in calls this deep, the processor's predictor of return addresses overflows.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut guard = ServiceCallGuard::new(this.exchange);
        guard.exchange.begin_call();
        guard.start = guard.exchange.begin_poll();
        let mut polled = this.future.poll(cx);
        guard.has_returned = true;
        drop(guard);
        let Poll::Ready(Ok(output)) = &mut polled else {
            if polled.is_ready() {
                this.exchange.refuse();
            }
            return polled.map(|output| output.map(IntoResponse::into_response));
        };
        // Mostly the output is a response already. It is recorded in place and moved afterwards: a
        // copy of bytes that were just written waits until the writes have reached the cache.
        let in_place = (output as &mut dyn Any).downcast_mut::<Response>();
        let is_recorded = in_place.map(|response| respond(response, this.exchange)).is_some();
        polled.map(|output| {
            let mut response = output.map(IntoResponse::into_response);
            if let (Ok(response), false) = (&mut response, is_recorded) {
                respond(response, this.exchange);
            }
            response
        })
    }
}
