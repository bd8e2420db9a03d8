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

use super::handler::{At, Inside};
use super::layer::MeteredLayer;
use super::shared::{self, SharedLayer};
use super::site::{Site, Sites};
use super::sole::Sole;
use crate::case::Methods;

/// A handler or a service for each of some methods: as axum's, made by [`get`], [`post`] and
/// so on and chained. It can be used for one route.
#[must_use = "a method router does nothing until it is given a route"]
pub struct MethodRouter<S = ()> {
    pub(super) sites: Sites,
    /// Whether what is not declared has an answer of its own; 405 otherwise.
    pub(super) answers_rest: bool,
    /// Whether a layer is around what answers it, whatever that is.
    pub(super) layers_rest: bool,
    /// The most layers that are around any of them.
    pub(super) layers: usize,
    pub(super) build: Build<S>,
}

/// Makes axum's router. What is outermost shows when nothing comes any more, and that alone
/// is metered.
type Build<S> = Box<dyn FnOnce(Meters) -> routing::MethodRouter<S> + Send + Sync>;

/// Which parts of a method router are to meter themselves, because nothing outside does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meters {
    pub(super) declared: bool,
    pub(super) rest: bool,
}

impl Meters {
    const NONE: Self = Self { declared: false, rest: false };

    pub(super) fn all(metered: bool) -> Self {
        Self { declared: metered, rest: metered }
    }
}

