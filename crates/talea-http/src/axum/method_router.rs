//! Handlers by method, each metered before axum boxes it.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::axum::BoxError;
use ::axum::body::{Bytes, HttpBody};
use ::axum::error_handling::{HandleError, HandleErrorLayer};
use ::axum::extract::Request;
use ::axum::handler::Handler;
use ::axum::http;
use ::axum::response::IntoResponse;
use ::axum::routing::{self, MethodFilter, Route};
use talea::HttpMethod;
use tower_layer::Layer;
use tower_service::Service;

use super::declared_endpoint::{DeclaredEndpoint, MeteredParts, RouteEndpoints};
use super::handler::{MeteredHandler, add};
use super::metered_layer::MeteredLayer;
use super::meters_by_type::ByType;
use super::panic_watch::PanicWatch;
use super::shared_layer::{SharedLayer, is_shared};
use crate::labels::endpoint::Methods;

/// A handler or a service for each of some methods. As axum's, it is created by [`get`], [`post`]
/// and so on, and methods can be chained.
///
/// It is a handler and a service itself, as axum's is: its requests are counted by the route that it
/// is given to, for example by `Router::fallback`.
#[must_use = "a method router does nothing until it is given a route"]
pub struct MethodRouter<S = (), E = Infallible> {
    /// The same declaration by axum, without meters.
    pub(super) plain: routing::MethodRouter<S, E>,
    pub(super) endpoints: RouteEndpoints,
    pub(super) build: Build<S, E>,
}

/// The methods that [`Router::route`](super::Router::route) takes: a [`MethodRouter`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` declares no endpoint, so `talea_http::axum::Router` cannot meter it",
    label = "made by a function of axum's own",
    note = "write `use talea_http::axum::get;` in place of `use axum::routing::get;`, as for `post`, `any`, \
            `on` and the others",
    note = "to keep axum's router and its functions, write `talea_http::axum::meter(app, &registry)?`"
)]
pub trait RouteMethods<S> {
    /// The methods.
    #[doc(hidden)]
    fn methods(self) -> MethodRouter<S>;
}

impl<S> RouteMethods<S> for MethodRouter<S> {
    fn methods(self) -> MethodRouter<S> {
        self
    }
}

/// Builds axum's router once the declaration is complete, since only the outermost parts are
/// metered.
type Build<S, E> = Arc<dyn Fn(MeteredParts<'_>) -> routing::MethodRouter<S, E> + Send + Sync>;

impl<S, E> Clone for MethodRouter<S, E> {
    fn clone(&self) -> Self {
        let Self { plain, endpoints, build } = self;
        Self { plain: plain.clone(), endpoints: endpoints.clone(), build: build.clone() }
    }
}

impl<S, E> fmt::Debug for MethodRouter<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.endpoints.declared.iter().map(|(method, _)| method)).finish()
    }
}

impl<S, E> Default for MethodRouter<S, E>
where
    S: Clone + Send + Sync + 'static,
    E: 'static,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<S> MethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    /// Routes the methods of a filter to the handler.
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
        self.plain = self.plain.on(filter, PanicWatch(handler.clone()));
        for (method, one) in methods_of(filter) {
            self.declare::<H>(method);
            let handler = handler.clone();
            self = self.and_then(move |inner, parts| {
                let handler = handler.clone();
                match parts.of(method) {
                    None => inner.on(one, PanicWatch(handler)),
                    Some(meters) => match ByType::declare::<H>(meters) {
                        Some(door) => inner.on(one, MeteredHandler { inner: handler, door }),
                        None => inner.on(one, MeteredHandler { inner: handler, door: meters }),
                    },
                }
            });
        }
        self
    }

    /// Handles the methods that have no handler; axum adds the header `Allow`. On [`any`] it
    /// replaces the handler, and every method has its own name. Default: 405 with an empty body.
    pub fn fallback<H, T>(mut self, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        self.plain = self.plain.fallback(PanicWatch(handler.clone()));
        self.with_rest::<H>(Methods::Rest, move |inner, parts| {
            let handler = handler.clone();
            add!(parts.of_rest(), |handler| inner.fallback(handler))
        })
    }
}

