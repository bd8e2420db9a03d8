//! Handlers by method, each metered before axum boxes it.

use std::convert::Infallible;

use ::axum::extract::Request;
use ::axum::handler::Handler;
use ::axum::response::IntoResponse;
use ::axum::routing::{self, MethodFilter, Route};
use talea::HttpMethod;
use tower_layer::Layer;
use tower_service::Service;

use super::handler::At;
use super::layer::{Meter, MeteredLayer};
use super::site::{Site, Sites};
use super::sole::Sole;
use crate::case::Methods;

/// A handler or a service for each of some methods: as axum's, made by [`get`], [`post`] and
/// so on and chained. It can be used for one route.
#[must_use = "a method router does nothing until it is given a route"]
#[derive(Debug)]
pub struct MethodRouter<S = ()> {
    pub(super) inner: routing::MethodRouter<S>,
    pub(super) sites: Sites,
    /// Whether what is not declared has an answer of its own; 405 otherwise.
    pub(super) answers_rest: bool,
}

impl<S> Default for MethodRouter<S>
where
    S: Clone,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<S> MethodRouter<S>
where
    S: Clone,
{
    /// One without handlers.
    pub fn new() -> Self {
        let sites = Sites::default();
        Self { inner: routing::MethodRouter::new(), sites, answers_rest: false }
    }

    /// Gives the handlers their state.
    pub fn with_state<S2>(self, state: S) -> MethodRouter<S2> {
        let Self { inner, sites, answers_rest } = self;
        MethodRouter { inner: inner.with_state(state), sites, answers_rest }
    }

    /// Adds another's handlers.
    ///
    /// # Panics
    ///
    /// Both have a handler for a method, or both have a fallback.
    #[track_caller]
    pub fn merge(mut self, other: Self) -> Self {
        self.inner = self.inner.merge(other.inner);
        self.sites.merge(other.sites);
        self.answers_rest |= other.answers_rest;
        self
    }
}

impl<S> MethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    /// Answers the methods of a filter with the handler.
    ///
    /// # Panics
    ///
    /// One of them has a handler already, as in axum.
    #[track_caller]
    pub fn on<H, T>(mut self, filter: MethodFilter, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        for (method, one) in methods_of(filter) {
            let site = self.declare::<H>(method);
            self.inner = match Sole::of(handler.clone(), site) {
                Ok(sole) => self.inner.on(one, sole),
                Err(inner) => self.inner.on(one, At { inner, site }),
            };
        }
        self
    }

    /// Answers the methods of a filter with a service.
    ///
    /// # Panics
    ///
    /// One of them has a handler already, as in axum.
    #[track_caller]
    pub fn on_service<T>(mut self, filter: MethodFilter, service: T) -> Self
    where
        T: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
        T::Response: IntoResponse + 'static,
        T::Future: Send + 'static,
    {
        for (method, one) in methods_of(filter) {
            let site = self.declare::<T>(method);
            self.inner = self.inner.on_service(one, At { inner: service.clone(), site });
        }
        self
    }

    /// Answers the methods that have no handler; axum adds the header `Allow`.
    /// Default: 405 with an empty body.
    pub fn fallback<H, T>(mut self, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        let site = self.declare_rest::<H>(Methods::Rest);
        self.inner = self.inner.fallback(At { inner: handler, site });
        self
    }

    /// The same with a service.
    pub fn fallback_service<T>(mut self, service: T) -> Self
    where
        T: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
        T::Response: IntoResponse + 'static,
        T::Future: Send + 'static,
    {
        let site = self.declare_rest::<T>(Methods::Rest);
        self.inner = self.inner.fallback_service(At { inner: service, site });
        self
    }

    /// Puts a layer around all handlers so far, and around the fallback.
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<Route> + Clone + Send + Sync + 'static,
        L::Service: Service<Request> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Response: IntoResponse + 'static,
        <L::Service as Service<Request>>::Error: Into<Infallible> + 'static,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        if self.sites.rest.is_empty() {
            // axum's own answer to what is not declared, inside of the layer.
            self.sites.rest.push(Site::declare::<()>(Methods::Rest));
        }
        self.inner = self.inner.layer(MeteredLayer::new(layer, Meter::around(&self.sites)));
        self
    }

    /// Puts a layer around all handlers so far, and not around the fallback.
    ///
    /// # Panics
    ///
    /// There is no handler yet, as in axum.
    #[track_caller]
    pub fn route_layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<Route> + Clone + Send + Sync + 'static,
        L::Service: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Response: IntoResponse + 'static,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        let declared = Sites { declared: self.sites.declared.clone(), rest: Vec::new() };
        self.inner = self.inner.route_layer(MeteredLayer::new(layer, Meter::around(&declared)));
        self
    }

    fn declare<H>(&mut self, method: HttpMethod) -> &'static Site {
        let site = Site::declare::<H>(Methods::One(method));
        self.sites.declared.push((method, site));
        site
    }

    /// What answers the rest from now on.
    fn declare_rest<H>(&mut self, methods: Methods) -> &'static Site {
        let site = Site::declare::<H>(methods);
        self.sites.rest = vec![site];
        self.answers_rest = true;
        site
    }
}

