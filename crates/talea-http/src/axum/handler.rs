//! Handlers and services, wrapped before axum boxes them: with a meter, or, if the meter is further
//! out, with a watch for panics only.

use std::task::{Context, Poll};

use ::axum::extract::Request;
use ::axum::handler::Handler;
use ::axum::response::{IntoResponse, Response};
use tower_service::Service;

use super::declared_endpoint::open;
use super::future::{HandlerFuture, PanicWatchFuture, ServiceFuture};
use super::panic_note::note_panic;
use crate::exchange::request::Exchange;
use crate::meters::endpoint::EndpointMeters;

#[derive(Clone, Debug)]
pub(super) struct MeteredHandler<H> {
    pub(super) inner: H,
    pub(super) meters: &'static EndpointMeters,
}

/// A handler or a service whose meter is further out: notes panics.
#[derive(Clone, Debug)]
pub(super) struct PanicWatch<H>(pub(super) H);

/// Adds a handler or a service to a router: with its meters, or, if there are none, with a watch for
/// panics.
macro_rules! add {
    ($meters:expr, |$inner:ident| $add:expr) => {
        match $meters {
            None => {
                let $inner = PanicWatch($inner);
                $add
            }
            Some(meters) => {
                let $inner = MeteredHandler { inner: $inner, meters };
                $add
            }
        }
    };
}
pub(super) use add;

impl<H, T, S> Handler<T, S> for MeteredHandler<H>
where
    H: Handler<T, S>,
    T: 'static,
    S: Send + 'static,
{
    type Future = HandlerFuture<H::Future>;

    #[inline]
    fn call(self, mut request: Request, state: S) -> Self::Future {
        let mut exchange = Exchange::closed();
        open(self.meters, &mut exchange, &mut request);
        let call = exchange.call();
        let future = self.inner.call(request, state);
        call.returned();
        HandlerFuture { future, exchange }
    }
}

impl<S> Service<Request> for MeteredHandler<S>
where
    S: Service<Request>,
    S::Response: IntoResponse + 'static,
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
        let meters = self.meters;
        ServiceFuture::call(&mut self.inner, request, |exchange, request| {
            open(meters, exchange, request);
        })
    }
}

impl<H, T, S> Handler<T, S> for PanicWatch<H>
where
    H: Handler<T, S>,
    T: 'static,
    S: Send + 'static,
{
    type Future = PanicWatchFuture<H::Future>;

    #[inline]
    fn call(self, request: Request, state: S) -> Self::Future {
        PanicWatchFuture { future: note_panic(|| self.0.call(request, state)) }
    }
}

impl<S: Service<Request>> Service<Request> for PanicWatch<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = PanicWatchFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: Request) -> Self::Future {
        PanicWatchFuture { future: note_panic(|| self.0.call(request)) }
    }
}
