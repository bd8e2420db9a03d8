//! Handlers by method, each metered before axum boxes it.

use std::convert::Infallible;
use std::fmt;

use ::axum::extract::Request;
use ::axum::handler::Handler;
use ::axum::response::IntoResponse;
use ::axum::routing::{self, MethodFilter, Route};
use talea::HttpMethod;
use tower_layer::Layer;
use tower_service::Service;

use super::declared_endpoint::{DeclaredEndpoint, MeteredParts, RouteEndpoints};
use super::handler::{MeteredHandler, PanicWatch, add};
use super::metered_layer::MeteredLayer;
use super::shared_layer::{SharedLayer, is_shared};
use super::zero_sized_handler::ZeroSizedHandler;
use crate::labels::endpoint::Methods;

/// A handler or a service for each of some methods. As axum's, it is created by [`get`], [`post`]
/// and so on, and methods can be chained. Use each for one route.
#[must_use = "a method router does nothing until it is given a route"]
pub struct MethodRouter<S = ()> {
    pub(super) endpoints: RouteEndpoints,
    pub(super) build: Build<S>,
}

/// Builds axum's router once the declaration is complete, since only the outermost parts are
/// metered.
type Build<S> = Box<dyn FnOnce(MeteredParts) -> routing::MethodRouter<S> + Send + Sync>;

impl<S> fmt::Debug for MethodRouter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.endpoints.declared.iter().map(|(method, _)| method)).finish()
    }
}