impl<S, E> MethodRouter<S, E>
where
    S: Clone + Send + Sync + 'static,
    E: 'static,
{
    /// A method router without handlers.
    pub fn new() -> Self {
        Self {
            plain: routing::MethodRouter::new(),
            endpoints: RouteEndpoints::default(),
            build: Arc::new(|_| routing::MethodRouter::new()),
        }
    }

    /// Gives the handlers their state.
    pub fn with_state<S2: 'static>(self, state: S) -> MethodRouter<S2, E> {
        let Self { plain, endpoints, build } = self;
        let plain = plain.with_state(state.clone());
        let build: Build<S2, E> = Arc::new(move |parts| build(parts).with_state(state.clone()));
        MethodRouter { plain, endpoints, build }
    }

    /// Adds the handlers of another.
    ///
    /// # Panics
    ///
    /// Both have a handler for a method, or both have a fallback.
    #[track_caller]
    pub fn merge(mut self, other: Self) -> Self {
        self.plain = self.plain.merge(other.plain);
        self.endpoints.merge(other.endpoints);
        let theirs = other.build;
        self.and_then(move |inner, parts| inner.merge(theirs(parts)))
    }

    /// Routes the methods of a filter to a service.
    ///
    /// # Panics
    ///
    /// A method of the filter has a handler already, as in axum.
    #[track_caller]
    pub fn on_service<T>(mut self, filter: MethodFilter, service: T) -> Self
    where
        T: Service<Request, Error = E> + Clone + Send + Sync + 'static,
        T::Response: IntoResponse + 'static,
        T::Future: Send + 'static,
    {
        self.plain = self.plain.on_service(filter, PanicWatch(service.clone()));
        for (method, one) in methods_of(filter) {
            self.declare::<T>(method);
            let service = service.clone();
            self = self.and_then(move |inner, parts| {
                let service = service.clone();
                add!(parts.of(method), |service| inner.on_service(one, service))
            });
        }
        self
    }

    /// Routes the methods that have no handler to a service.
    pub fn fallback_service<T>(mut self, service: T) -> Self
    where
        T: Service<Request, Error = E> + Clone + Send + Sync + 'static,
        T::Response: IntoResponse + 'static,
        T::Future: Send + 'static,
    {
        self.plain = self.plain.fallback_service(PanicWatch(service.clone()));
        self.with_rest::<T>(Methods::Rest, move |inner, parts| {
            let service = service.clone();
            add!(parts.of_rest(), |service| inner.fallback_service(service))
        })
    }

    /// Puts a layer around all handlers so far, and around the fallback.
    pub fn layer<L, E2>(self, layer: L) -> MethodRouter<S, E2>
    where
        L: Layer<Route<E>> + Clone + Send + Sync + 'static,
        L::Service: Service<Request> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Response: IntoResponse + 'static,
        <L::Service as Service<Request>>::Error: Into<E2> + 'static,
        <L::Service as Service<Request>>::Future: Send + 'static,
        E2: 'static,
    {
        let Self { plain, mut endpoints, build } = self;
        // axum's own response is inside of the layer.
        endpoints.rest();
        endpoints.layers_rest = true;
        endpoints.layers += 1;
        let shared = is_shared(endpoints.layers);
        let plain = add_layer(plain, layer.clone(), shared);
        let build: Build<S, E2> = Arc::new(move |parts| {
            let inner = build(MeteredParts::default());
            match parts.by_method() {
                Some(meters) => inner.layer(MeteredLayer::new(layer.clone(), meters)),
                None => add_layer(inner, layer.clone(), shared),
            }
        });
        MethodRouter { plain, endpoints, build }
    }

    /// Puts a layer around all handlers so far, and not around the fallback.
    ///
    /// # Panics
    ///
    /// There is no handler yet, as in axum.
    #[track_caller]
    pub fn route_layer<L>(self, layer: L) -> Self
    where
        L: Layer<Route<E>> + Clone + Send + Sync + 'static,
        L::Service: Service<Request, Error = E> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Response: IntoResponse + 'static,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        let Self { plain, mut endpoints, build } = self;
        endpoints.layers += 1;
        let shared = is_shared(endpoints.layers);
        let plain = match shared {
            true => plain.route_layer(SharedLayer(layer.clone())),
            false => plain.route_layer(layer.clone()),
        };
        let build: Build<S, E> = Arc::new(move |MeteredParts { declared, rest }| {
            let (inner, layer) = (build(MeteredParts { declared: None, rest }), layer.clone());
            let outer = MeteredParts { declared, rest: None };
            match outer.by_method() {
                Some(meters) => inner.route_layer(MeteredLayer::new(layer, meters)),
                None if shared => inner.route_layer(SharedLayer(layer)),
                None => inner.route_layer(layer),
            }
        });
        Self { plain, endpoints, build }
    }

    /// Turns errors of the services and layers inside into responses.
    pub fn handle_error<F, T>(self, f: F) -> MethodRouter<S>
    where
        F: Clone + Send + Sync + 'static,
        HandleError<Route<E>, F, T>: Service<Request, Error = Infallible>,
        <HandleError<Route<E>, F, T> as Service<Request>>::Future: Send,
        <HandleError<Route<E>, F, T> as Service<Request>>::Response: IntoResponse + Send,
        T: 'static,
    {
        self.layer(HandleErrorLayer::new(f))
    }

    /// Replaces the handler of undeclared methods.
    fn with_rest<H>(
        mut self,
        methods: Methods,
        handle: impl Fn(routing::MethodRouter<S, E>, MeteredParts<'_>) -> routing::MethodRouter<S, E>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        // As in axum, a fallback on `any` handles every method in place of its handler.
        let methods = self.endpoints.rest.map_or(methods, |replaced| replaced.methods);
        self.endpoints.set_fallback(DeclaredEndpoint::declare::<H>(methods));
        self.and_then(handle)
    }

    fn and_then(
        self,
        step: impl Fn(routing::MethodRouter<S, E>, MeteredParts<'_>) -> routing::MethodRouter<S, E>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let build = self.build;
        Self { build: Arc::new(move |parts| step(build(parts), parts)), ..self }
    }

    fn declare<H>(&mut self, method: HttpMethod) {
        let endpoint = DeclaredEndpoint::declare::<H>(Methods::One(method));
        self.endpoints.declared.push((method, endpoint));
    }
}

/// Adds a layer without a meter.
fn add_layer<S, E, L, E2>(
    router: routing::MethodRouter<S, E>,
    layer: L,
    shared: bool,
) -> routing::MethodRouter<S, E2>
where
    S: Clone + 'static,
    E: 'static,
    L: Layer<Route<E>> + Clone + Send + Sync + 'static,
    L::Service: Service<Request> + Clone + Send + Sync + 'static,
    <L::Service as Service<Request>>::Response: IntoResponse + 'static,
    <L::Service as Service<Request>>::Error: Into<E2> + 'static,
    <L::Service as Service<Request>>::Future: Send + 'static,
    E2: 'static,
{
    if shared { router.layer(SharedLayer(layer)) } else { router.layer(layer) }
}

/// Without meters: the route that it is given to has them.
impl<B, E> Service<http::Request<B>> for MethodRouter<(), E>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = ::axum::response::Response;
    type Error = E;
    type Future = routing::future::RouteFuture<E>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        Service::<http::Request<B>>::poll_ready(&mut self.plain, cx)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        self.plain.call(request)
    }
}

