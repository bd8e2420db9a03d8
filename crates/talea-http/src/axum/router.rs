//! The router: axum's, with a list of what was declared.

use std::convert::Infallible;
use std::fmt;

use ::axum::extract::Request;
use ::axum::handler::Handler;
use ::axum::http::StatusCode;
use ::axum::response::IntoResponse;
use ::axum::routing::Route;
use talea::{Bucketing, Error, Registry};
use tower_layer::Layer;
use tower_service::Service;

use super::layer::{MeteredLayer, RouteEndpoints};
use super::method_router::{MeteredHandler, MethodRouter};
use crate::endpoint::{Durations, HttpMetrics, OTHER, StatusLabel, UNMATCHED};
use crate::meter::Endpoint;

/// Declares routes as `axum::Router` does; [`metered`](Self::metered) turns it
/// into one in which every endpoint is metered.
///
/// It mirrors `route`, `nest`, `merge`, `layer`, `route_layer`, `fallback` and
/// `with_state`. A request is observed outside of every layer that is put on
/// this router, so one that a layer answers (an authentication that refuses, a
/// timeout) counts too.
#[must_use = "a router does nothing until it is metered and served"]
pub struct Router<S = ()> {
    declared: Vec<Declared<S>>,
    /// Answers what no route matches. Never merged while `own_fallback` is false.
    unmatched: Declared<S>,
    own_fallback: bool,
    status: StatusLabel,
    durations: Durations,
}

/// A route, alone in a router of axum's, so that it can be layered, nested and
/// given its state as axum does it.
struct Declared<S> {
    route: String,
    endpoints: RouteEndpoints,
    router: ::axum::Router<S>,
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
        f.debug_list().entries(self.declared.iter().map(|declared| &declared.route)).finish()
    }
}

