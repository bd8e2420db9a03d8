//! Futures that meter a request up to its response, with axum's bodies.

use std::any::Any;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::axum::Error;
use ::axum::body::{Body, Bytes};
use ::axum::extract::Request;
use ::axum::response::{IntoResponse, Response};
use http_body::Body as _;
use http_body_util::BodyExt;
use pin_project_lite::pin_project;
use tower_service::Service;

use super::panic_note::{self, note_panic};
use crate::exchange::body::{RequestBody, ResponseBody};
use crate::exchange::head::{BodyEnd, may_be_panic};
use crate::exchange::request::Exchange;
use crate::exchange::request_size::RequestBytes;
use crate::exchange::response::RecordedHead;

/// A body that states its length and is no longer than this is treated as sent. Nearly all such
/// bodies are buffered, which axum hides, and watching one costs an allocation, a fraction of the
/// cost to send this much.
const SENT_AT_MOST: u64 = 16 << 10;

/// Counts a request's body as it passes. In place, since a request is large to move.
#[inline(never)]
pub(super) fn watch_request(body: &mut Body, count: RequestBytes) {
    *body = boxed(RequestBody { inner: std::mem::take(body), count: Some(count) });
}

/// A body around one of axum's. `Body::new` wraps each error in one more `Error`, and extractors look through
/// two of them for that of a limit. So the error is unwrapped first.
fn boxed(body: impl http_body::Body<Data = Bytes, Error = Error> + Send + 'static) -> Body {
    Body::new(body.map_err(Error::into_inner))
}

/// Records a response, and watches its body unless that is treated as sent.
#[inline]
fn record(response: &mut Response, exchange: &mut Exchange) {
    if !exchange.is_open() {
        return;
    }
    let body = response.body();
    let end = match body.size_hint().exact() {
        // The text of the body shows whether it is that of a panic.
        length if may_be_panic(Some(response.status().as_u16()), length) => {
            BodyEnd::Watched(length)
        }
        Some(len) if len <= SENT_AT_MOST => BodyEnd::WithHead(len),
        None if body.is_end_stream() => BodyEnd::WithHead(0),
        _ => BodyEnd::watched(body, response.headers()),
    };
    if let Some(head) = exchange.head(response.status(), response.extensions(), end) {
        watch_response(response.body_mut(), head, exchange);
    }
}

#[inline(never)]
fn watch_response(body: &mut Body, head: RecordedHead, exchange: &mut Exchange) {
    let transfer = Some(head.begin(exchange));
    *body = boxed(ResponseBody { inner: std::mem::take(body), transfer });
}

pin_project! {
    pub(super) struct HandlerFuture<F> {
        // Dropped first, so that the handler's state is freed while the request is in flight.
        #[pin]
        pub(super) future: F,
        pub(super) exchange: Exchange,
    }
}

impl<F: Future<Output = Response>> Future for HandlerFuture<F> {
    type Output = Response;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response> {
        let this = self.project();
        let call = this.exchange.call();
        let mut polled = this.future.poll(cx);
        call.returned();
        // In place, since a response is large to move.
        if let Poll::Ready(response) = &mut polled {
            record(response, this.exchange);
        }
        polled
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
        request: Request,
        open: impl FnOnce(&mut Exchange, &mut Request),
    ) -> Self {
        let mut exchange = ManuallyDrop::new(Exchange::closed());
        let future = inner.call_out_of_line(request, &mut exchange, open);
        Self { future, exchange: ManuallyDrop::into_inner(exchange) }
    }
}

/// The call of a service. It is a method of the service so that it is compiled together with the
/// service's own `call`, which can then be inlined; otherwise the request is moved once more.
trait CallOutOfLine: Service<Request> {
    /// Calls the service. If it panics the exchange ends here, since the caller does not drop it.
    fn call_out_of_line(
        &mut self,
        request: Request,
        exchange: &mut Exchange,
        open: impl FnOnce(&mut Exchange, &mut Request),
    ) -> Self::Future;
}

impl<S: Service<Request>> CallOutOfLine for S {
    #[inline(never)]
    fn call_out_of_line(
        &mut self,
        mut request: Request,
        exchange: &mut Exchange,
        open: impl FnOnce(&mut Exchange, &mut Request),
    ) -> S::Future {
        let mut guard = ServiceCallGuard::new(exchange);
        open(guard.exchange, &mut request);
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
    outer: panic_note::OuterNote,
    has_returned: bool,
}

impl<'a> ServiceCallGuard<'a> {
    #[inline]
    fn new(exchange: &'a mut Exchange) -> Self {
        Self { exchange, outer: panic_note::watch(), has_returned: false }
    }

    #[cold]
    #[inline(never)]
    fn panicked(exchange: &mut Exchange) {
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
            self.exchange.end_call();
        } else {
            Self::panicked(self.exchange);
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
        let mut polled = this.future.poll(cx);
        guard.has_returned = true;
        drop(guard);
        // An exchange that is dropped without a response is aborted.
        let Poll::Ready(Ok(output)) = &mut polled else {
            return polled.map(|output| output.map(IntoResponse::into_response));
        };
        // Mostly the output is a response already. It is recorded in place and moved afterwards: a
        // copy of bytes that were just written waits until the writes have reached the cache.
        let in_place = (output as &mut dyn Any).downcast_mut::<Response>();
        let is_recorded = in_place.map(|response| record(response, this.exchange)).is_some();
        polled.map(|output| {
            let mut response = output.map(IntoResponse::into_response);
            if let (Ok(response), false) = (&mut response, is_recorded) {
                record(response, this.exchange);
            }
            response
        })
    }
}

pin_project! {
    /// A future that notes its panic for a meter further out.
    pub(super) struct PanicWatchFuture<F> {
        #[pin]
        pub(super) future: F,
    }
}

impl<F: Future> Future for PanicWatchFuture<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        note_panic(|| this.future.poll(cx))
    }
}
