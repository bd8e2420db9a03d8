//! The parts of a router that are metered: each route, and the fallbacks for requests that no route matches.

use std::convert::Infallible;
use std::sync::Arc;

use ::axum::extract::Request;
use ::axum::handler::Handler;
use ::axum::http::StatusCode;
use ::axum::response::IntoResponse;
use ::axum::routing::Route;
use tower_layer::Layer;
use tower_service::Service;

use super::declared_endpoint::{DeclaredEndpoint, MeteredParts, MetersByMethod, RouteEndpoints};
use super::handler::add;
use super::metered_layer::MeteredLayer;
use super::shared_layer::{SharedLayer, is_shared};
use crate::endpoints::Endpoints;
use crate::labels::endpoint::{Methods, UNMATCHED};
use crate::request::meters::EndpointMeters;

/// A route, alone in a router of axum's.
pub(super) struct DeclaredRoute<S> {
    pub(super) route: String,
    pub(super) endpoints: RouteEndpoints,
    pub(super) build: BuildRoute<S>,
}

/// Builds the router once the declaration is complete: only the outermost part of a route is metered.
type BuildRoute<S> = Arc<dyn Fn(MeteredParts<'_>) -> ::axum::Router<S> + Send + Sync>;

/// The fallbacks for requests that no route matches: a router of axum's without routes.
pub(super) struct DeclaredFallback<S> {
    endpoint: DeclaredEndpoint,
    /// Whether it was given; 404 otherwise.
    is_own: bool,
    pub(super) layers: usize,
    build: BuildFallback<S>,
}

type BuildFallback<S> = Arc<dyn Fn(MeteredFallback<'_>) -> ::axum::Router<S> + Send + Sync>;

/// How a fallback is metered.
#[derive(Clone, Copy)]
struct MeteredFallback<'a> {
    /// `None` if a layer outside meters it.
    endpoints: Option<&'a Endpoints>,
    /// Whether a handler, which can be metered, responds with 404. axum's own response is left if
    /// axum replaces it by another.
    has_handler: bool,
}

impl MeteredFallback<'_> {
    fn of(self, endpoint: DeclaredEndpoint) -> Option<&'static EndpointMeters> {
        self.endpoints.map(|endpoints| endpoint.meter(endpoints, UNMATCHED))
    }

    fn without_handler(self) -> Self {
        Self { has_handler: false, ..self }
    }
}

/// A router of axum's that takes every path: the declaration has checked it.
pub(super) fn unchecked<S>() -> ::axum::Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    ::axum::Router::new().without_v07_checks()
}

/// Adds a layer without a meter.
pub(super) fn add_layer<S, L>(
    router: ::axum::Router<S>,
    layer: L,
    shared: bool,
) -> ::axum::Router<S>
where
    S: Clone + Send + Sync + 'static,
    L: Layer<Route> + Clone + Send + Sync + 'static,
    L::Service: Service<Request> + Clone + Send + Sync + 'static,
    <L::Service as Service<Request>>::Response: IntoResponse + 'static,
    <L::Service as Service<Request>>::Error: Into<Infallible> + 'static,
    <L::Service as Service<Request>>::Future: Send + 'static,
{
    if shared { router.layer(SharedLayer(layer)) } else { router.layer(layer) }
}

impl<S> Clone for DeclaredRoute<S> {
    fn clone(&self) -> Self {
        let Self { route, endpoints, build } = self;
        Self { route: route.clone(), endpoints: endpoints.clone(), build: build.clone() }
    }
}

impl<S> Clone for DeclaredFallback<S> {
    fn clone(&self) -> Self {
        let Self { endpoint, is_own, layers, build } = self;
        Self { endpoint: *endpoint, is_own: *is_own, layers: *layers, build: build.clone() }
    }
}

