//! The router: axum's, with a list of what was declared.

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

use super::handler::{At, Inside};
use super::layer::MeteredLayer;
use super::method_router::{Meters, MethodRouter};
use super::shared::{self, SharedLayer};
use super::site::{Site, Sites};
use crate::case::Methods;
use crate::endpoints::{Endpoints, UNMATCHED};

/// Declares routes as `axum::Router` does; [`metered`](Self::metered) turns it
/// into one in which every endpoint is metered.
///
/// It mirrors axum's. A request is told outside of every layer that is put on this router,
/// so one that a layer answers (an authentication that refuses, a time-out) counts too, and
/// at its route, whatever stands inside. What a layer puts into the request's extensions
/// comes too late for [`Opts::request_label`](crate::Opts::request_label): such a layer
/// stands around the router that comes out.
///
/// # Cost
///
/// That of a request whose response is in memory: two readings of the time-stamp counter,
/// about ten adds, and nothing allocated. A request's body that is not empty, and a
/// response's that is streamed, or known to be longer than 16 KiB, is watched as it passes:
/// an allocation each, since axum's bodies hide what they are, and a few nanoseconds a frame.
/// A response's body that is known to be shorter is taken as sent.
///
/// It is least in a program that is built with `codegen-units = 1`.
///
/// axum clones all layers for each layer of a route; here one in four is shared by all requests
/// until it is called. So what is allocated for a request grows with the layers and not with
/// their square: with 20 of them that is 100 allocations, 244 by axum alone.
#[must_use = "a router does nothing until it is metered and served"]
pub struct Router<S = ()> {
    declared: Vec<Declared<S>>,
    /// Answers what no route matches. Never merged while `own_fallback` is false.
    unmatched: Declared<S>,
    own_fallback: bool,
}

/// A route, alone in a router of axum's, so that it can be layered, nested and
/// given its state as axum does it.
struct Declared<S> {
    route: String,
    sites: Sites,
    answers_rest: bool,
    /// Whether a layer is around what answers methods that are not declared.
    layers_rest: bool,
    /// How many layers are around it.
    layers: usize,
    build: Build<S>,
}

/// Makes the router, which is to meter itself or not. What is outermost shows when nothing
/// comes any more, and that alone is metered.
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
        f.debug_list().entries(self.declared.iter().map(|declared| &declared.route)).finish()
    }
}

