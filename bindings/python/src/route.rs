//! A declared route of the middleware.

use ::http::Method;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use talea_http::Endpoint;

use crate::region::Region;

/// A declared route: its endpoints by the methods that it answers.
#[pyclass(frozen, module = "talea_metrics._talea")]
pub(crate) struct HttpRoute {
    pub(crate) route: String,
    /// The number of the meter that has it.
    pub(crate) meter: u64,
    pub(crate) methods: Vec<(Method, Endpoint)>,
    /// For the other methods.
    pub(crate) rest: Endpoint,
    /// The region of its series, which stays open.
    pub(crate) region: Py<Region>,
}

impl HttpRoute {
    /// The endpoint of requests of a method. A route that answers `GET` answers `HEAD` so.
    pub(crate) fn endpoint(&self, method: &Method) -> Endpoint {
        let of = |method: &Method| self.methods.iter().find(|(known, _)| known == method);
        let is_head = *method == Method::HEAD;
        let found = of(method).or_else(|| if is_head { of(&Method::GET) } else { None });
        found.map_or(self.rest, |(_, endpoint)| *endpoint)
    }
}

#[pymethods]
impl HttpRoute {
    fn __repr__(&self) -> String {
        format!("HttpRoute({})", self.route)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.region)
    }
}