impl<S> DeclaredRoute<S>
where
    S: Clone + Send + Sync + 'static,
{
    /// Puts it under a prefix.
    pub(super) fn nested(self, prefix: &str) -> Self {
        let Self { route, endpoints, build } = self;
        // As axum joins them.
        let route = match (prefix.ends_with('/'), route.as_str()) {
            (true, route) => format!("{prefix}{}", route.trim_start_matches('/')),
            (false, "/") => prefix.to_owned(),
            (false, route) => format!("{prefix}{route}"),
        };
        let prefix = prefix.to_owned();
        let build: BuildRoute<S> = Arc::new(move |parts| unchecked().nest(&prefix, build(parts)));
        Self { route, endpoints, build }
    }

    /// Handles methods that are not declared, outside of the layers so far.
    pub(super) fn fall_back<H, T>(&mut self, handler: H)
    where
        H: Handler<T, S>,
        T: 'static,
    {
        self.endpoints.set_fallback(DeclaredEndpoint::declare::<H>(Methods::Rest));
        let build = self.build.clone();
        self.build = Arc::new(move |parts| {
            let (router, handler) = (build(parts), handler.clone());
            add!(parts.of_rest(), |handler| router.method_not_allowed_fallback(handler))
        });
    }

    pub(super) fn layer<L>(&mut self, layer: L)
    where
        L: Layer<Route> + Clone + Send + Sync + 'static,
        L::Service: Service<Request> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Response: IntoResponse + 'static,
        <L::Service as Service<Request>>::Error: Into<Infallible> + 'static,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        self.endpoints.layers_rest = true;
        self.endpoints.layers += 1;
        let (build, shared) = (self.build.clone(), is_shared(self.endpoints.layers));
        self.build = Arc::new(move |parts| {
            let inner = build(MeteredParts::default());
            match parts.by_method() {
                Some(meters) => inner.layer(MeteredLayer::new(layer.clone(), meters)),
                None => add_layer(inner, layer.clone(), shared),
            }
        });
    }

    pub(super) fn with_state<S2: 'static>(self, state: S) -> DeclaredRoute<S2> {
        let Self { route, endpoints, build } = self;
        let build: BuildRoute<S2> = Arc::new(move |parts| build(parts).with_state(state.clone()));
        DeclaredRoute { route, endpoints, build }
    }
}

impl<S> DeclaredFallback<S>
where
    S: Clone + Send + Sync + 'static,
{
    /// Responds with 404.
    pub(super) fn new() -> Self {
        let endpoint = DeclaredEndpoint::declare::<()>(Methods::Rest);
        let build: BuildFallback<S> = Arc::new(move |metered| {
            let (router, handler) = (unchecked(), async || StatusCode::NOT_FOUND);
            match metered.has_handler {
                true => add!(metered.of(endpoint), |handler| router.fallback(handler)),
                false => router,
            }
        });
        Self { endpoint, is_own: false, layers: 0, build }
    }

    /// The router, in which each fallback is metered.
    pub(super) fn metered(&self, endpoints: &Endpoints) -> ::axum::Router<S> {
        (self.build)(MeteredFallback { endpoints: Some(endpoints), has_handler: !self.is_own })
    }

    /// Falls back to a handler or a service of type `H`, which `add` adds with its meters.
    pub(super) fn replace<H>(
        &mut self,
        add: impl Fn(::axum::Router<S>, Option<&'static EndpointMeters>) -> ::axum::Router<S>
        + Send
        + Sync
        + 'static,
    ) {
        let (endpoint, build) = (DeclaredEndpoint::declare::<H>(Methods::Rest), self.build.clone());
        (self.endpoint, self.is_own) = (endpoint, true);
        self.build =
            Arc::new(move |metered| add(build(metered.without_handler()), metered.of(endpoint)));
    }

    /// Adds the fallback of a router that is nested. As axum has it, a router without a fallback of its own
    /// brings no fallback of a router nested in it either.
    pub(super) fn nest(&mut self, prefix: &str, other: Self) {
        if !other.is_own {
            return;
        }
        let (prefix, build) = (prefix.to_owned(), self.build.clone());
        self.build = Arc::new(move |metered| {
            build(metered).nest(&prefix, (other.build)(metered.without_handler()))
        });
    }

    /// Adds the fallback of a router that is merged. Of two responses of 404 it is the other's, as axum has
    /// it: they may have different layers.
    pub(super) fn merge(&mut self, other: Self) {
        let build = self.build.clone();
        self.build =
            Arc::new(move |metered| build(metered.without_handler()).merge((other.build)(metered)));
        if !self.is_own {
            (self.endpoint, self.is_own) = (other.endpoint, other.is_own);
        }
        self.layers = self.layers.max(other.layers);
    }

    pub(super) fn layer<L>(&mut self, layer: L)
    where
        L: Layer<Route> + Clone + Send + Sync + 'static,
        L::Service: Service<Request> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Response: IntoResponse + 'static,
        <L::Service as Service<Request>>::Error: Into<Infallible> + 'static,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        self.layers += 1;
        let (build, shared) = (self.build.clone(), is_shared(self.layers));
        let endpoint = self.endpoint;
        self.build = Arc::new(move |metered| {
            let inner = build(MeteredFallback { endpoints: None, ..metered });
            match metered.of(endpoint) {
                Some(meters) => {
                    let meters = MetersByMethod::one(meters);
                    inner.layer(MeteredLayer::new(layer.clone(), meters))
                }
                None => add_layer(inner, layer.clone(), shared),
            }
        });
    }

    pub(super) fn with_state<S2: 'static>(self, state: S) -> DeclaredFallback<S2> {
        let Self { endpoint, is_own, layers, build } = self;
        let build: BuildFallback<S2> =
            Arc::new(move |metered| build(metered).with_state(state.clone()));
        DeclaredFallback { endpoint, is_own, layers, build }
    }
}
