//! Endpoints as a router declares them, and their meters.

use ::axum::extract::Request;
use talea::HttpMethod;

use super::handler::Door;
use crate::endpoints::Endpoints;
use crate::labels::endpoint::Methods;
use crate::request::attributes::known_method;
use crate::request::meters::EndpointMeters;

/// An endpoint of a route.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeclaredEndpoint {
    pub(super) methods: Methods,
    /// The name of the handler, if it has one.
    handler: Option<&'static str>,
}

impl DeclaredEndpoint {
    /// Declares the endpoint of a handler or a service of type `H`.
    pub(super) fn declare<H>(methods: Methods) -> Self {
        Self { methods, handler: name_of::<H>() }
    }

    /// Makes its meters, which live as long as the program, as a route does.
    pub(super) fn meter(self, endpoints: &Endpoints, route: &str) -> &'static EndpointMeters {
        let endpoint = match self.handler {
            Some(handler) => endpoints.endpoint(self.methods, route, handler),
            None => endpoints.unnamed(self.methods, route),
        };
        endpoint.meters
    }
}

/// The endpoints of one route, by method.
#[derive(Clone, Debug, Default)]
pub(super) struct RouteEndpoints {
    pub(super) declared: Vec<(HttpMethod, DeclaredEndpoint)>,
    /// The endpoint of methods that are not declared; `None` for axum's own response.
    pub(super) rest: Option<DeclaredEndpoint>,
    /// Whether methods that are not declared have a fallback; 405 otherwise.
    pub(super) has_fallback: bool,
    /// Whether a layer is around the handler of those methods.
    pub(super) layers_rest: bool,
    /// The largest number of layers around an endpoint.
    pub(super) layers: usize,
}

impl RouteEndpoints {
    /// The endpoint of a service of type `T`, which handles every method.
    pub(super) fn service<T>() -> Self {
        let mut endpoints = Self::default();
        endpoints.set_fallback(DeclaredEndpoint::declare::<T>(Methods::Each));
        endpoints
    }

    pub(super) fn merge(&mut self, other: Self) {
        // axum takes the fallback that is given, or else the default of the other.
        if !self.has_fallback || other.has_fallback {
            self.layers_rest = other.layers_rest;
            self.rest = other.rest;
        }
        self.has_fallback |= other.has_fallback;
        self.layers = self.layers.max(other.layers);
        self.declared.extend(other.declared);
    }

    /// Replaces the handler of methods that are not declared, outside of the layers so far.
    pub(super) fn set_fallback(&mut self, endpoint: DeclaredEndpoint) {
        self.rest = Some(endpoint);
        self.has_fallback = true;
        self.layers_rest = false;
    }

    /// The endpoint of methods that are not declared; the endpoint of axum's own response if there is no other.
    pub(super) fn rest(&mut self) -> DeclaredEndpoint {
        *self.rest.get_or_insert(DeclaredEndpoint::declare::<()>(Methods::Rest))
    }

    /// Makes the meters of all endpoints.
    pub(super) fn meter(&self, endpoints: &Endpoints, route: &str) -> RouteMeters {
        let mut meters = RouteMeters {
            declared: [None; HttpMethod::ALL.len()],
            rest: self.rest.map(|rest| rest.meter(endpoints, route)),
        };
        for (method, declared) in &self.declared {
            meters.declared[*method as usize] = Some(declared.meter(endpoints, route));
        }
        meters
    }
}

/// The meters of one route, by method in the order of [`HttpMethod::ALL`].
#[derive(Debug)]
pub(super) struct RouteMeters {
    declared: [Option<&'static EndpointMeters>; HttpMethod::ALL.len()],
    /// The meters of methods that are not declared.
    rest: Option<&'static EndpointMeters>,
}

/// The parts of a route that meter themselves, because nothing outside does: those with meters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MeteredParts<'a> {
    pub(super) declared: Option<&'a RouteMeters>,
    pub(super) rest: Option<&'a RouteMeters>,
}

impl<'a> MeteredParts<'a> {
    pub(super) fn all(meters: &'a RouteMeters) -> Self {
        Self { declared: Some(meters), rest: Some(meters) }
    }

    /// The meters of a method that is declared.
    pub(super) fn of(self, method: HttpMethod) -> Option<&'static EndpointMeters> {
        self.declared?.declared[method as usize]
    }

    /// The meters of methods that are not declared.
    pub(super) fn of_rest(self) -> Option<&'static EndpointMeters> {
        self.rest?.rest
    }

    /// The meters of all methods. `None` if no part meters itself.
    pub(super) fn by_method(self) -> Option<MetersByMethod> {
        let all = self.declared.or(self.rest)?;
        Some(MetersByMethod(std::array::from_fn(|n| {
            let handler = match HttpMethod::ALL[n] {
                HttpMethod::Head => all.declared[n].or(all.declared[HttpMethod::Get as usize]),
                _ => all.declared[n],
            };
            match handler {
                Some(_) => handler.filter(|_| self.declared.is_some()),
                None => self.of_rest(),
            }
        })))
    }
}

/// Meters in the order of [`HttpMethod::ALL`], if the method's requests are metered.
#[derive(Clone, Debug)]
pub(super) struct MetersByMethod([Option<&'static EndpointMeters>; HttpMethod::ALL.len()]);

impl MetersByMethod {
    /// The same meters for every method.
    pub(super) fn one(meters: &'static EndpointMeters) -> Self {
        Self([Some(meters); HttpMethod::ALL.len()])
    }
}

impl<H> Door<H> for &'static MetersByMethod {
    #[inline(always)]
    fn meters(&self, request: &Request) -> Option<&'static EndpointMeters> {
        self.0[known_method(request.method()) as usize]
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
