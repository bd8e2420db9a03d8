//! Metering outside of a layer, in the same box as that layer.
//!
//! axum boxes a route again for every layer. So the meter is joined to the
//! user's layer before axum sees either: it costs no box of its own.

use std::task::{Context, Poll};

use ::axum::extract::Request;
use ::axum::response::{IntoResponse, Response};
use talea::HttpMethod;
use tower_layer::Layer;
use tower_service::Service;

use super::future::OfService;
use super::site::Sites;

/// A meter around some endpoints, at the level outside of all that are there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    sites: &'static Sites,
    level: u32,
}

impl Meter {
    /// From now on they are met here.
    pub(super) fn around(sites: &Sites) -> Self {
        let level = sites.add_level();
        // They live as long as the program, and so does what finds them.
        Self { sites: Box::leak(Box::new(sites.clone())), level }
    }
}

/// A layer with a meter around it.
#[derive(Clone, Debug)]
pub(super) struct MeteredLayer<L> {
    layer: L,
    meter: Meter,
}

impl<L> MeteredLayer<L> {
    pub(super) fn new(layer: L, meter: Meter) -> Self {
        Self { layer, meter }
    }
}

impl<L: Layer<S>, S> Layer<S> for MeteredLayer<L> {
    type Service = MeteredService<L::Service>;

    fn layer(&self, inner: S) -> Self::Service {
        let Self { ref layer, meter } = *self;
        MeteredService { inner: layer.layer(inner), meter }
    }
}

#[derive(Clone, Debug)]
pub(super) struct MeteredService<S> {
    inner: S,
    meter: Meter,
}

impl<S> Service<Request> for MeteredService<S>
where
    S: Service<Request>,
    S::Response: IntoResponse,
{
    type Response = Response;
    type Error = S::Error;
    type Future = OfService<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, mut request: Request) -> Self::Future {
        let Meter { sites, level } = self.meter;
        let site = sites.of(HttpMethod::of(request.method().as_str()));
        let exchange = site.and_then(|site| site.start(level, &mut request));
        OfService::call(exchange, || self.inner.call(request))
    }
}
