//! A meter outside of a layer, in the same box as that layer.
//!
//! axum boxes a route again for every layer. So the meter is joined to the user's layer before axum
//! sees either, and has no box of its own.

use std::task::{Context, Poll};

use ::axum::extract::Request;
use ::axum::response::{IntoResponse, Response};
use tower_layer::Layer;
use tower_service::Service;

use super::declared_endpoint::{MetersByMethod, open};
use super::future::ServiceFuture;

#[derive(Clone, Debug)]
pub(super) struct MeteredLayer<L> {
    layer: L,
    meters: &'static MetersByMethod,
}

impl<L> MeteredLayer<L> {
    pub(super) fn new(layer: L, meters: MetersByMethod) -> Self {
        // Meters live as long as the program, and so does their index.
        Self { layer, meters: Box::leak(Box::new(meters)) }
    }
}

impl<L: Layer<S>, S> Layer<S> for MeteredLayer<L> {
    type Service = MeteredLayerService<L::Service>;

    fn layer(&self, inner: S) -> Self::Service {
        MeteredLayerService { inner: self.layer.layer(inner), meters: self.meters }
    }
}

#[derive(Clone, Debug)]
pub(super) struct MeteredLayerService<S> {
    inner: S,
    meters: &'static MetersByMethod,
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
        let meters = self.meters;
        ServiceFuture::call(&mut self.inner, request, |exchange, request| {
            if let Some(meters) = meters.of(request.method()) {
                open(meters, exchange, request);
            }
        })
    }
}
