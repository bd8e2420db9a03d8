//! The labels of an endpoint, known from its declaration.

use talea::HttpMethod;

/// The label `route` of requests that no declared route matched.
pub(crate) const UNMATCHED: &str = "_unmatched";

#[derive(Clone, Copy, Debug)]
pub(crate) struct EndpointLabels {
    pub(crate) methods: Methods,
    pub(crate) route: &'static str,
    pub(crate) handler: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Methods {
    /// One; a `GET` may handle `HEAD` too.
    One(HttpMethod),
    Each,
    /// The methods that the route does not declare.
    Rest,
}
