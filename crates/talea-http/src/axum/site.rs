//! A declared endpoint, before and after its meters are there.

use std::sync::OnceLock;

use ::axum::extract::Request;
use ::axum::http::Method;
use talea::HttpMethod;

use super::future::count;
use crate::arrival::Head;
use crate::case::Methods;
use crate::endpoints::Endpoints;
use crate::exchange::Exchange;
use crate::meters::Meters;
use crate::routes::known_method;

/// A declared endpoint. Its meters come when the whole declaration is known; it lives as
/// long as the program, as a route does.
#[derive(Debug)]
pub(super) struct Site {
    methods: Methods,
    /// The name of the handler, if it has one.
    handler: Option<&'static str>,
    meters: OnceLock<&'static Meters>,
}

impl Site {
    /// Declares what a handler or a service of type `H` answers.
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

    /// Starts to meter a request; not before the declaration is metered.
    #[inline(always)]
    pub(super) fn start(&'static self, exchange: &mut Exchange, request: &mut Request) {
        if let Some(meters) = self.meters.get() {
            start(meters, exchange, request);
        }
    }
}

/// Starts to meter a request.
#[inline(always)]
pub(super) fn start(meters: &'static Meters, exchange: &mut Exchange, request: &mut Request) {
    if let Some(tally) = exchange.open(meters, Head::from(&*request), request.body()) {
        count(request.body_mut(), tally);
    }
}

/// The endpoints of one route, by method.
#[derive(Clone, Debug, Default)]
pub(super) struct Sites {
    pub(super) declared: Vec<(HttpMethod, &'static Site)>,
    /// Those that answer what is not declared. Where routers were merged there may be
    /// several, of which one answers.
    pub(super) rest: Vec<&'static Site>,
}

impl Sites {
    pub(super) fn all(&self) -> impl Iterator<Item = &'static Site> {
        self.declared.iter().map(|&(_, site)| site).chain(self.rest.iter().copied())
    }

    /// Takes in another's.
    pub(super) fn merge(&mut self, other: Self) {
        self.declared.extend(other.declared);
        self.rest.extend(other.rest);
    }

    /// The endpoint that answers each method.
    pub(super) fn by_method(&self) -> ByMethod {
        let declared = |method| self.declared.iter().find(|(declared, _)| *declared == method);
        ByMethod(std::array::from_fn(|n| {
            let method = HttpMethod::ALL[n];
            let found = declared(method).or_else(|| match method {
                HttpMethod::Head => declared(HttpMethod::Get),
                _ => None,
            });
            found.map(|&(_, site)| site).or_else(|| self.rest.first().copied())
        }))
    }
}

/// Endpoints in the order of [`HttpMethod::ALL`].
#[derive(Clone, Debug)]
pub(super) struct ByMethod([Option<&'static Site>; HttpMethod::ALL.len()]);

impl ByMethod {
    /// The one that answers a method.
    #[inline]
    pub(super) fn of(&self, method: &Method) -> Option<&'static Site> {
        self.0[known_method(method) as usize]
    }
}

/// The path of a function, which tells it from others of its name in other modules. What has
/// a size (a function pointer, a value, a service) has no name, since others of its type may
/// do something else; nor have closures and generic functions, of which several have one path.
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
    fn a_function_is_named_by_its_path() {
        assert_eq!(name(&list), Some("talea_http::axum::site::tests::list"));
        assert_eq!(name(&other::list), Some("talea_http::axum::site::tests::other::list"));
    }

    #[test]
    fn what_may_be_another_of_its_type_has_no_name() {
        assert_eq!(name(&generic::<u8>), None);
        assert_eq!(name(&String::new()), None);
        assert_eq!(name(&::axum::http::StatusCode::OK), None);
        assert_eq!(name(&async || ""), None);
        assert_eq!(name(&(|| "")), None);
        assert_eq!(name(&(list as fn() -> _)), None);
        assert_eq!(name(&()), None);
    }
}
