//! Handlers and services, wrapped before axum boxes them: with a meter, or, if the meter is further
//! out, with a watch for panics only.

use std::convert::Infallible;
use std::task::{Context, Poll};

use ::axum::extract::Request;
use ::axum::handler::Handler;
use ::axum::response::{IntoResponse, Response};
use tower_service::Service;

use super::declared_endpoint::DeclaredEndpoint;
use super::future::{HandlerFuture, PanicWatchFuture, ServiceFuture};
use super::panic_note::note_panic;
use crate::exchange::request::Exchange;

#[derive(Clone, Debug)]
pub(super) struct MeteredHandler<H> {
    pub(super) inner: H,
    pub(super) endpoint: &'static DeclaredEndpoint,
}

/// A handler or a service whose meter is further out: notes panics.
#[derive(Clone, Debug)]
pub(super) struct PanicWatch<H>(pub(super) H);

/// Adds a handler or a service to a router: with a meter if there is an endpoint, or else with a
/// watch for panics.
macro_rules! add {
    ($endpoint:expr, |$inner:ident| $add:expr) => {
        match $endpoint {
            None => {
                let $inner = PanicWatch($inner);
                $add
            }
            Some(endpoint) => {
                let $inner = MeteredHandler { inner: $inner, endpoint };
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
        self.endpoint.open(&mut exchange, &mut request);
        let call = exchange.call();
        let future = self.inner.call(request, state);
        call.returned();
        HandlerFuture { future, exchange }
    }
}

impl<S> Service<Request> for MeteredHandler<S>
where
    S: Service<Request, Error = Infallible>,
    S::Response: IntoResponse + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = ServiceFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    // Out of line, see `ServiceFuture::call`.
    #[inline(never)]
    fn call(&mut self, request: Request) -> Self::Future {
        let open = |exchange: &mut Exchange, request: &mut Request| {
            self.endpoint.open(exchange, request);
        };
        ServiceFuture::call(&mut self.inner, request, open)
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

impl<S> Service<Request> for PanicWatch<S>
where
    S: Service<Request, Error = Infallible>,
{
    type Response = S::Response;
    type Error = Infallible;
    type Future = PanicWatchFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: Request) -> Self::Future {
        PanicWatchFuture { future: note_panic(|| self.0.call(request)) }
    }
}
