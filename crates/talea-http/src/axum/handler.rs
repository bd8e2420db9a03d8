//! Handlers and services, wrapped with a meter before axum boxes them: from a request's door to its
//! response.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::axum::Error;
use ::axum::body::{Body, Bytes};
use ::axum::extract::Request;
use ::axum::handler::Handler;
use ::axum::response::Response;
use http_body_util::BodyExt;
use pin_project_lite::pin_project;

use crate::request::arrival::Exchange;
use crate::request::bodies::{RequestBody, ResponseBody};
use crate::request::meters::EndpointMeters;
use crate::request::request_size::RequestBytes;
use crate::request::response::RecordedHead;

/// Finds the meters of a request to an inner handler or service of type `H`: all that the ways to
/// meter it differ in.
pub(super) trait Door<H>: Clone + Send + Sync + 'static {
    /// The meters of a request. `None` if a meter further out or inside records it.
    fn meters(&self, request: &Request) -> Option<&'static EndpointMeters>;
}

/// The handler or service of one endpoint.
impl<H> Door<H> for &'static EndpointMeters {
    #[inline(always)]
    fn meters(&self, _: &Request) -> Option<&'static EndpointMeters> {
        Some(self)
    }
}

/// A handler or a service with its meter.
#[derive(Clone, Debug)]
pub(super) struct MeteredHandler<H, D> {
    pub(super) inner: H,
    pub(super) door: D,
}

impl<H, D, T, S> Handler<T, S> for MeteredHandler<H, D>
where
    H: Handler<T, S>,
    D: Door<H>,
    T: 'static,
    S: Send + 'static,
{
    type Future = HandlerFuture<H::Future>;

    #[inline]
    fn call(self, mut request: Request, state: S) -> Self::Future {
        let mut exchange = Exchange::closed();
        arrive(&self.door, &mut exchange, &mut request);
        let call = exchange.call();
        let future = self.inner.call(request, state);
        call.returned();
        HandlerFuture { future, exchange }
    }
}

pin_project! {
    pub(super) struct HandlerFuture<F> {
        // Dropped first, so that the handler's state is freed while the request is in flight.
        #[pin]
        future: F,
        exchange: Exchange,
    }
}

impl<F: Future<Output = Response>> Future for HandlerFuture<F> {
    type Output = Response;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response> {
        let this = self.project();
        let call = this.exchange.poll();
        let mut polled = this.future.poll(cx);
        call.returned();
        // In place, since a response is large to move.
        if let Poll::Ready(response) = &mut polled {
            respond(response, this.exchange);
        }
        polled
    }
}

/// Adds a handler or a service to a router: with its meters, or, if there are none, with a watch for
/// panics.
macro_rules! add {
    ($meters:expr, |$inner:ident| $add:expr) => {
        match $meters {
            None => {
                let $inner = $crate::axum::panic_watch::PanicWatch($inner);
                $add
            }
            Some(door) => {
                let $inner = $crate::axum::handler::MeteredHandler { inner: $inner, door };
                $add
            }
        }
    };
}
pub(super) use add;

/// Records that a request arrived, and watches its body if it has one.
#[inline(always)]
pub(super) fn arrive<H>(door: &impl Door<H>, exchange: &mut Exchange, request: &mut Request) {
    let Some(meters) = door.meters(request) else { return };
    if let Some(count) = exchange.open(meters, request) {
        watch_request(request.body_mut(), count);
    }
}

/// A body that states its length and is no longer than this is treated as sent. Nearly all such
/// bodies are buffered, which axum hides, and watching one costs an allocation, a fraction of the
/// cost to send this much.
const SENT_AT_MOST: u64 = 16 << 10;

/// Records a response, and watches its body unless that is treated as sent.
#[inline]
pub(super) fn respond(response: &mut Response, exchange: &mut Exchange) {
    if let Some(head) = exchange.respond(response, SENT_AT_MOST) {
        watch_response(response.body_mut(), head, exchange);
    }
}

/// Counts a request's body as it passes. In place, since a request is large to move.
#[inline(never)]
fn watch_request(body: &mut Body, count: RequestBytes) {
    *body = boxed(RequestBody { inner: std::mem::take(body), count: Some(count) });
}

#[inline(never)]
fn watch_response(body: &mut Body, head: RecordedHead, exchange: &mut Exchange) {
    let transfer = Some(head.begin(exchange));
    *body = boxed(ResponseBody { inner: std::mem::take(body), transfer });
}

/// A body around one of axum's. `Body::new` wraps each error in one more `Error`, and extractors look
/// through two of them for the error of a limit. So the error is unwrapped first.
fn boxed(body: impl http_body::Body<Data = Bytes, Error = Error> + Send + 'static) -> Body {
    Body::new(body.map_err(Error::into_inner))
}