/// Answers every method with the handler.
pub fn any<H, T, S>(handler: H) -> MethodRouter<S>
where
    H: Handler<T, S>,
    T: 'static,
    S: Clone + Send + Sync + 'static,
{
    let mut router = MethodRouter::new();
    let site = router.declare_rest::<H>(Methods::Each);
    router.inner = match Sole::of(handler, site) {
        Ok(sole) => routing::any(sole),
        Err(inner) => routing::any(At { inner, site }),
    };
    router
}

/// Answers every method with a service.
pub fn any_service<T, S>(service: T) -> MethodRouter<S>
where
    T: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
    T::Response: IntoResponse + 'static,
    T::Future: Send + 'static,
    S: Clone + Send + Sync + 'static,
{
    let mut router = MethodRouter::new();
    let site = router.declare_rest::<T>(Methods::Each);
    router.inner = routing::any_service(At { inner: service, site });
    router
}

/// Answers the methods of a filter with the handler.
pub fn on<H, T, S>(filter: MethodFilter, handler: H) -> MethodRouter<S>
where
    H: Handler<T, S>,
    T: 'static,
    S: Clone + Send + Sync + 'static,
{
    MethodRouter::new().on(filter, handler)
}

/// Answers the methods of a filter with a service.
pub fn on_service<T, S>(filter: MethodFilter, service: T) -> MethodRouter<S>
where
    T: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
    T::Response: IntoResponse + 'static,
    T::Future: Send + 'static,
    S: Clone + Send + Sync + 'static,
{
    MethodRouter::new().on_service(filter, service)
}

macro_rules! methods {
    ($($name:ident $service:ident $filter:ident $method:ident $text:literal)*) => {
        /// The methods of a filter, which does not list them.
        fn methods_of(filter: MethodFilter) -> impl Iterator<Item = (HttpMethod, MethodFilter)> {
            let all = [$((HttpMethod::$method, MethodFilter::$filter)),*];
            all.into_iter().filter(move |&(_, one)| filter.or(one) == filter)
        }

        $(
            #[doc = concat!("Answers `", $text, "` with the handler.")]
            pub fn $name<H, T, S>(handler: H) -> MethodRouter<S>
            where
                H: Handler<T, S>,
                T: 'static,
                S: Clone + Send + Sync + 'static,
            {
                on(MethodFilter::$filter, handler)
            }

            #[doc = concat!("Answers `", $text, "` with a service.")]
            pub fn $service<T, S>(service: T) -> MethodRouter<S>
            where
                T: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
                T::Response: IntoResponse + 'static,
                T::Future: Send + 'static,
                S: Clone + Send + Sync + 'static,
            {
                on_service(MethodFilter::$filter, service)
            }
        )*

        impl<S> MethodRouter<S>
        where
            S: Clone + Send + Sync + 'static,
        {
            $(
                #[doc = concat!("Answers `", $text, "` with the handler.")]
                ///
                /// # Panics
                ///
                /// The method has a handler already, as in axum.
                #[track_caller]
                pub fn $name<H, T>(self, handler: H) -> Self
                where
                    H: Handler<T, S>,
                    T: 'static,
                {
                    self.on(MethodFilter::$filter, handler)
                }

                #[doc = concat!("Answers `", $text, "` with a service.")]
                ///
                /// # Panics
                ///
                /// The method has a handler already, as in axum.
                #[track_caller]
                pub fn $service<T>(self, service: T) -> Self
                where
                    T: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
                    T::Response: IntoResponse + 'static,
                    T::Future: Send + 'static,
                {
                    self.on_service(MethodFilter::$filter, service)
                }
            )*
        }
    };
}
// In the order in which axum tells what is allowed.
methods! {
    get get_service GET Get "GET"
    head head_service HEAD Head "HEAD"
    trace trace_service TRACE Trace "TRACE"
    put put_service PUT Put "PUT"
    post post_service POST Post "POST"
    patch patch_service PATCH Patch "PATCH"
    options options_service OPTIONS Options "OPTIONS"
    delete delete_service DELETE Delete "DELETE"
    connect connect_service CONNECT Connect "CONNECT"
}
