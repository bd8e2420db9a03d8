//! The router: axum's, with a list of its declarations.

use std::convert::Infallible;
use std::fmt;

use ::axum::extract::Request;
use ::axum::handler::Handler;
use ::axum::http::StatusCode;
use ::axum::response::IntoResponse;
use ::axum::routing::Route;
use talea::{Error, Registry};
use tower_layer::Layer;
use tower_service::Service;

use super::declared_endpoint::{DeclaredEndpoint, MeteredParts, RouteEndpoints};
use super::handler::{MeteredHandler, PanicWatch, add};
use super::metered_layer::MeteredLayer;
use super::method_router::MethodRouter;
use super::shared_layer::{SharedLayer, is_shared};
use crate::endpoints::Endpoints;
use crate::labels::endpoint::{Methods, UNMATCHED};

/// A router that mirrors `axum::Router`; [`metered`](Self::metered) turns it into an `axum::Router`
/// in which every endpoint is metered.
///
/// The meter is outside of every layer on this router, so a request that a layer answers (an
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
    routes: Vec<DeclaredRoute<S>>,
    /// Answer requests that no route matches: its own fallback or 404, and then the fallbacks of nested
    /// routers.
    unmatched: Vec<DeclaredRoute<S>>,
    own_fallback: bool,
}

/// A route, alone in a router of axum's, so that axum itself adds layers, prefixes and state.
struct DeclaredRoute<S> {
    route: String,
    endpoints: RouteEndpoints,
    build: Build<S>,
}

/// Builds the router, which meters itself or not, once the declaration is complete: only the
/// outermost part of a route is metered.
type Build<S> = Box<dyn FnOnce(bool) -> ::axum::Router<S> + Send + Sync>;

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
        f.debug_list().entries(self.routes.iter().map(|declared| &declared.route)).finish()
    }
}

