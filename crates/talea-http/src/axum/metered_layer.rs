//! A meter outside of a layer, in the same box as that layer.
//!
//! axum boxes a route again for every layer. So the meter is joined to the user's layer before axum
//! sees either, and has no box of its own.

use std::task::{Context, Poll};

use ::axum::extract::Request;
use ::axum::response::{IntoResponse, Response};
use tower_layer::Layer;
use tower_service::Service;

use super::declared_endpoint::{EndpointsByMethod, MeteredParts, RouteEndpoints};
use super::future::ServiceFuture;
use crate::exchange::request::Exchange;

#[derive(Clone, Debug)]
pub(super) struct MeteredLayer<L> {
    layer: L,
    endpoints: &'static EndpointsByMethod,
}

impl<L> MeteredLayer<L> {
    pub(super) fn new(layer: L, endpoints: &RouteEndpoints, parts: MeteredParts) -> Self {
        // Endpoints live as long as the program, and so does their index.
        Self { layer, endpoints: Box::leak(Box::new(endpoints.by_method(parts))) }
    }
}

impl<L: Layer<S>, S> Layer<S> for MeteredLayer<L> {
    type Service = MeteredLayerService<L::Service>;

    fn layer(&self, inner: S) -> Self::Service {
        MeteredLayerService { inner: self.layer.layer(inner), endpoints: self.endpoints }
    }
}

#[derive(Clone, Debug)]
pub(super) struct MeteredLayerService<S> {
    inner: S,
    endpoints: &'static EndpointsByMethod,
}

impl<S> Service<Request> for MeteredLayerService<S>
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
        let open = |exchange: &mut Exchange, request: &mut Request| {
            if let Some(endpoint) = self.endpoints.of(request.method()) {
                endpoint.open(exchange, request);
            }
        };
        ServiceFuture::call(&mut self.inner, request, open)
    }
}
