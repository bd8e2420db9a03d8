//! Handlers and services that are metered before axum boxes them.

use std::convert::Infallible;
use std::task::{Context, Poll};

use ::axum::extract::Request;
use ::axum::handler::Handler;
use ::axum::response::{IntoResponse, Response};
use tower_service::Service;

use super::future::{OfHandler, OfService};
use super::site::Site;

/// A handler or a service, and the endpoint that it answers.
#[derive(Clone, Debug)]
pub(super) struct At<H> {
    pub(super) inner: H,
    pub(super) site: &'static Site,
}

impl<H, T, S> Handler<T, S> for At<H>
where
    H: Handler<T, S>,
    T: 'static,
    S: Send + 'static,
{
    type Future = OfHandler<H::Future>;

    #[inline]
    fn call(self, mut request: Request, state: S) -> Self::Future {
        let exchange = self.site.start(0, &mut request);
        OfHandler::call(exchange, || self.inner.call(request, state))
    }
}

impl<S> Service<Request> for At<S>
where
    S: Service<Request, Error = Infallible>,
    S::Response: IntoResponse,
{
    type Response = Response;
    type Error = Infallible;
    type Future = OfService<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, mut request: Request) -> Self::Future {
        let exchange = self.site.start(0, &mut request);
        OfService::call(exchange, || self.inner.call(request))
    }
}