impl<S> fmt::Debug for MethodRouter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.sites.declared.iter().map(|(method, _)| method)).finish()
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
    /// One without handlers.
    pub fn new() -> Self {
        Self {
            sites: Sites::default(),
            answers_rest: false,
            layers_rest: false,
            layers: 0,
            build: Box::new(|_| routing::MethodRouter::new()),
        }
    }

    /// Gives the handlers their state.
    pub fn with_state<S2: 'static>(self, state: S) -> MethodRouter<S2> {
        let Self { sites, answers_rest, layers_rest, layers, build } = self;
        let build: Build<S2> = Box::new(move |meters| build(meters).with_state(state));
        MethodRouter { sites, answers_rest, layers_rest, layers, build }
    }

    /// Adds another's handlers.
    ///
    /// # Panics
    ///
    /// Both have a handler for a method, or both have a fallback.
    #[track_caller]
    pub fn merge(mut self, other: Self) -> Self {
        for (method, _) in &other.sites.declared {
            self.assert_free(*method);
        }
        assert!(
            !(self.answers_rest && other.answers_rest),
            "both method routers have a fallback; give one of them"
        );
        self.sites.merge(other.sites);
        self.answers_rest |= other.answers_rest;
        // axum takes the one that is given, or else the other's default.
        self.layers_rest = match (self.answers_rest, other.answers_rest) {
            (true, false) => self.layers_rest,
            _ => other.layers_rest,
        };
        self.layers = self.layers.max(other.layers);
        let theirs = other.build;
        self.built(move |inner, meters| inner.merge(theirs(meters)))
    }

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
            let (site, handler) = (self.declare::<H>(method), handler.clone());
            self = self.built(move |inner, meters| match meters.declared {
                false => inner.on(one, Inside(handler)),
                true => match Sole::of(handler, site) {
                    Ok(sole) => inner.on(one, sole),
                    Err(handler) => inner.on(one, At { inner: handler, site }),
                },
            });
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
            let (site, service) = (self.declare::<T>(method), service.clone());
            self = self.built(move |inner, meters| match meters.declared {
                false => inner.on_service(one, Inside(service)),
                true => inner.on_service(one, At { inner: service, site }),
            });
        }
        self
    }

    /// Answers the methods that have no handler; axum adds the header `Allow`.
    /// Default: 405 with an empty body.
    pub fn fallback<H, T>(self, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        self.answered::<H>(Methods::Rest, move |inner, site| match site {
            None => inner.fallback(Inside(handler)),
            Some(site) => inner.fallback(At { inner: handler, site }),
        })
    }

    /// The same with a service.
    pub fn fallback_service<T>(self, service: T) -> Self
    where
        T: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
        T::Response: IntoResponse + 'static,
        T::Future: Send + 'static,
    {
        self.answered::<T>(Methods::Rest, move |inner, site| match site {
            None => inner.fallback_service(Inside(service)),
            Some(site) => inner.fallback_service(At { inner: service, site }),
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
        if self.sites.rest.is_empty() {
            // axum's own answer to what is not declared, inside of the layer.
            self.sites.rest.push(Site::declare::<()>(Methods::Rest));
        }
        self.layers_rest = true;
        let Self { sites, build, .. } = self;
        let around = sites.clone();
        let layers = self.layers + 1;
        let build: Build<S> = Box::new(move |meters| {
            let inner = build(Meters::NONE);
            match meters {
                Meters { declared: false, rest: false } if shared::is_due(layers) => {
                    inner.layer(SharedLayer(layer))
                }
                Meters { declared: false, rest: false } => inner.layer(layer),
                Meters { declared, rest } => inner.layer(MeteredLayer::new(
                    layer,
                    &Sites {
                        declared: if declared { around.declared } else { Vec::new() },
                        rest: if rest { around.rest } else { Vec::new() },
                    },
                )),
            }
        });
        Self { sites, layers, build, ..self }
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
            !self.sites.declared.is_empty(),
            "there is no handler that a route layer could be put around; add it after the handlers"
        );
        let Self { sites, build, .. } = self;
        let around = Sites { declared: sites.declared.clone(), rest: Vec::new() };
        let layers = self.layers + 1;
        let build: Build<S> = Box::new(move |Meters { declared, rest }| {
            let inner = build(Meters { declared: false, rest });
            match declared {
                false if shared::is_due(layers) => inner.route_layer(SharedLayer(layer)),
                false => inner.route_layer(layer),
                true => inner.route_layer(MeteredLayer::new(layer, &around)),
            }
        });
        Self { sites, layers, build, ..self }
    }

    /// With what answers the rest from now on, given its endpoint if it is to meter itself.
    fn answered<H>(
        mut self,
        methods: Methods,
        answer: impl FnOnce(routing::MethodRouter<S>, Option<&'static Site>) -> routing::MethodRouter<S>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let site = Site::declare::<H>(methods);
        self.sites.rest = vec![site];
        self.answers_rest = true;
        self.layers_rest = false;
        self.built(move |inner, meters| answer(inner, meters.rest.then_some(site)))
    }

    fn built(
        self,
        more: impl FnOnce(routing::MethodRouter<S>, Meters) -> routing::MethodRouter<S>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let build = self.build;
        Self { build: Box::new(move |meters| more(build(meters), meters)), ..self }
    }

    #[track_caller]
    fn declare<H>(&mut self, method: HttpMethod) -> &'static Site {
        self.assert_free(method);
        let site = Site::declare::<H>(Methods::One(method));
        self.sites.declared.push((method, site));
        site
    }

    #[track_caller]
    fn assert_free(&self, method: HttpMethod) {
        assert!(
            self.sites.declared.iter().all(|(declared, _)| *declared != method),
            "there are two handlers for {}; give one of them",
            method.as_str()
        );
    }
}

/// Answers every method with the handler.
pub fn any<H, T, S>(handler: H) -> MethodRouter<S>
where
    H: Handler<T, S>,
    T: 'static,
    S: Clone + Send + Sync + 'static,
{
    MethodRouter::new().answered::<H>(Methods::Each, move |_, site| match site {
        None => routing::any(Inside(handler)),
        Some(site) => match Sole::of(handler, site) {
            Ok(sole) => routing::any(sole),
            Err(handler) => routing::any(At { inner: handler, site }),
        },
    })
}

/// Answers every method with a service.
pub fn any_service<T, S>(service: T) -> MethodRouter<S>
where
    T: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
    T::Response: IntoResponse + 'static,
    T::Future: Send + 'static,
    S: Clone + Send + Sync + 'static,
{
    MethodRouter::new().answered::<T>(Methods::Each, move |_, site| match site {
        None => routing::any_service(Inside(service)),
        Some(site) => routing::any_service(At { inner: service, site }),
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