impl<S> Default for MethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<S> MethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    /// A method router without handlers.
    pub fn new() -> Self {
        let build: Build<S> = Box::new(|_| routing::MethodRouter::new());
        Self { endpoints: RouteEndpoints::default(), build }
    }

    /// Gives the handlers their state.
    pub fn with_state<S2: 'static>(self, state: S) -> MethodRouter<S2> {
        let Self { endpoints, build } = self;
        MethodRouter { endpoints, build: Box::new(move |parts| build(parts).with_state(state)) }
    }

    /// Adds the handlers of another.
    ///
    /// # Panics
    ///
    /// Both have a handler for a method, or both have a fallback.
    #[track_caller]
    pub fn merge(mut self, other: Self) -> Self {
        for (method, _) in &other.endpoints.declared {
            self.assert_free(*method);
        }
        assert!(
            !(self.endpoints.has_fallback && other.endpoints.has_fallback),
            "both method routers have a fallback; give one of them"
        );
        self.endpoints.merge(other.endpoints);
        let theirs = other.build;
        self.and_then(move |inner, parts| inner.merge(theirs(parts)))
    }

    /// Answers the methods of a filter with the handler.
    ///
    /// # Panics
    ///
    /// A method of the filter has a handler already, as in axum.
    #[track_caller]
    pub fn on<H, T>(mut self, filter: MethodFilter, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        for (method, one) in methods_of(filter) {
            let (endpoint, handler) = (self.declare::<H>(method), handler.clone());
            self = self.and_then(move |inner, parts| match parts.declared {
                false => inner.on(one, PanicWatch(handler)),
                true => match ZeroSizedHandler::new(handler, endpoint) {
                    Ok(handler) => inner.on(one, handler),
                    Err(handler) => inner.on(one, MeteredHandler { inner: handler, endpoint }),
                },
            });
        }
        self
    }

    /// Answers the methods of a filter with a service.
    ///
    /// # Panics
    ///
    /// A method of the filter has a handler already, as in axum.
    #[track_caller]
    pub fn on_service<T>(mut self, filter: MethodFilter, service: T) -> Self
    where
        T: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
        T::Response: IntoResponse + 'static,
        T::Future: Send + 'static,
    {
        for (method, one) in methods_of(filter) {
            let (endpoint, service) = (self.declare::<T>(method), service.clone());
            self = self.and_then(move |inner, parts| {
                add!(parts.declared.then_some(endpoint), |service| inner.on_service(one, service))
            });
        }
        self
    }

    /// Answers the methods that have no handler; axum adds the header `Allow`. On [`any`] it
    /// replaces the handler, and every method has its own name. Default: 405 with an empty body.
    pub fn fallback<H, T>(self, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        self.with_rest::<H>(Methods::Rest, move |inner, endpoint| {
            add!(endpoint, |handler| inner.fallback(handler))
        })
    }

    /// Answers the methods that have no handler with a service.
    pub fn fallback_service<T>(self, service: T) -> Self
    where
        T: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
        T::Response: IntoResponse + 'static,
        T::Future: Send + 'static,
    {
        self.with_rest::<T>(Methods::Rest, move |inner, endpoint| {
            add!(endpoint, |service| inner.fallback_service(service))
        })
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
        if self.endpoints.rest.is_empty() {
            // axum's own answer, inside of the layer.
            self.endpoints.rest.push(DeclaredEndpoint::declare::<()>(Methods::Rest));
        }
        let Self { mut endpoints, build } = self;
        endpoints.layers_rest = true;
        endpoints.layers += 1;
        let around = endpoints.clone();
        let build: Build<S> = Box::new(move |parts| {
            let inner = build(MeteredParts::all(false));
            match parts {
                MeteredParts { declared: false, rest: false } if is_shared(around.layers) => {
                    inner.layer(SharedLayer(layer))
                }
                MeteredParts { declared: false, rest: false } => inner.layer(layer),
                parts => inner.layer(MeteredLayer::new(layer, &around, parts)),
            }
        });
        Self { endpoints, build }
    }

    /// Puts a layer around all handlers so far, and not around the fallback.
    ///
    /// # Panics
    ///
    /// There is no handler yet, as in axum.
    #[track_caller]
    pub fn route_layer<L>(self, layer: L) -> Self
    where
        L: Layer<Route> + Clone + Send + Sync + 'static,
        L::Service: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Response: IntoResponse + 'static,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        assert!(
            !self.endpoints.declared.is_empty(),
            "there is no handler that a route layer could be put around; add it after the handlers"
        );
        let Self { mut endpoints, build } = self;
        endpoints.layers += 1;
        let around = endpoints.clone();
        let build: Build<S> = Box::new(move |MeteredParts { declared, rest }| {
            let inner = build(MeteredParts { declared: false, rest });
            let parts = MeteredParts { declared, rest: false };
            match declared {
                false if is_shared(around.layers) => inner.route_layer(SharedLayer(layer)),
                false => inner.route_layer(layer),
                true => inner.route_layer(MeteredLayer::new(layer, &around, parts)),
            }
        });
        Self { endpoints, build }
    }

    /// Replaces the answer to undeclared methods. `answer` gets the endpoint if it is to meter
    /// itself.
    fn with_rest<H>(
        mut self,
        methods: Methods,
        answer: impl FnOnce(
            routing::MethodRouter<S>,
            Option<&'static DeclaredEndpoint>,
        ) -> routing::MethodRouter<S>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        // As in axum, a fallback on `any` answers every method in place of its handler.
        let methods = self.endpoints.rest.first().map_or(methods, |replaced| replaced.methods);
        let endpoint = DeclaredEndpoint::declare::<H>(methods);
        self.endpoints.set_fallback(endpoint);
        self.and_then(move |inner, parts| answer(inner, parts.rest.then_some(endpoint)))
    }

    fn and_then(
        self,
        step: impl FnOnce(routing::MethodRouter<S>, MeteredParts) -> routing::MethodRouter<S>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let build = self.build;
        Self { build: Box::new(move |parts| step(build(parts), parts)), ..self }
    }

    #[track_caller]
    fn declare<H>(&mut self, method: HttpMethod) -> &'static DeclaredEndpoint {
        self.assert_free(method);
        let endpoint = DeclaredEndpoint::declare::<H>(Methods::One(method));
        self.endpoints.declared.push((method, endpoint));
        endpoint
    }

    #[track_caller]
    fn assert_free(&self, method: HttpMethod) {
        assert!(
            self.endpoints.declared.iter().all(|(declared, _)| *declared != method),
            "there are two handlers for {}; give one of them",
            method.as_str()
        );
    }
}

/// Answers every method with the handler. The series of `GET` exist from the start, those of another
/// method from its first request on.
pub fn any<H, T, S>(handler: H) -> MethodRouter<S>
where
    H: Handler<T, S>,
    T: 'static,
    S: Clone + Send + Sync + 'static,
{
    MethodRouter::new().with_rest::<H>(Methods::Each, move |_, endpoint| match endpoint {
        None => routing::any(PanicWatch(handler)),
        Some(endpoint) => match ZeroSizedHandler::new(handler, endpoint) {
            Ok(handler) => routing::any(handler),
            Err(handler) => routing::any(MeteredHandler { inner: handler, endpoint }),
        },
    })
}

/// Answers every method with a service, as [`any`].
pub fn any_service<T, S>(service: T) -> MethodRouter<S>
where
    T: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
    T::Response: IntoResponse + 'static,
    T::Future: Send + 'static,
    S: Clone + Send + Sync + 'static,
{
    MethodRouter::new().with_rest::<T>(Methods::Each, move |_, endpoint| match endpoint {
        None => routing::any_service(PanicWatch(service)),
        Some(endpoint) => routing::any_service(MeteredHandler { inner: service, endpoint }),
    })
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
        /// The methods of a filter, which has no method that lists them.
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
// In the order of axum's header `Allow`.
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
