//! The router: axum's, and the same declaration once more to be metered.
//!
//! Each step of a declaration is made by axum's own router at once, so axum decides what is refused, and
//! how a router without meters responds. The metered router is built at the end, since only the
//! outermost part of a route is metered, by the same steps: each route is alone in a router of axum's, so
//! that axum itself adds layers, prefixes and state.

use std::any::Any;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::axum::BoxError;
use ::axum::body::{Bytes, HttpBody};
use ::axum::extract::Request;
use ::axum::handler::Handler;
use ::axum::http::{self, StatusCode};
use ::axum::response::IntoResponse;
use ::axum::routing::{Route, RouterAsService, RouterIntoService, future::RouteFuture};
use talea::{Error, Registry};
use tower_layer::Layer;
use tower_service::Service;

use super::declared_endpoint::{MeteredParts, RouteEndpoints};
use super::declared_router::{DeclaredFallback, DeclaredRoute, add_layer, unchecked};
use super::handler::add;
use super::method_router::{MethodRouter, RouteMethods};
use super::panic_watch::PanicWatch;
use super::shared_layer::is_shared;
use crate::endpoints::Endpoints;

/// A router that mirrors `axum::Router`; [`metered`](Self::metered) turns it into an `axum::Router`
/// in which every endpoint is metered.
///
/// A declaration has the methods of axum's router, is refused where axum refuses it, and responds as by
/// axum. It differs in this:
///
/// - It is no service to be served: `metered` and [`unmetered`](Self::unmetered) return that. Inside of
///   another router, by `nest_service` or `fallback_service`, it is a service without meters of its own,
///   and the outer router counts its requests as one route. Use [`nest`](Self::nest) or
///   [`merge`](Self::merge) for routes of their own.
/// - The result of `metered` always has a fallback, which counts requests that no route matches.
/// - A layer's [`layer`](Layer::layer) is called more often, since the declaration is made twice.
///
/// The meter is outside of every layer on this router, so a request that a layer responds to (an
/// authentication that refuses, a time-out) is counted too, at its route. Extensions that such a
/// layer adds to the request are therefore too late for
/// [`Opts::request_label`](crate::Opts::request_label): put that layer around the `axum::Router`.
///
/// # Cost
///
/// A request whose response is buffered takes two readings of the time-stamp counter, about ten
/// adds, and no allocation. A request's body that is not empty, and a response's that is streamed
/// or states a length above 16 KiB, is watched as it passes: an allocation each, since axum's
/// bodies hide their type, and a few nanoseconds a frame. A response's body that states a smaller
/// length is treated as sent.
///
/// The cost is lowest in a program that is built with `codegen-units = 1`.
///
/// axum clones all layers for each layer of a route; here one in four is shared by all requests
/// until it is called. So the number of allocations grows linearly with the layers and not with
/// their square: with 20 layers a request takes 100 allocations, by axum alone 244.
#[must_use = "a router does nothing until it is metered and served"]
pub struct Router<S = ()> {
    /// The same declaration by axum, without meters.
    plain: ::axum::Router<S>,
    /// Shared by clones, since a service is cloned for each request.
    declared: Arc<Declaration<S>>,
}

/// What is to be metered.
struct Declaration<S> {
    routes: Vec<DeclaredRoute<S>>,
    fallback: DeclaredFallback<S>,
    /// Whether paths are checked for captures as axum 0.7 wrote them.
    checks: bool,
}

impl<S> Clone for Router<S> {
    fn clone(&self) -> Self {
        Self { plain: self.plain.clone(), declared: self.declared.clone() }
    }
}

impl<S> Clone for Declaration<S> {
    fn clone(&self) -> Self {
        let Self { routes, fallback, checks } = self;
        Self { routes: routes.clone(), fallback: fallback.clone(), checks: *checks }
    }
}

impl<S> Default for Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<S> fmt::Debug for Router<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.declared.routes.iter().map(|declared| &declared.route)).finish()
    }
}

