//! Metering outside of a layer, in the same box as that layer.
//!
//! axum boxes a route again for every layer. So the meter is joined to the
//! user's layer before axum sees either: it costs no box of its own.

use std::task::{Context, Poll};

use ::axum::extract::Request;
use ::axum::http::Method;
use ::axum::response::{IntoResponse, Response};
use tower_layer::Layer;
use tower_service::Service;

use crate::meter::{Endpoint, MeteredResult};

/// The endpoints of one route, by method.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteEndpoints {
    pub(crate) declared: &'static [(&'static str, &'static Endpoint)],
    /// What answers a method that is not declared.
    pub(crate) other: &'static Endpoint,
}

impl RouteEndpoints {
    pub(crate) fn all(self) -> impl Iterator<Item = &'static Endpoint> {
        self.declared.iter().map(|(_, endpoint)| *endpoint).chain([self.other])
    }

    fn of(self, method: &Method) -> &'static Endpoint {
        let declared = |name| self.declared.iter().find(|(declared, _)| *declared == name);
        let found = declared(method.as_str())
            .or_else(|| if method == Method::HEAD { declared("GET") } else { None });
        found.map_or(self.other, |(_, endpoint)| endpoint)
    }
}

/// A layer with a meter around it.
#[derive(Clone, Debug)]
pub(crate) struct MeteredLayer<L> {
    pub(crate) layer: L,
    pub(crate) endpoints: RouteEndpoints,
    pub(crate) level: u32,
}

impl<L: Layer<S>, S> Layer<S> for MeteredLayer<L> {
    type Service = MeteredService<L::Service>;

    fn layer(&self, inner: S) -> Self::Service {
        let Self { ref layer, endpoints, level } = *self;
        MeteredService { inner: layer.layer(inner), endpoints, level }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct MeteredService<S> {
    inner: S,
    endpoints: RouteEndpoints,
    level: u32,
}

impl<S> Service<Request> for MeteredService<S>
where
    S: Service<Request>,
    S::Response: IntoResponse,
{
    type Response = Response;
    type Error = S::Error;
    type Future = MeteredResult<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: Request) -> Self::Future {
        let in_flight = self.endpoints.of(request.method()).start(self.level);
        MeteredResult::new(in_flight, self.inner.call(request))
    }
}
