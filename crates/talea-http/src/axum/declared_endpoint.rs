//! Endpoints that a router declares, before and after they have meters.

use std::sync::OnceLock;

use ::axum::extract::Request;
use ::axum::http::Method;
use talea::HttpMethod;

use super::future::watch_request;
use crate::endpoints::Endpoints;
use crate::exchange::request::Exchange;
use crate::labels::endpoint::Methods;
use crate::meters::attributes::known_method;
use crate::meters::endpoint::EndpointMeters;

/// A declared endpoint. It has meters once the whole declaration is known; it lives as long as the
/// program, as a route does.
#[derive(Debug)]
pub(super) struct DeclaredEndpoint {
    pub(super) methods: Methods,
    /// The name of the handler, if it has one.
    handler: Option<&'static str>,
    meters: OnceLock<&'static EndpointMeters>,
}

impl DeclaredEndpoint {
    /// Declares an endpoint that a handler or a service of type `H` answers.
    pub(super) fn declare<H>(methods: Methods) -> &'static Self {
        let handler = name_of::<H>();
        Box::leak(Box::new(Self { methods, handler, meters: OnceLock::new() }))
    }

    pub(super) fn meter(&self, endpoints: &Endpoints, route: &str) {
        let endpoint = || match self.handler {
            Some(handler) => endpoints.endpoint(self.methods, route, handler),
            None => endpoints.unnamed(self.methods, route),
        };
        // Each has one declaration, which is metered once.
        self.meters.get_or_init(|| endpoint().meters);
    }

    /// Begins to meter a request, if the declaration is metered.
    #[inline(always)]
    pub(super) fn open(&'static self, exchange: &mut Exchange, request: &mut Request) {
        if let Some(meters) = self.meters.get() {
            open(meters, exchange, request);
        }
    }
}

#[inline(always)]
pub(super) fn open(
    meters: &'static EndpointMeters,
    exchange: &mut Exchange,
    request: &mut Request,
) {
    if let Some(count) = exchange.open(meters, request) {
        watch_request(request.body_mut(), count);
    }
}

/// The parts of a method router that meter themselves, because nothing outside does.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeteredParts {
    pub(super) declared: bool,
    pub(super) rest: bool,
}

impl MeteredParts {
    pub(super) fn all(metered: bool) -> Self {
        Self { declared: metered, rest: metered }
    }
}

/// The endpoints of one route, by method.
#[derive(Clone, Debug, Default)]
pub(super) struct RouteEndpoints {
    pub(super) declared: Vec<(HttpMethod, &'static DeclaredEndpoint)>,
    /// Endpoints for methods that are not declared. If routers were merged there may be several,
    /// of which the first answers.
    pub(super) rest: Vec<&'static DeclaredEndpoint>,
    /// Whether methods that are not declared have a fallback; 405 otherwise.
    pub(super) has_fallback: bool,
    /// Whether a layer is around the answer to those methods.
    pub(super) layers_rest: bool,
    /// The largest number of layers around an endpoint.
    pub(super) layers: usize,
}

impl RouteEndpoints {
    pub(super) fn all(&self) -> impl Iterator<Item = &'static DeclaredEndpoint> {
        self.declared.iter().map(|&(_, endpoint)| endpoint).chain(self.rest.iter().copied())
    }

    pub(super) fn merge(&mut self, mut other: Self) {
        // axum takes the fallback that is given, or else the default of the other.
        if !self.has_fallback || other.has_fallback {
            self.layers_rest = other.layers_rest;
            std::mem::swap(&mut self.rest, &mut other.rest);
        }
        self.has_fallback |= other.has_fallback;
        self.layers = self.layers.max(other.layers);
        self.declared.extend(other.declared);
        self.rest.extend(other.rest);
    }

    /// Replaces the answer to methods that are not declared, outside of the layers so far.
    pub(super) fn set_fallback(&mut self, endpoint: &'static DeclaredEndpoint) {
        self.rest = vec![endpoint];
        self.has_fallback = true;
        self.layers_rest = false;
    }

    /// The endpoints of some parts, by method.
    pub(super) fn by_method(&self, parts: MeteredParts) -> EndpointsByMethod {
        let declared = |method| self.declared.iter().find(|(declared, _)| *declared == method);
        EndpointsByMethod(std::array::from_fn(|n| {
            let method = HttpMethod::ALL[n];
            let found = declared(method).or_else(|| match method {
                HttpMethod::Head => declared(HttpMethod::Get),
                _ => None,
            });
            match found {
                Some(&(_, endpoint)) => parts.declared.then_some(endpoint),
                None => self.rest.first().copied().filter(|_| parts.rest),
            }
        }))
    }
}

/// Endpoints in the order of [`HttpMethod::ALL`].
#[derive(Clone, Debug)]
pub(super) struct EndpointsByMethod([Option<&'static DeclaredEndpoint>; HttpMethod::ALL.len()]);

impl EndpointsByMethod {
    #[inline]
    pub(super) fn of(&self, method: &Method) -> Option<&'static DeclaredEndpoint> {
        self.0[known_method(method) as usize]
    }
}

/// The path of a function, unique among functions of its name. A handler with a size (a function
/// pointer, a value, a service) has no name, since others of its type may do something else; nor
/// have closures and generic functions, of which several share a path.
fn name_of<H>() -> Option<&'static str> {
    let path = std::any::type_name::<H>();
    let is_path = path.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':');
    (is_path && size_of::<H>() == 0).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn list() {}

    async fn generic<T: Default>() {
        drop(T::default());
    }

    mod other {
        pub(super) async fn list() {}
    }

    fn name<H>(_: &H) -> Option<&'static str> {
        name_of::<H>()
    }

    #[test]
    fn a_function_is_named_by_its_path_unless_others_share_its_type() {
        for (found, expected) in [
            (name(&list), Some("list")),
            (name(&other::list), Some("other::list")),
            (name(&generic::<u8>), None),
            (name(&String::new()), None),
            (name(&::axum::http::StatusCode::OK), None),
            (name(&async || ""), None),
            (name(&(|| "")), None),
            (name(&(list as fn() -> _)), None),
            (name(&()), None),
        ] {
            let path = "talea_http::axum::declared_endpoint::tests::";
            assert_eq!(found, expected.map(|name| format!("{path}{name}")).as_deref());
        }
    }
}