impl<S> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    /// A router without routes; it responds with 404.
    pub fn new() -> Self {
        let fallback = DeclaredFallback::new();
        let declared = Arc::new(Declaration { routes: Vec::new(), fallback, checks: true });
        Self { plain: ::axum::Router::new(), declared }
    }

    /// Takes paths whose segments begin with `:` or `*`, which axum 0.7 took as captures.
    pub fn without_v07_checks(mut self) -> Self {
        self.plain = self.plain.without_v07_checks();
        self.declared_mut().checks = false;
        self
    }

    /// Adds a route. Its template, such as `/api/items/{id}`, becomes the label as it is. A
    /// response to a method that it does not declare is 405, with the declared methods.
    ///
    /// The functions of axum's own declare no endpoint, and are not taken:
    ///
    /// ```compile_fail,E0277
    /// use axum::routing::get; // in place of talea_http::axum::get
    ///
    /// let router = talea_http::axum::Router::<()>::new().route("/", get(async || "hello"));
    /// ```
    ///
    /// # Panics
    ///
    /// axum does not take the template, or a method of it is declared already.
    #[track_caller]
    pub fn route(mut self, path: &str, methods: impl RouteMethods<S>) -> Self {
        let MethodRouter { plain, mut endpoints, build: methods } = methods.methods();
        self.plain = self.plain.route(path, plain);
        endpoints.rest();
        let template = path.to_owned();
        self.declare(path, endpoints, move |parts| unchecked().route(&template, methods(parts)))
    }

    /// Routes every request to a path to a service.
    ///
    /// # Panics
    ///
    /// As [`route`](Self::route), or the service is a router.
    #[track_caller]
    pub fn route_service<T>(mut self, path: &str, service: T) -> Self
    where
        T: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
        T::Response: IntoResponse + 'static,
        T::Future: Send + 'static,
    {
        let known: &dyn Any = &service;
        assert!(
            !known.is::<Self>() && !known.is::<::axum::Router<S>>(),
            "Invalid route: `Router::route_service` cannot be used with `Router`s. Use `Router::nest` \
             instead"
        );
        self.plain = self.plain.route_service(path, PanicWatch(service.clone()));
        let template = path.to_owned();
        self.declare(path, RouteEndpoints::service::<T>(), move |parts| {
            let service = service.clone();
            add!(parts.of_rest(), |service| unchecked().route_service(&template, service))
        })
    }

    /// Puts another router's routes under a prefix, which its handlers do not see in the request's
    /// URI.
    ///
    /// # Panics
    ///
    /// As axum's: the prefix is empty or `/`, or contains a wildcard.
    #[track_caller]
    pub fn nest(mut self, prefix: &str, other: Self) -> Self {
        self.plain = self.plain.nest(prefix, other.plain);
        let other = Arc::unwrap_or_clone(other.declared);
        let declared = self.declared_mut();
        declared.routes.extend(other.routes.into_iter().map(|declared| declared.nested(prefix)));
        declared.fallback.nest(prefix, other.fallback);
        self
    }

    /// Routes every request under a prefix to a service; its route is the prefix and
    /// `/{*rest}`. If the service is a metered router, its routes count each request too: use
    /// [`nest`](Self::nest) for it before it is metered.
    ///
    /// # Panics
    ///
    /// As [`nest`](Self::nest).
    #[track_caller]
    pub fn nest_service<T>(mut self, prefix: &str, service: T) -> Self
    where
        T: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
        T::Response: IntoResponse + 'static,
        T::Future: Send + 'static,
    {
        self.plain = self.plain.nest_service(prefix, PanicWatch(service.clone()));
        let route = format!("{}/{{*rest}}", prefix.trim_end_matches('/'));
        let prefix = prefix.to_owned();
        self.declare(&route, RouteEndpoints::service::<T>(), move |parts| {
            let service = service.clone();
            add!(parts.of_rest(), |service| unchecked().nest_service(&prefix, service))
        })
    }

    /// Adds another router's routes. Both may declare a path, with other methods.
    ///
    /// # Panics
    ///
    /// Both declare a method of a path, or both have a fallback, as in axum.
    #[track_caller]
    pub fn merge<R>(mut self, other: R) -> Self
    where
        R: Into<Self>,
    {
        let other: Self = other.into();
        self.plain = self.plain.merge(other.plain);
        let other = Arc::unwrap_or_clone(other.declared);
        let declared = self.declared_mut();
        declared.routes.extend(other.routes);
        declared.fallback.merge(other.fallback);
        declared.checks |= other.checks;
        self
    }

    /// Handles requests that no route matches; in a nested router, those that no route of its own
    /// matches. Their route is `_unmatched`.
    pub fn fallback<H, T>(mut self, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        self.plain = self.plain.fallback(PanicWatch(handler.clone()));
        self.declared_mut().fallback.replace::<H>(move |inner, meters| {
            let handler = handler.clone();
            add!(meters, |handler| inner.fallback(handler))
        });
        self
    }

    /// Routes requests that no route matches to a service, as [`fallback`](Self::fallback).
    pub fn fallback_service<T>(mut self, service: T) -> Self
    where
        T: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
        T::Response: IntoResponse + 'static,
        T::Future: Send + 'static,
    {
        self.plain = self.plain.fallback_service(PanicWatch(service.clone()));
        self.declared_mut().fallback.replace::<T>(move |inner, meters| {
            let service = service.clone();
            add!(meters, |service| inner.fallback_service(service))
        });
        self
    }

    /// Handles the methods that are not declared, for all routes so far without a fallback of
    /// their own; axum adds the header `Allow`. Layers that these routes have already are not
    /// around it.
    pub fn method_not_allowed_fallback<H, T>(mut self, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        self.plain = self.plain.method_not_allowed_fallback(PanicWatch(handler.clone()));
        let declared = self.declared_mut();
        for n in without_response(&declared.routes) {
            declared.routes[n].fall_back(handler.clone());
        }
        self
    }

    /// Removes the fallback, and the fallbacks of routers that are nested already: requests that no route matches
    /// get 404 again.
    pub fn reset_fallback(mut self) -> Self {
        self.plain = self.plain.reset_fallback();
        self.declared_mut().fallback = DeclaredFallback::new();
        self
    }

    /// Whether there is a route.
    pub fn has_routes(&self) -> bool {
        self.plain.has_routes()
    }

    /// Puts a layer around all routes so far, and around the fallbacks.
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<Route> + Clone + Send + Sync + 'static,
        L::Service: Service<Request> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Response: IntoResponse + 'static,
        <L::Service as Service<Request>>::Error: Into<Infallible> + 'static,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        let declared = self.declared_mut();
        declared.routes.iter_mut().for_each(|declared| declared.layer(layer.clone()));
        declared.fallback.layer(layer.clone());
        let shared = self.is_layer_shared();
        self.plain = add_layer(self.plain, layer, shared);
        self
    }

    /// Puts a layer around all routes so far, and not around a fallback.
    ///
    /// # Panics
    ///
    /// There is no route yet, as in axum.
    #[track_caller]
    pub fn route_layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<Route> + Clone + Send + Sync + 'static,
        L::Service: Service<Request> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Response: IntoResponse + 'static,
        <L::Service as Service<Request>>::Error: Into<Infallible> + 'static,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        self.plain = self.plain.route_layer(layer.clone());
        let declared = self.declared_mut();
        declared.routes.iter_mut().for_each(|declared| declared.layer(layer.clone()));
        self
    }

    /// Gives the handlers their state.
    pub fn with_state<S2: 'static>(self, state: S) -> Router<S2> {
        let Declaration { routes, fallback, checks } = Arc::unwrap_or_clone(self.declared);
        let routes =
            routes.into_iter().map(|declared| declared.with_state(state.clone())).collect();
        let fallback = fallback.with_state(state.clone());
        let declared = Arc::new(Declaration { routes, fallback, checks });
        Router { plain: self.plain.with_state(state), declared }
    }

    /// The router without meters as a service for bodies of one type, as axum's.
    pub fn into_service<B>(self) -> RouterIntoService<B, S> {
        self.plain.into_service()
    }

    /// The router without meters as a borrowed service for bodies of one type, as axum's.
    pub fn as_service<B>(&mut self) -> RouterAsService<'_, B, S> {
        self.plain.as_service()
    }

    /// The `axum::Router` with a meter for every endpoint, with default options. The series of all
    /// endpoints exist from then on, at 0.
    ///
    /// The result has a fallback in any case, which counts requests that no route matches. So axum
    /// panics if you merge it with another router that has a fallback, such as a second metered one;
    /// nested in another router, it handles them itself. [Merge](Self::merge) and
    /// [nest](Self::nest) routers before one `metered`.
    ///
    /// # Errors
    ///
    /// A metric's name is taken by another definition, or the region is full.
    pub fn metered(self, registry: &Registry) -> Result<::axum::Router<S>, Error> {
        Ok(self.metered_by(&Endpoints::new(registry)?))
    }

    /// The `axum::Router` with a meter for every endpoint, with options from
    /// [`Opts::register`](crate::Opts::register).
    pub fn metered_by(self, endpoints: &Endpoints) -> ::axum::Router<S> {
        let Declaration { mut routes, fallback, checks } = Arc::unwrap_or_clone(self.declared);
        for n in without_response(&routes) {
            // A layer around axum's response meters it.
            if !routes[n].endpoints.layers_rest {
                routes[n].fall_back(async || StatusCode::METHOD_NOT_ALLOWED);
            }
        }
        let mut router = fallback.metered(endpoints);
        for declared in &routes {
            let meters = declared.endpoints.meter(endpoints, &declared.route);
            router = router.merge((declared.build)(MeteredParts::all(&meters)));
        }
        // axum's own checks hold again for routes that are added to the result.
        if checks { router.merge(::axum::Router::new()) } else { router }
    }

    /// The `axum::Router` without meters.
    pub fn unmetered(self) -> ::axum::Router<S> {
        self.plain
    }

    fn declare(
        mut self,
        route: &str,
        endpoints: RouteEndpoints,
        build: impl Fn(MeteredParts<'_>) -> ::axum::Router<S> + Send + Sync + 'static,
    ) -> Self {
        let route = route.to_owned();
        let declared = DeclaredRoute { route, endpoints, build: Arc::new(build) };
        self.declared_mut().routes.push(declared);
        self
    }

    fn declared_mut(&mut self) -> &mut Declaration<S> {
        Arc::make_mut(&mut self.declared)
    }

    /// Whether the layer that was declared last is shared in the router without meters.
    fn is_layer_shared(&self) -> bool {
        let routes = self.declared.routes.iter().map(|declared| declared.endpoints.layers);
        is_shared(routes.fold(self.declared.fallback.layers, usize::max))
    }
}

/// The routes whose undeclared methods axum handles. If several have one path, axum takes the
/// response of the last, unless one of them has a fallback.
fn without_response<S>(routes: &[DeclaredRoute<S>]) -> Vec<usize> {
    (0..routes.len())
        .filter(|n: &usize| {
            let route = &routes[*n].route;
            let mut same = routes.iter().filter(|other| other.route == *route);
            let is_last = !routes[n + 1..].iter().any(|other| other.route == *route);
            is_last && same.all(|other| !other.endpoints.has_fallback)
        })
        .collect()
}

/// Without meters: the route of another router that it is given to has them.
impl<B> Service<http::Request<B>> for Router
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = ::axum::response::Response;
    type Error = Infallible;
    type Future = RouteFuture<Infallible>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<http::Request<B>>::poll_ready(&mut self.plain, cx)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        self.plain.call(request)
    }
}
