//! Endpoints that are declared one by one.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use http::{Method, Request};
use talea::{Error, HttpMethod, Registry};

use crate::convention::metric_set::MetricSet;
use crate::labels::endpoint::{EndpointLabels, Methods, UNMATCHED};
use crate::layer::EndpointLayer;
use crate::opts::Opts;
use crate::request::families::Families;
use crate::request::meters::{Endpoint, EndpointMeters};

/// Registered metrics, under which endpoints are declared. Clones share them.
///
/// Endpoints live as long as the program, as its routes do.
#[derive(Clone, Copy, Debug)]
pub struct Endpoints {
    families: &'static Families,
}

impl Opts {
    pub(crate) fn register_set(
        self,
        set: &MetricSet,
        registry: &Registry,
    ) -> Result<Endpoints, Error> {
        let families = Box::leak(Box::new(Families::register(self, set, registry)?));
        Ok(Endpoints { families })
    }

    /// Registers the metrics. If they are registered already, with the same options, it returns
    /// those.
    ///
    /// # Errors
    ///
    /// A metric's name is taken by another definition; the region is full; thresholds or
    /// quantiles are not valid; a label's name is not valid or is there already, or its
    /// type's values are not fixed; the labels of a request, or of a response, have more than
    /// 16,384 combinations of values.
    pub fn register(self, registry: &Registry) -> Result<Endpoints, Error> {
        let set = self.recorded(self.convention.metric_set());
        self.register_set(&set, registry)
    }
}

impl Endpoints {
    /// Registers the metrics with default options; [`Opts::register`] takes others.
    ///
    /// # Errors
    ///
    /// As [`Opts::register`].
    pub fn new(registry: &Registry) -> Result<Self, Error> {
        Opts::new().register(registry)
    }

    /// Declares an endpoint by its method and the template of its route, such as
    /// `/items/{id}`; its series are created. A method that is not known is `_OTHER`.
    ///
    /// Two declarations with the same method and route are one endpoint.
    pub fn declare(&self, method: &Method, route: &str) -> Endpoint {
        self.declare_known(HttpMethod::of(method.as_str()), route)
    }

    /// Declares an endpoint by a method that is known, or `_OTHER`.
    pub(crate) fn declare_known(&self, method: HttpMethod, route: &str) -> Endpoint {
        let methods = match method {
            HttpMethod::Other => Methods::Rest,
            method => Methods::One(method),
        };
        self.endpoint(methods, route, &format!("{} {route}", method.as_str()))
    }

    /// Declares an endpoint that handles every method; each known one has its own series. The series for
    /// `GET` are created at once, the series for another method by its first request.
    pub fn declare_any(&self, route: &str) -> Endpoint {
        self.unnamed(Methods::Each, route)
    }

    /// Declares the endpoint for the methods that a route does not have: they are `_OTHER`.
    pub fn declare_rest(&self, route: &str) -> Endpoint {
        self.unnamed(Methods::Rest, route)
    }

    /// Declares the endpoint for requests that no route matches: `_unmatched`.
    pub fn unmatched(&self) -> Endpoint {
        self.declare_rest(UNMATCHED)
    }

    /// A layer that finds each request's endpoint by a function, for hyper or any tower
    /// service. It takes no part in routing: a request is recorded at the endpoint that the
    /// function returns.
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
    pub fn layer<F, B>(&self, endpoint: F) -> EndpointLayer<F>
    where
        F: Fn(&Request<B>) -> Endpoint + Clone,
    {
        EndpointLayer { endpoint }
    }

    /// Declares an endpoint whose handler has no name of its own.
    pub(crate) fn unnamed(&self, methods: Methods, route: &str) -> Endpoint {
        match methods {
            Methods::One(method) => self.declare_known(method, route),
            Methods::Each => self.endpoint(methods, route, route),
            // No declared handler handles these, whatever the route.
            Methods::Rest => self.endpoint(methods, route, UNMATCHED),
        }
    }

    /// The endpoint with these labels, made if it is new.
    pub(crate) fn endpoint<'a>(
        &self,
        methods: Methods,
        route: &'a str,
        handler: &'a str,
    ) -> Endpoint {
        let place = std::ptr::from_ref(self.families).addr();
        let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known: &HashMap<Key<'a>, Endpoint> = &all;
        if let Some(endpoint) = known.get(&(place, methods, route, handler)) {
            return *endpoint;
        }
        let (route, handler) = (&*route.to_owned().leak(), &*handler.to_owned().leak());
        let labels = EndpointLabels { methods, route, handler };
        let meters = EndpointMeters::new(self.families, labels);
        let endpoint = Endpoint { meters: Box::leak(Box::new(meters)) };
        all.insert((place, methods, route, handler), endpoint);
        endpoint
    }
}

/// An endpoint's families, by their address; its methods, route and handler.
type Key<'a> = (usize, Methods, &'a str, &'a str);

/// Equal endpoints are one, since their meters live as long as the program.
static KNOWN: LazyLock<Mutex<HashMap<Key<'static>, Endpoint>>> = LazyLock::new(Mutex::default);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_declarations_are_one_endpoint() {
        let registry = Registry::for_test().unwrap();
        let endpoints = Endpoints::new(&registry).unwrap();
        let declared = || {
            [
                endpoints.declare(&Method::GET, "/a"),
                endpoints.declare(&Method::GET, "/b"),
                endpoints.declare(&Method::PUT, "/a"),
                endpoints.declare_any("/a"),
                endpoints.declare_rest("/a"),
                endpoints.unmatched(),
            ]
        };
        for (n, one) in declared().into_iter().enumerate() {
            for (m, other) in declared().into_iter().enumerate() {
                assert_eq!(std::ptr::eq(one.meters, other.meters), n == m, "{n} {m}");
            }
        }
    }
}