impl<S> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    /// A router without routes; it answers 404.
    pub fn new() -> Self {
        let unmatched = Declared::not_found();
        Self { declared: Vec::new(), unmatched, own_fallback: false }
    }

    /// Adds a route. Its template, such as `/api/items/{id}`, is told as it stands here. A
    /// method that it does not declare is answered with 405 and the methods that there are.
    ///
    /// # Panics
    ///
    /// The template is not one that axum takes, or a method of it is declared
    /// already.
    #[track_caller]
    pub fn route(mut self, path: &str, methods: MethodRouter<S>) -> Self {
        let MethodRouter { mut sites, answers_rest, layers_rest, layers, build: methods } = methods;
        if sites.rest.is_empty() {
            sites.rest.push(Site::declare::<()>(Methods::Rest));
        }
        // A template that axum does not take is told here.
        let _ = ::axum::Router::<S>::new().route(path, ::axum::routing::MethodRouter::new());
        let route = path.to_owned();
        let build: Build<S> = Box::new(move |metered| {
            ::axum::Router::new().route(&route, methods(Meters::all(metered)))
        });
        let route = path.to_owned();
        self.declared.push(Declared { route, sites, answers_rest, layers_rest, layers, build });
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
        self.declared.push(Declared::service::<T>(
            path.to_owned(),
            move |router, site| match site {
                None => router.route_service(&route, Inside(service)),
                Some(site) => router.route_service(&route, At { inner: service, site }),
            },
        ));
        self
    }

    /// Puts another router's routes under a prefix, which handlers in it do not
    /// see in the request's URI.
    ///
    /// # Panics
    ///
    /// As axum's: the prefix is empty or `/`, or contains a wildcard.
    #[track_caller]
    pub fn nest(mut self, prefix: &str, other: Self) -> Self {
        // A prefix that axum does not take is told here.
        let _ = ::axum::Router::<S>::new().nest(prefix, ::axum::Router::new());
        let own_fallback = other.own_fallback.then_some(other.unmatched);
        for declared in other.declared.into_iter().chain(own_fallback) {
            self.declared.push(Declared {
                route: match declared.route.as_str() {
                    UNMATCHED => declared.route,
                    "/" => prefix.to_owned(),
                    route => format!("{}{route}", prefix.trim_end_matches('/')),
                },
                build: nested(prefix.to_owned(), declared.build),
                ..declared
            });
        }
        self
    }

    /// Answers every request under a prefix with a service; its route is the prefix and
    /// `/{*rest}`.
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
        self.declared.push(Declared::service::<T>(route, move |router, site| match site {
            None => router.nest_service(&prefix, Inside(service)),
            Some(site) => router.nest_service(&prefix, At { inner: service, site }),
        }));
        self
    }

    /// Adds another router's routes.
    ///
    /// # Panics
    ///
    /// Both declare a path, or both have a fallback.
    #[track_caller]
    pub fn merge(mut self, other: Self) -> Self {
        for theirs in &other.declared {
            assert!(
                self.declared.iter().all(|mine| mine.route != theirs.route)
                    || theirs.route == UNMATCHED,
                "both routers declare {}; declare all methods of a path in one of them",
                theirs.route
            );
        }
        assert!(
            !(self.own_fallback && other.own_fallback),
            "both routers have a fallback; give one of them"
        );
        self.declared.extend(other.declared);
        if other.own_fallback {
            self.unmatched = other.unmatched;
            self.own_fallback = true;
        }
        self
    }

    /// Answers what no route matches, in a nested router what none of its own does; its
    /// route is `_unmatched`.
    pub fn fallback<H, T>(mut self, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        self.unmatched = Declared::unmatched::<H>(move |router, site| match site {
            None => router.fallback(Inside(handler)),
            Some(site) => router.fallback(At { inner: handler, site }),
        });
        self.own_fallback = true;
        self
    }

    /// The same with a service.
    pub fn fallback_service<T>(mut self, service: T) -> Self
    where
        T: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
        T::Response: IntoResponse + 'static,
        T::Future: Send + 'static,
    {
        self.unmatched = Declared::unmatched::<T>(move |router, site| match site {
            None => router.fallback_service(Inside(service)),
            Some(site) => router.fallback_service(At { inner: service, site }),
        });
        self.own_fallback = true;
        self
    }

    /// Answers the methods that routes do not declare, of all routes so far that have no
    /// answer of their own; axum adds the header `Allow`. Layers that are on them already
    /// are not around it.
    pub fn method_not_allowed_fallback<H, T>(mut self, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        for n in self.without_answer() {
            self.declared[n].answer_rest(handler.clone());
        }
        self
    }

    /// Answers again with 404 what no route matches.
    pub fn reset_fallback(mut self) -> Self {
        self.unmatched = Declared::not_found();
        self.own_fallback = false;
        self
    }

    /// Whether there is a route.
    pub fn has_routes(&self) -> bool {
        self.declared.iter().any(|declared| declared.route != UNMATCHED)
    }

    /// Puts a layer around all routes so far, and around the fallback.
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<Route> + Clone + Send + Sync + 'static,
        L::Service: Service<Request> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Response: IntoResponse + 'static,
        <L::Service as Service<Request>>::Error: Into<Infallible> + 'static,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        self.unmatched = self.unmatched.layer(layer.clone());
        self.route_layer(layer)
    }

    /// Puts a layer around all routes so far, and not around what answers where
    /// no route matched.
    pub fn route_layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<Route> + Clone + Send + Sync + 'static,
        L::Service: Service<Request> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Response: IntoResponse + 'static,
        <L::Service as Service<Request>>::Error: Into<Infallible> + 'static,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        self.declared =
            self.declared.into_iter().map(|declared| declared.layer(layer.clone())).collect();
        self
    }

    /// Gives the handlers their state.
    pub fn with_state<S2: 'static>(self, state: S) -> Router<S2> {
        Router {
            declared: self.declared.into_iter().map(|d| d.with_state(state.clone())).collect(),
            unmatched: self.unmatched.with_state(state),
            own_fallback: self.own_fallback,
        }
    }

    /// The router that serves what was declared, told under the default names. All series of
    /// all endpoints exist from now on, at 0.
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

    /// The same under names of one's choice, by [`Opts::register`](crate::Opts::register).
    ///
    /// # Panics
    ///
    /// As [`metered`](Self::metered).
    #[track_caller]
    pub fn metered_by(mut self, endpoints: &Endpoints) -> ::axum::Router<S> {
        for n in self.without_answer() {
            let declared = &mut self.declared[n];
            // Where a layer stands around axum's answer, its meter tells of it.
            if !declared.layers_rest {
                declared.answer_rest(async || StatusCode::METHOD_NOT_ALLOWED);
            }
        }
        for Declared { route, sites, .. } in self.declared.iter().chain([&self.unmatched]) {
            sites.all().for_each(|site| site.meter(endpoints, route));
        }
        self.built(true)
    }

    /// The router that serves what was declared, and tells nothing of it.
    ///
    /// # Panics
    ///
    /// As [`metered`](Self::metered).
    pub fn unmetered(self) -> ::axum::Router<S> {
        self.built(false)
    }

    fn built(self, metered: bool) -> ::axum::Router<S> {
        let routers = self.declared.into_iter().map(|declared| (declared.build)(metered));
        let unmatched = (self.unmatched.build)(metered);
        routers.fold(unmatched, ::axum::Router::merge)
    }

    /// The routes whose undeclared methods axum answers. Of several that have one path it
    /// takes the last one's answer, unless one of them has its own.
    fn without_answer(&self) -> Vec<usize> {
        let answers = |n: &usize| {
            let route = &self.declared[*n].route;
            let mut same = self.declared.iter().filter(|other| other.route == *route);
            let is_last = !self.declared[n + 1..].iter().any(|other| other.route == *route);
            is_last && same.all(|other| !other.answers_rest)
        };
        (0..self.declared.len()).filter(answers).collect()
    }
}