impl<S> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    /// A router without routes; it answers 404.
    pub fn new() -> Self {
        let unmatched = vec![DeclaredRoute::not_found()];
        Self { routes: Vec::new(), unmatched, own_fallback: false }
    }

    /// Adds a route. Its template, such as `/api/items/{id}`, becomes the label as it is. A
    /// method that it does not declare is answered with 405 and the declared methods.
    ///
    /// # Panics
    ///
    /// axum does not take the template, or a method of it is declared already.
    #[track_caller]
    pub fn route(mut self, path: &str, methods: MethodRouter<S>) -> Self {
        let MethodRouter { mut endpoints, build: methods } = methods;
        if endpoints.rest.is_empty() {
            endpoints.rest.push(DeclaredEndpoint::declare::<()>(Methods::Rest));
        }
        // Panics here if axum does not take the template.
        let _ = ::axum::Router::<S>::new().route(path, ::axum::routing::MethodRouter::new());
        let route = path.to_owned();
        let build: Build<S> = Box::new(move |metered| {
            ::axum::Router::new().route(&route, methods(MeteredParts::all(metered)))
        });
        let route = path.to_owned();
        self.routes.push(DeclaredRoute { route, endpoints, build });
        self
    }

    /// Answers every request to a path with a service.
    ///
    /// # Panics
    ///
    /// As [`route`](Self::route).
    #[track_caller]
    pub fn route_service<T>(mut self, path: &str, service: T) -> Self
    where
        T: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
        T::Response: IntoResponse + 'static,
        T::Future: Send + 'static,
    {
        let route = path.to_owned();
        let answer = move |router: ::axum::Router<S>, endpoint| {
            add!(endpoint, |service| router.route_service(&route, service))
        };
        self.routes.push(DeclaredRoute::single::<T, _>(path, Methods::Each, answer));
        self
    }

    /// Puts another router's routes under a prefix, which its handlers do not see in the request's
    /// URI.
    ///
    /// # Panics
    ///
    /// As axum's: the prefix is empty or `/`, or contains a wildcard.
    #[track_caller]
    pub fn nest(mut self, prefix: &str, other: Self) -> Self {
        // Panics here if axum does not take the prefix.
        let _ = ::axum::Router::<S>::new().nest(prefix, ::axum::Router::new());
        self.routes.extend(other.routes.into_iter().map(|declared| declared.nested(prefix)));
        // As axum has it: without a fallback of its own, it brings none of those nested in it either.
        if other.own_fallback {
            self.unmatched.push(DeclaredRoute::joined(other.unmatched).nested(prefix));
        }
        self
    }

    /// Answers every request under a prefix with a service; its route is the prefix and
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
        let route = format!("{}/{{*rest}}", prefix.trim_end_matches('/'));
        let prefix = prefix.to_owned();
        let answer = move |router: ::axum::Router<S>, endpoint| {
            add!(endpoint, |service| router.nest_service(&prefix, service))
        };
        self.routes.push(DeclaredRoute::single::<T, _>(&route, Methods::Each, answer));
        self
    }

    /// Adds another router's routes.
    ///
    /// # Panics
    ///
    /// Both declare a path, or both have a fallback.
    #[track_caller]
    pub fn merge(mut self, mut other: Self) -> Self {
        for theirs in &other.routes {
            assert!(
                self.routes.iter().all(|mine| mine.route != theirs.route),
                "both routers declare {}; declare all methods of a path in one of them",
                theirs.route
            );
        }
        assert!(
            !(self.own_fallback && other.own_fallback),
            "both routers have a fallback; give one of them"
        );
        self.routes.extend(other.routes);
        if !self.own_fallback {
            // Of two answers of 404, the other's, as axum has it: they may have different layers.
            std::mem::swap(&mut self.unmatched[0], &mut other.unmatched[0]);
            self.own_fallback = other.own_fallback;
        }
        self.unmatched.extend(other.unmatched.into_iter().skip(1));
        self
    }

    /// Answers requests that no route matches; in a nested router, those that none of its own
    /// matches. Their route is `_unmatched`.
    pub fn fallback<H, T>(mut self, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        self.unmatched[0] = DeclaredRoute::unmatched(handler);
        self.own_fallback = true;
        self
    }

    /// Answers requests that no route matches with a service, as [`fallback`](Self::fallback).
    pub fn fallback_service<T>(mut self, service: T) -> Self
    where
        T: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
        T::Response: IntoResponse + 'static,
        T::Future: Send + 'static,
    {
        let answer = move |router: ::axum::Router<S>, endpoint| {
            add!(endpoint, |service| router.fallback_service(service))
        };
        self.unmatched[0] = DeclaredRoute::single::<T, _>(UNMATCHED, Methods::Rest, answer);
        self.own_fallback = true;
        self
    }

    /// Answers the methods that are not declared, for all routes so far without a fallback of
    /// their own; axum adds the header `Allow`. Layers that these routes have already are not
    /// around it.
    pub fn method_not_allowed_fallback<H, T>(mut self, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        for n in self.without_answer() {
            self.routes[n].answer_rest(handler.clone());
        }
        self
    }

    /// Removes the fallback, and those of routers that are nested already: requests that no route matches
    /// get 404 again.
    pub fn reset_fallback(mut self) -> Self {
        self.unmatched = vec![DeclaredRoute::not_found()];
        self.own_fallback = false;
        self
    }

    /// Whether there is a route.
    pub fn has_routes(&self) -> bool {
        !self.routes.is_empty()
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
        let around = |declared: DeclaredRoute<S>| declared.layer(layer.clone());
        self.routes = self.routes.into_iter().map(around).collect();
        self.unmatched = self.unmatched.into_iter().map(around).collect();
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
        assert!(
            self.has_routes(),
            "there is no route that a route layer could be put around; add it after the routes"
        );
        let around = |declared: DeclaredRoute<S>| declared.layer(layer.clone());
        self.routes = self.routes.into_iter().map(around).collect();
        self
    }

    /// Gives the handlers their state.
    pub fn with_state<S2: 'static>(self, state: S) -> Router<S2> {
        Router {
            routes: self.routes.into_iter().map(|d| d.with_state(state.clone())).collect(),
            unmatched: self.unmatched.into_iter().map(|d| d.with_state(state.clone())).collect(),
            own_fallback: self.own_fallback,
        }
    }

    /// The `axum::Router` with a meter for every endpoint, with default options. The series of all
    /// endpoints exist from then on, at 0.
    ///
    /// The result has a fallback in any case, which counts requests that no route matches. So axum
    /// panics if you merge it with another router that has a fallback, such as a second metered one;
    /// nested in another router, it answers them itself. [Merge](Self::merge) and
    /// [nest](Self::nest) routers before one `metered`.
    ///
    /// # Errors
    ///
    /// A metric's name is taken by another definition, or the region is full.
    ///
    /// # Panics
    ///
    /// Two templates match the same paths, as in axum.
    pub fn metered(self, registry: &Registry) -> Result<::axum::Router<S>, Error> {
        Ok(self.metered_by(&Endpoints::new(registry)?))
    }

    /// The `axum::Router` with a meter for every endpoint, with options from
    /// [`Opts::register`](crate::Opts::register).
    ///
    /// # Panics
    ///
    /// As [`metered`](Self::metered).
    #[track_caller]
    pub fn metered_by(mut self, endpoints: &Endpoints) -> ::axum::Router<S> {
        for n in self.without_answer() {
            let declared = &mut self.routes[n];
            // A layer around axum's answer meters it.
            if !declared.endpoints.layers_rest {
                declared.answer_rest(async || StatusCode::METHOD_NOT_ALLOWED);
            }
        }
        for declared in self.routes.iter().chain(&self.unmatched) {
            declared.endpoints.all().for_each(|one| one.meter(endpoints, &declared.route));
        }
        self.build(true)
    }

    /// The `axum::Router` without meters.
    ///
    /// # Panics
    ///
    /// As [`metered`](Self::metered).
    pub fn unmetered(self) -> ::axum::Router<S> {
        self.build(false)
    }

    fn build(self, metered: bool) -> ::axum::Router<S> {
        merged(
            self.unmatched.into_iter().chain(self.routes).map(|declared| declared.build),
            metered,
        )
    }

    /// The routes whose undeclared methods axum answers. If several have one path, axum takes the
    /// answer of the last, unless one of them has a fallback.
    fn without_answer(&self) -> Vec<usize> {
        let answers = |n: &usize| {
            let route = &self.routes[*n].route;
            let mut same = self.routes.iter().filter(|other| other.route == *route);
            let is_last = !self.routes[n + 1..].iter().any(|other| other.route == *route);
            is_last && same.all(|other| !other.endpoints.has_fallback)
        };
        (0..self.routes.len()).filter(answers).collect()
    }
}

