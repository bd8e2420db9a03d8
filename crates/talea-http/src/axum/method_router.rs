//! Handlers by method, each metered before axum boxes it.

use ::axum::extract::Request;
use ::axum::handler::Handler;
use ::axum::routing;

use crate::meter::{Endpoint, Metered};

/// A handler for each of some methods: as axum's, made by [`get`], [`post`] and
/// so on and chained. It can be used for one route.
#[must_use = "a method router does nothing until it is given a route"]
#[derive(Debug)]
pub struct MethodRouter<S = ()> {
    pub(crate) inner: routing::MethodRouter<S>,
    pub(crate) endpoints: Vec<(&'static str, &'static Endpoint)>,
    /// What a fallback of its own answers.
    pub(crate) other: Option<&'static Endpoint>,
}

impl<S> MethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    fn new() -> Self {
        Self { inner: routing::MethodRouter::new(), endpoints: Vec::new(), other: None }
    }

    /// Answers the methods that have no handler; axum adds the header `Allow`.
    /// Default: 405 with an empty body.
    pub fn fallback<H, T>(mut self, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        let endpoint = *self.other.get_or_insert_with(Endpoint::declare);
        self.inner = self.inner.fallback(MeteredHandler { handler, endpoint });
        self
    }
}

macro_rules! methods {
    ($($name:ident $method:literal)*) => {
        $(
            #[doc = concat!("Answers `", $method, "` with the handler.")]
            pub fn $name<H, T, S>(handler: H) -> MethodRouter<S>
            where
                H: Handler<T, S>,
                T: 'static,
                S: Clone + Send + Sync + 'static,
            {
                MethodRouter::new().$name(handler)
            }
        )*

        impl<S> MethodRouter<S>
        where
            S: Clone + Send + Sync + 'static,
        {
            $(
                #[doc = concat!("Answers `", $method, "` with the handler.")]
                ///
                /// # Panics
                ///
                /// The method has a handler already, as in axum.
                pub fn $name<H, T>(mut self, handler: H) -> Self
                where
                    H: Handler<T, S>,
                    T: 'static,
                {
                    let endpoint = Endpoint::declare();
                    self.endpoints.push(($method, endpoint));
                    self.inner = self.inner.$name(MeteredHandler { handler, endpoint });
                    self
                }
            )*
        }
    };
}
methods! {
    get "GET"
    head "HEAD"
    post "POST"
    put "PUT"
    patch "PATCH"
    delete "DELETE"
    options "OPTIONS"
    trace "TRACE"
    connect "CONNECT"
}

/// A handler and the endpoint that it answers.
#[derive(Clone, Debug)]
pub(crate) struct MeteredHandler<H> {
    pub(crate) handler: H,
    pub(crate) endpoint: &'static Endpoint,
}

impl<H, T, S> Handler<T, S> for MeteredHandler<H>
where
    H: Handler<T, S>,
    T: 'static,
    S: Send + 'static,
{
    type Future = Metered<H::Future>;

    #[inline]
    fn call(self, request: Request, state: S) -> Self::Future {
        let in_flight = self.endpoint.start(0);
        Metered::new(in_flight, self.handler.call(request, state))
    }
}