impl<S> Declared<S>
where
    S: Clone + Send + Sync + 'static,
{
    fn unmatched<H>(answer: impl Answer<S>) -> Self {
        Self::alone::<H>(UNMATCHED.to_owned(), Methods::Rest, answer)
    }

    fn service<T>(route: String, answer: impl Answer<S>) -> Self {
        Self::alone::<T>(route, Methods::Each, answer)
    }

    /// One endpoint that answers whatever comes.
    fn alone<H>(route: String, methods: Methods, answer: impl Answer<S>) -> Self {
        let site = Site::declare::<H>(methods);
        Self {
            route,
            sites: Sites { declared: Vec::new(), rest: vec![site] },
            answers_rest: true,
            layers_rest: false,
            layers: 0,
            build: Box::new(move |metered| answer(::axum::Router::new(), metered.then_some(site))),
        }
    }

    fn not_found() -> Self {
        let inner = async || StatusCode::NOT_FOUND;
        Self::unmatched::<()>(move |router, site| match site {
            None => router.fallback(Inside(inner)),
            Some(site) => router.fallback(At { inner, site }),
        })
    }

    /// Answers what is not declared, outside of the layers so far.
    fn answer_rest<H, T>(&mut self, handler: H)
    where
        H: Handler<T, S>,
        T: 'static,
    {
        let site = Site::declare::<H>(Methods::Rest);
        let build = std::mem::replace(&mut self.build, Box::new(|_| ::axum::Router::new()));
        self.build = Box::new(move |metered| {
            let router = build(metered);
            match metered {
                false => router.method_not_allowed_fallback(Inside(handler)),
                true => router.method_not_allowed_fallback(At { inner: handler, site }),
            }
        });
        self.sites.rest = vec![site];
        self.answers_rest = true;
        self.layers_rest = false;
    }

    fn layer<L>(self, layer: L) -> Self
    where
        L: Layer<Route> + Clone + Send + Sync + 'static,
        L::Service: Service<Request> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Response: IntoResponse + 'static,
        <L::Service as Service<Request>>::Error: Into<Infallible> + 'static,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        let Self { build, sites, .. } = self;
        let around = sites.clone();
        let layers = self.layers + 1;
        let build: Build<S> = Box::new(move |metered| match metered {
            false if shared::is_due(layers) => build(false).layer(SharedLayer(layer)),
            false => build(false).layer(layer),
            true => build(false).layer(MeteredLayer::new(layer, &around)),
        });
        Self { build, sites, layers, layers_rest: true, ..self }
    }

    fn with_state<S2: 'static>(self, state: S) -> Declared<S2> {
        let Self { route, sites, answers_rest, layers_rest, layers, build } = self;
        let build: Build<S2> = Box::new(move |metered| build(metered).with_state(state));
        Declared { route, sites, answers_rest, layers_rest, layers, build }
    }
}

fn nested<S>(prefix: String, build: Build<S>) -> Build<S>
where
    S: Clone + Send + Sync + 'static,
{
    Box::new(move |metered| ::axum::Router::new().nest(&prefix, build(metered)))
}

/// Gives a router the one answer that it has, with its endpoint if it is to meter itself.
trait Answer<S>:
    FnOnce(::axum::Router<S>, Option<&'static Site>) -> ::axum::Router<S> + Send + Sync + 'static
{
}

impl<S, F> Answer<S> for F where
    F: FnOnce(::axum::Router<S>, Option<&'static Site>) -> ::axum::Router<S>
        + Send
        + Sync
        + 'static
{
}