/// Without meters: the route that it is given to has them.
impl<S> Handler<(), S> for MethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    type Future = <routing::MethodRouter<S> as Handler<(), S>>::Future;

    fn call(self, request: Request, state: S) -> Self::Future {
        Handler::call(self.plain, request, state)
    }
}

/// Routes every method to the handler. The series for `GET` exist from the start, the series for another
/// method from its first request on.
pub fn any<H, T, S>(handler: H) -> MethodRouter<S>
where
    H: Handler<T, S>,
    T: 'static,
    S: Clone + Send + Sync + 'static,
{
    let mut router = MethodRouter::new();
    router.plain = routing::any(PanicWatch(handler.clone()));
    router.with_rest::<H>(Methods::Each, move |_, parts| {
        let handler = handler.clone();
        match parts.of_rest() {
            None => routing::any(PanicWatch(handler)),
            Some(meters) => match ByType::declare::<H>(meters) {
                Some(door) => routing::any(MeteredHandler { inner: handler, door }),
                None => routing::any(MeteredHandler { inner: handler, door: meters }),
            },
        }
    })
}

/// Routes every method to a service, as [`any`].
pub fn any_service<T, S>(service: T) -> MethodRouter<S, T::Error>
where
    T: Service<Request> + Clone + Send + Sync + 'static,
    T::Response: IntoResponse + 'static,
    T::Future: Send + 'static,
    T::Error: 'static,
    S: Clone + Send + Sync + 'static,
{
    let mut router = MethodRouter::new();
    router.plain = routing::any_service(PanicWatch(service.clone()));
    router.with_rest::<T>(Methods::Each, move |_, parts| {
        let service = service.clone();
        add!(parts.of_rest(), |service| routing::any_service(service))
    })
}

/// Routes the methods of a filter to the handler.
pub fn on<H, T, S>(filter: MethodFilter, handler: H) -> MethodRouter<S>
where
    H: Handler<T, S>,
    T: 'static,
    S: Clone + Send + Sync + 'static,
{
    MethodRouter::new().on(filter, handler)
}

/// Routes the methods of a filter to a service.
pub fn on_service<T, S>(filter: MethodFilter, service: T) -> MethodRouter<S, T::Error>
where
    T: Service<Request> + Clone + Send + Sync + 'static,
    T::Response: IntoResponse + 'static,
    T::Future: Send + 'static,
    T::Error: 'static,
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
            #[doc = concat!("Routes `", $text, "` requests to the handler.")]
            pub fn $name<H, T, S>(handler: H) -> MethodRouter<S>
            where
                H: Handler<T, S>,
                T: 'static,
                S: Clone + Send + Sync + 'static,
            {
                on(MethodFilter::$filter, handler)
            }

            #[doc = concat!("Routes `", $text, "` requests to a service.")]
            pub fn $service<T, S>(service: T) -> MethodRouter<S, T::Error>
            where
                T: Service<Request> + Clone + Send + Sync + 'static,
                T::Response: IntoResponse + 'static,
                T::Future: Send + 'static,
                T::Error: 'static,
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
                #[doc = concat!("Routes `", $text, "` requests to the handler.")]
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

            )*
        }

        impl<S, E> MethodRouter<S, E>
        where
            S: Clone + Send + Sync + 'static,
            E: 'static,
        {
            $(
                #[doc = concat!("Routes `", $text, "` requests to a service.")]
                ///
                /// # Panics
                ///
                /// The method has a handler already, as in axum.
                #[track_caller]
                pub fn $service<T>(self, service: T) -> Self
                where
                    T: Service<Request, Error = E> + Clone + Send + Sync + 'static,
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