impl<S> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    /// A router without routes; it answers 404.
    pub fn new() -> Self {
        let not_found = async || StatusCode::NOT_FOUND;
        Self {
            declared: Vec::new(),
            unmatched: Declared::fallback(not_found),
            own_fallback: false,
            status: StatusLabel::default(),
            durations: Durations::default(),
        }
    }

    /// Adds a route. Its template, such as `/api/items/{id}`, is the label
    /// `route`. A method that it does not declare is answered with 405 and the
    /// methods that there are.
    ///
    /// # Panics
    ///
    /// The template is not one that axum takes, or a method of it is declared
    /// already.
    pub fn route(mut self, path: &str, methods: MethodRouter<S>) -> Self {
        // axum merges what one path is given in several calls, and takes one
        // fallback.
        let first = self.declared.iter().all(|declared| declared.route != path);
        let methods = match methods.other {
            None if first => methods.fallback(async || StatusCode::METHOD_NOT_ALLOWED),
            _ => methods,
        };
        let other = methods.other.unwrap_or_else(Endpoint::declare);
        self.declared.push(Declared {
            route: path.to_owned(),
            endpoints: RouteEndpoints { declared: Vec::leak(methods.endpoints), other },
            router: ::axum::Router::new().route(path, methods.inner),
        });
        self
    }

    /// Puts another router's routes under a prefix, which handlers in it do not
    /// see in the request's URI.
    ///
    /// # Panics
    ///
    /// As axum's: the prefix is empty or `/`, or contains a wildcard.
    pub fn nest(mut self, prefix: &str, other: Self) -> Self {
        let own_fallback = other.own_fallback.then_some(other.unmatched);
        for declared in other.declared.into_iter().chain(own_fallback) {
            self.declared.push(Declared {
                route: match declared.route.as_str() {
                    UNMATCHED => declared.route,
                    "/" => prefix.to_owned(),
                    route => format!("{}{route}", prefix.trim_end_matches('/')),
                },
                endpoints: declared.endpoints,
                router: ::axum::Router::new().nest(prefix, declared.router),
            });
        }
        self
    }

    /// Adds another router's routes.
    ///
    /// # Panics
    ///
    /// Both declare a path, or both have a fallback.
    pub fn merge(mut self, other: Self) -> Self {
        for theirs in &other.declared {
            assert!(
                self.declared.iter().all(|mine| mine.route != theirs.route),
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

    /// Answers what no route matches; its label `route` is `_unmatched`.
    pub fn fallback<H, T>(mut self, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        self.unmatched = Declared::fallback(handler);
        self.own_fallback = true;
        self
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
    pub fn with_state<S2>(self, state: S) -> Router<S2> {
        Router {
            declared: self.declared.into_iter().map(|d| d.with_state(state.clone())).collect(),
            unmatched: self.unmatched.with_state(state),
            own_fallback: self.own_fallback,
            status: self.status,
            durations: self.durations,
        }
    }

    /// What the label `status` holds: the class, which is the default, or the
    /// code. The choice of the router that is metered counts, not of those nested
    /// or merged in it.
    pub fn status_label(mut self, status: StatusLabel) -> Self {
        self.status = status;
        self
    }

    /// Which quantiles of the last ten minutes' durations are shown, from 0 to 1, ascending,
    /// in `http_request_duration_recent_seconds`. A request costs nothing more for them;
    /// whoever takes snapshots does the work, see [`Summary`](talea::Summary). Default:
    /// none. The choice of the router that is metered counts.
    pub fn quantiles(mut self, quantiles: impl Into<Vec<f64>>) -> Self {
        self.durations.quantiles = quantiles.into();
        self
    }

    /// Which buckets durations are counted in. Default: [`Bucketing::Dual`], both classic
    /// and native ones. The choice of the router that is metered counts.
    pub fn bucketing(mut self, bucketing: Bucketing) -> Self {
        self.durations.bucketing = bucketing;
        self
    }

    /// The router that serves what was declared. All series of all endpoints
    /// exist from now on, at 0.
    ///
    /// # Errors
    ///
    /// A metric's name is taken by another definition, the region is full, or the quantiles
    /// are not ones.
    ///
    /// # Panics
    ///
    /// Two templates match the same paths, as in axum.
    pub fn metered(self, registry: &Registry) -> Result<::axum::Router<S>, Error> {
        let metrics = HttpMetrics::register(registry, &self.durations)?;
        for Declared { route, endpoints, .. } in self.declared.iter().chain([&self.unmatched]) {
            // A route lives as long as the program, and so do its endpoints.
            let route: &'static str = route.clone().leak();
            for (method, endpoint) in endpoints.declared {
                endpoint.set_meters(metrics.endpoint(method, route, self.status));
            }
            endpoints.other.set_meters(metrics.endpoint(OTHER, route, self.status));
        }
        let routers = self.declared.into_iter().map(|declared| declared.router);
        Ok(routers.fold(self.unmatched.router, ::axum::Router::merge))
    }
}

impl<S> Declared<S>
where
    S: Clone + Send + Sync + 'static,
{
    fn fallback<H, T>(handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        let other = Endpoint::declare();
        Self {
            route: UNMATCHED.to_owned(),
            endpoints: RouteEndpoints { declared: &[], other },
            router: ::axum::Router::new().fallback(MeteredHandler { handler, endpoint: other }),
        }
    }

    fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<Route> + Clone + Send + Sync + 'static,
        L::Service: Service<Request> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Response: IntoResponse + 'static,
        <L::Service as Service<Request>>::Error: Into<Infallible> + 'static,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        // All endpoints of a route have the same layers around them.
        let level = self.endpoints.all().map(Endpoint::add_level).max().unwrap_or(0);
        let layer = MeteredLayer { layer, endpoints: self.endpoints, level };
        self.router = self.router.layer(layer);
        self
    }

    fn with_state<S2>(self, state: S) -> Declared<S2> {
        Declared {
            route: self.route,
            endpoints: self.endpoints,
            router: self.router.with_state(state),
        }
    }
}
