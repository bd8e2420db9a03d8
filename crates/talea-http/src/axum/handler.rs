//! Handlers and services, wrapped before axum boxes them: with a meter, or with nothing but an
//! eye on panics where the meter stands further out.

use std::convert::Infallible;
use std::task::{Context, Poll};

use ::axum::extract::Request;
use ::axum::handler::Handler;
use ::axum::response::{IntoResponse, Response};
use tower_service::Service;

use super::future::{OfHandler, OfService, Watched};
use super::panics;
use super::site::Site;
use crate::exchange::Exchange;

/// A handler or a service, and the endpoint that it answers.
#[derive(Clone, Debug)]
pub(super) struct At<H> {
    pub(super) inner: H,
    pub(super) site: &'static Site,
}

/// One whose meter stands further out.
#[derive(Clone, Debug)]
pub(super) struct Inside<H>(pub(super) H);

impl<H, T, S> Handler<T, S> for At<H>
where
    H: Handler<T, S>,
    T: 'static,
    S: Send + 'static,
{
    type Future = OfHandler<H::Future>;

    #[inline]
    fn call(self, mut request: Request, state: S) -> Self::Future {
        let mut exchange = Exchange::closed();
        self.site.start(&mut exchange, &mut request);
        let running = exchange.run();
        let future = self.inner.call(request, state);
        running.returned();
        OfHandler::new(future, exchange)
    }
}

impl<S> Service<Request> for At<S>
where
    S: Service<Request, Error = Infallible>,
    S::Response: IntoResponse + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = OfService<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    // Out of line, as `OfService::of` says.
    #[inline(never)]
    fn call(&mut self, request: Request) -> Self::Future {
        let open = |exchange: &mut Exchange, request: &mut Request| {
            self.site.start(exchange, request);
        };
        OfService::of(&mut self.inner, request, open)
    }
}

impl<H, T, S> Handler<T, S> for Inside<H>
where
    H: Handler<T, S>,
    T: 'static,
    S: Send + 'static,
{
    type Future = Watched<H::Future>;

    #[inline]
    fn call(self, request: Request, state: S) -> Self::Future {
        Watched::new(panics::tell(|| self.0.call(request, state)))
    }
}

impl<S> Service<Request> for Inside<S>
where
    S: Service<Request, Error = Infallible>,
{
    type Response = S::Response;
    type Error = Infallible;
    type Future = Watched<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: Request) -> Self::Future {
        Watched::new(panics::tell(|| self.0.call(request)))
    }
}
