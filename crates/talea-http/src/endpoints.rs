//! Endpoints that are declared one by one, for services that are not axum's.

use std::fmt;

use http::{Method, Request};
use talea::{Error, HttpMethod, Registry};

use crate::case::{Declared, Methods};
use crate::families::Families;
use crate::layer::Layer;
use crate::meters::Meters;
use crate::opts::Opts;

/// The route of what no declared route matched.
pub(crate) const UNMATCHED: &str = "_unmatched";

/// Registered metrics, under which endpoints are declared. A clone is the same.
///
/// Endpoints live as long as the program, as its routes do: declare each once.
#[derive(Clone, Copy, Debug)]
pub struct Endpoints {
    families: &'static Families,
}

/// A declared endpoint: what a request is told by. It is a pointer.
#[derive(Clone, Copy)]
pub struct Endpoint {
    pub(crate) meters: &'static Meters,
}

impl Endpoints {
    /// Those under the default names: [`Opts::register`] for others.
    ///
    /// # Errors
    ///
    /// As [`Opts::register`].
    pub fn new(registry: &Registry) -> Result<Self, Error> {
        Opts::new().register(registry)
    }

    pub(crate) fn of(families: Families) -> Self {
        Self { families: Box::leak(Box::new(families)) }
    }

    /// Declares an endpoint by its method and the template of its route, such as
    /// `/items/{id}`; its series are made. A method that is not known is `_OTHER`.
    ///
    /// Twice the same are told as one.
    pub fn declare(&self, method: &Method, route: &str) -> Endpoint {
        self.declare_known(HttpMethod::of(method.as_str()), route)
    }

    /// The same by a method that is known, or `_OTHER`.
    pub(crate) fn declare_known(&self, method: HttpMethod, route: &str) -> Endpoint {
        let methods = match method {
            HttpMethod::Other => Methods::Rest,
            method => Methods::One(method),
        };
        self.endpoint(methods, route, &format!("{} {route}", method.as_str()))
    }

    /// Declares one that answers every method; each known one has its own series.
    pub fn declare_any(&self, route: &str) -> Endpoint {
        self.unnamed(Methods::Each, route)
    }

    /// Declares what answers the methods that a route does not have: they are `_OTHER`.
    pub fn declare_rest(&self, route: &str) -> Endpoint {
        self.unnamed(Methods::Rest, route)
    }

    /// Declares what answers where no route matches: `_unmatched`.
    pub fn unmatched(&self) -> Endpoint {
        self.declare_rest(UNMATCHED)
    }

    /// A layer that finds each request's endpoint by a function, for hyper or any tower
    /// service. It takes no part in routing: what the function says is told.
    ///
    /// ```
    /// use http::{Method, Request, Response};
    /// use talea_http::{Endpoints, RequestBody};
    /// use tower::{ServiceBuilder, service_fn};
    ///
    /// # type Body = http_body_util::Empty<&'static [u8]>;
    /// let registry = talea::Registry::for_test()?;
    /// let endpoints = Endpoints::new(&registry)?;
    /// let (hello, unmatched) = (endpoints.declare(&Method::GET, "/hello"), endpoints.unmatched());
    /// let metered = endpoints.layer(move |request: &Request<Body>| {
    ///     match (request.method(), request.uri().path()) {
    ///         (&Method::GET, "/hello") => hello,
    ///         _ => unmatched,
    ///     }
    /// });
    /// let service = ServiceBuilder::new().layer(metered).service(service_fn(
    ///     async |_: Request<RequestBody<Body>>| Ok::<_, std::io::Error>(Response::new("hello".to_owned())),
    /// ));
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn layer<F, B>(&self, endpoint: F) -> Layer<F>
    where
        F: Fn(&Request<B>) -> Endpoint + Clone,
    {
        Layer::new(endpoint)
    }

    /// An endpoint whose handler has no name of its own.
    pub(crate) fn unnamed(&self, methods: Methods, route: &str) -> Endpoint {
        match methods {
            Methods::One(method) => self.declare_known(method, route),
            Methods::Each => self.endpoint(methods, route, route),
            // No declared handler answers these, of whatever route.
            Methods::Rest => self.endpoint(methods, route, UNMATCHED),
        }
    }

    pub(crate) fn endpoint(&self, methods: Methods, route: &str, handler: &str) -> Endpoint {
        let (route, handler) = (route.to_owned().leak(), handler.to_owned().leak());
        let meters = Meters::new(self.families, Declared { methods, route, handler });
        Endpoint { meters: Box::leak(Box::new(meters)) }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoint").field(self.meters.declared()).finish()
    }
}
