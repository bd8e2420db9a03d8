//! Metering outside of a layer, in the same box as that layer.
//!
//! axum boxes a route again for every layer. So the meter is joined to the
//! user's layer before axum sees either: it costs no box of its own.

use std::task::{Context, Poll};

use ::axum::extract::Request;
use ::axum::response::{IntoResponse, Response};
use tower_layer::Layer;
use tower_service::Service;

use super::future::OfService;
use super::site::{ByMethod, Sites};
use crate::exchange::Exchange;

/// A layer with a meter around it.
#[derive(Clone, Debug)]
pub(super) struct MeteredLayer<L> {
    layer: L,
    sites: &'static ByMethod,
}

impl<L> MeteredLayer<L> {
    /// Around a layer that is put around these endpoints.
    pub(super) fn new(layer: L, sites: &Sites) -> Self {
        // They live as long as the program, and so does what finds them.
        Self { layer, sites: Box::leak(Box::new(sites.by_method())) }
    }
}

impl<L: Layer<S>, S> Layer<S> for MeteredLayer<L> {
    type Service = MeteredService<L::Service>;

    fn layer(&self, inner: S) -> Self::Service {
        MeteredService { inner: self.layer.layer(inner), sites: self.sites }
    }
}

#[derive(Clone, Debug)]
pub(super) struct MeteredService<S> {
    inner: S,
    sites: &'static ByMethod,
}

impl<S> Service<Request> for MeteredService<S>
where
    S: Service<Request>,
    S::Response: IntoResponse + 'static,
{
    type Response = Response;
    type Error = S::Error;
    type Future = OfService<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    // Out of line, as `OfService::of` says.
    #[inline(never)]
    fn call(&mut self, request: Request) -> Self::Future {
        let open = |exchange: &mut Exchange, request: &mut Request| {
            if let Some(site) = self.sites.of(request.method()) {
                site.start(exchange, request);
            }
        };
        OfService::of(&mut self.inner, request, open)
    }
}