fn merged<S>(builds: impl IntoIterator<Item = Build<S>>, metered: bool) -> ::axum::Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    let mut routers = builds.into_iter().map(|build| build(metered));
    let first = routers.next().unwrap_or_default();
    routers.fold(first, ::axum::Router::merge)
}

impl<S> DeclaredRoute<S>
where
    S: Clone + Send + Sync + 'static,
{
    /// A route with one endpoint, which answers every request. `answer` adds the answer to axum's
    /// router, with the endpoint if that is to meter itself.
    fn single<H, A>(route: &str, methods: Methods, answer: A) -> Self
    where
        A: FnOnce(::axum::Router<S>, Option<&'static DeclaredEndpoint>) -> ::axum::Router<S>
            + Send
            + Sync
            + 'static,
    {
        let endpoint = DeclaredEndpoint::declare::<H>(methods);
        let mut endpoints = RouteEndpoints::default();
        endpoints.set_fallback(endpoint);
        let build: Build<S> =
            Box::new(move |metered| answer(::axum::Router::new(), metered.then_some(endpoint)));
        Self { route: route.to_owned(), endpoints, build }
    }

    fn unmatched<H, T>(handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        Self::single::<H, _>(UNMATCHED, Methods::Rest, move |router, endpoint| {
            add!(endpoint, |handler| router.fallback(handler))
        })
    }

    /// A router's own fallback and those of routers nested in it, as one to be nested: axum nests the
    /// latter only together with the former.
    fn joined(fallbacks: Vec<Self>) -> Self {
        let mut endpoints = RouteEndpoints::default();
        let mut builds = Vec::new();
        for fallback in fallbacks {
            endpoints.rest.extend(fallback.endpoints.rest);
            builds.push(fallback.build);
        }
        let build: Build<S> = Box::new(move |metered| merged(builds, metered));
        Self { route: UNMATCHED.to_owned(), endpoints, build }
    }

    /// Puts it under a prefix.
    fn nested(self, prefix: &str) -> Self {
        let Self { route, endpoints, build } = self;
        let route = match route.as_str() {
            UNMATCHED => route,
            "/" => prefix.to_owned(),
            route => format!("{}{route}", prefix.trim_end_matches('/')),
        };
        let prefix = prefix.to_owned();
        let build: Build<S> =
            Box::new(move |metered| ::axum::Router::new().nest(&prefix, build(metered)));
        Self { route, endpoints, build }
    }

    fn not_found() -> Self {
        Self::unmatched(async || StatusCode::NOT_FOUND)
    }

    /// Answers methods that are not declared, outside of the layers so far.
    fn answer_rest<H, T>(&mut self, handler: H)
    where
        H: Handler<T, S>,
        T: 'static,
    {
        let endpoint = DeclaredEndpoint::declare::<H>(Methods::Rest);
        let build = std::mem::replace(&mut self.build, Box::new(|_| ::axum::Router::new()));
        self.build = Box::new(move |metered| {
            let router = build(metered);
            add!(metered.then_some(endpoint), |handler| router.method_not_allowed_fallback(handler))
        });
        self.endpoints.set_fallback(endpoint);
    }

    fn layer<L>(self, layer: L) -> Self
    where
        L: Layer<Route> + Clone + Send + Sync + 'static,
        L::Service: Service<Request> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Response: IntoResponse + 'static,
        <L::Service as Service<Request>>::Error: Into<Infallible> + 'static,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        let Self { route, mut endpoints, build } = self;
        endpoints.layers_rest = true;
        endpoints.layers += 1;
        let around = endpoints.clone();
        let build: Build<S> = Box::new(move |metered| match metered {
            false if is_shared(around.layers) => build(false).layer(SharedLayer(layer)),
            false => build(false).layer(layer),
            true => build(false).layer(MeteredLayer::new(layer, &around, MeteredParts::all(true))),
        });
        Self { route, endpoints, build }
    }

    fn with_state<S2: 'static>(self, state: S) -> DeclaredRoute<S2> {
        let Self { route, endpoints, build } = self;
        let build: Build<S2> = Box::new(move |metered| build(metered).with_state(state));
        DeclaredRoute { route, endpoints, build }
    }
}
