//! The metrics of the middleware, and requests as they arrive.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use ::http::{Method, Version};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use talea_http::{Convention, Endpoint, Endpoints, ManualExchange, Opts, StatusLabel};

use crate::exchange::{HttpExchange, IncomingRequest};
use crate::region::{Region, with_room};
use crate::route::HttpRoute;

/// The HTTP metrics of a region.
#[pyclass(frozen, module = "talea_metrics._talea")]
pub(crate) struct HttpMeter {
    endpoints: Endpoints,
    unmatched: Endpoint,
    /// Whether bytes of bodies are recorded.
    has_sizes: bool,
    /// Whether the protocol's version and the scheme are labels.
    has_protocol: bool,
    /// From 1 on: each has its own.
    number: u64,
    /// Whether it read the routes of an application.
    has_read_routes: AtomicBool,
    region: Py<Region>,
}

#[pymethods]
impl HttpMeter {
    #[new]
    #[pyo3(signature = (region, convention, prefix, detailed, buckets, status_codes, constant_labels))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        region: Py<Region>,
        convention: &str,
        prefix: &str,
        detailed: bool,
        buckets: Option<Vec<f64>>,
        status_codes: bool,
        constant_labels: HashMap<String, String>,
    ) -> PyResult<Self> {
        let mut opts = Opts::new().prefix(prefix).convention(match convention {
            "prometheus" => Convention::Prometheus,
            "opentelemetry" => Convention::OpenTelemetry,
            "instrumentator" => Convention::FastapiInstrumentator,
            "starlette_exporter" => Convention::StarletteExporter,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "convention is {convention:?}; expected prometheus, opentelemetry, instrumentator or \
                     starlette_exporter"
                )));
            }
        });
        if detailed {
            opts = opts.detailed();
        }
        if status_codes {
            opts = opts.status_label(StatusLabel::Code);
        }
        if let Some(buckets) = &buckets {
            opts = opts.durations(buckets);
        }
        for (name, value) in &constant_labels {
            opts = opts.constant_label(name, value);
        }
        let has_sizes = detailed || convention != "prometheus";
        let has_protocol = convention == "opentelemetry";
        let labels = BTreeMap::from_iter(&constant_labels);
        let definition =
            format!("{convention} {prefix:?} {detailed} {buckets:?} {status_codes} {labels:?}");
        let (region, endpoints) = with_room(py, region, 2, |region| {
            region.endpoints(&definition, |registry| opts.clone().register(registry))
        })?;
        let unmatched = endpoints.unmatched();
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Relaxed) + 1;
        let has_read_routes = AtomicBool::new(false);
        Ok(Self { endpoints, unmatched, has_sizes, has_protocol, number, has_read_routes, region })
    }

    /// The region that has the metrics.
    #[getter]
    fn region(&self, py: Python<'_>) -> Py<Region> {
        self.region.clone_ref(py)
    }

    /// Declares a route that was read from an application. A HEAD that a GET answers is a GET, unless the
    /// application handles it itself.
    fn read_route(
        &self,
        py: Python<'_>,
        route: &str,
        methods: Option<Vec<String>>,
        has_own_head: bool,
    ) -> HttpRoute {
        self.has_read_routes.store(true, Relaxed);
        self.declare(py, route, methods, has_own_head)
    }

    /// Declares a route with the methods that it answers; without methods it answers all.
    fn route(&self, py: Python<'_>, route: &str, methods: Option<Vec<String>>) -> HttpRoute {
        self.declare(py, route, methods, false)
    }

    /// A request of another interface than ASGI that arrives now.
    fn arrived(
        slf: &Bound<'_, Self>,
        method: &str,
        is_http_10: bool,
        is_https: bool,
        length: u64,
    ) -> HttpExchange {
        let mut exchange = ManualExchange::arrived();
        exchange.received(length);
        let version = if is_http_10 { Version::HTTP_10 } else { Version::HTTP_11 };
        let method = known_method(method);
        slf.get().exchange(slf.py(), exchange, method, version, is_https, None)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.region)
    }
}

impl HttpMeter {
    fn declare(
        &self,
        py: Python<'_>,
        route: &str,
        methods: Option<Vec<String>>,
        has_own_head: bool,
    ) -> HttpRoute {
        let mut known: Vec<(Method, Endpoint)> = Vec::new();
        let methods = methods.unwrap_or_default();
        let parsed = methods.iter().filter_map(|method| method.to_uppercase().parse().ok());
        for method in parsed {
            let method: Method = method;
            // A HEAD that a GET answers is a GET, as in the declaration.
            if method != Method::HEAD
                || has_own_head
                || !methods.iter().any(|m| m.eq_ignore_ascii_case("get"))
            {
                known.push((method.clone(), self.endpoints.declare(&method, route)));
            }
        }
        let rest = match known.is_empty() {
            true => self.endpoints.declare_any(route),
            false => self.endpoints.declare_rest(route),
        };
        let region = self.region.clone_ref(py);
        HttpRoute { route: route.to_owned(), meter: self.number, methods: known, rest, region }
    }

    /// A request of ASGI that arrives now, and the `send` of its server.
    #[inline]
    pub(crate) fn asgi<'py>(
        slf: &Bound<'py, Self>,
        scope: &Bound<'py, PyDict>,
        send: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, HttpExchange>> {
        let (py, meter) = (slf.py(), slf.get());
        let method = match scope.get_item(intern!(py, "method"))? {
            Some(method) => known_method(method.extract::<&str>()?),
            None => Method::GET,
        };
        let (mut version, mut is_https) = (Version::HTTP_11, false);
        if meter.has_protocol {
            if let Some(text) = scope.get_item(intern!(py, "http_version"))? {
                version = match text.extract::<&str>()? {
                    "2" => Version::HTTP_2,
                    "3" => Version::HTTP_3,
                    "1.0" => Version::HTTP_10,
                    _ => Version::HTTP_11,
                };
            }
            if let Some(scheme) = scope.get_item(intern!(py, "scheme"))? {
                is_https = scheme.extract::<&str>()? == "https";
            }
        }
        let mut exchange = ManualExchange::arrived();
        if meter.has_sizes {
            if let Some(bytes) = declared_len(scope)? {
                exchange.received(bytes);
            }
        }
        let send = Some(send.clone().unbind());
        Bound::new(py, meter.exchange(py, exchange, method, version, is_https, send))
    }

    #[inline]
    fn exchange(
        &self,
        py: Python<'_>,
        exchange: ManualExchange,
        method: Method,
        version: Version,
        is_https: bool,
        send: Option<Py<PyAny>>,
    ) -> HttpExchange {
        let unmatched = self.unmatched;
        let request = IncomingRequest { exchange, unmatched, method, version, is_https };
        let reader = self.has_read_routes.load(Relaxed).then_some(self.number);
        HttpExchange::new(request, reader, send, self.region.clone_ref(py))
    }
}

/// Some servers pass on a method that is no token: it is as unknown as any other.
fn known_method(method: &str) -> Method {
    Method::from_bytes(method.as_bytes())
        .or_else(|_| Method::from_bytes(b"_OTHER"))
        .unwrap_or_default()
}

/// The length of a request's body that its head declares.
fn declared_len(scope: &Bound<'_, PyDict>) -> PyResult<Option<u64>> {
    let Some(headers) = scope.get_item(intern!(scope.py(), "headers"))? else { return Ok(None) };
    for header in headers.try_iter()? {
        // A tuple or a list.
        let header = header?;
        let name = header.get_item(0)?;
        if name.extract::<&[u8]>()?.eq_ignore_ascii_case(b"content-length") {
            let value = header.get_item(1)?;
            let text = std::str::from_utf8(value.extract()?).ok();
            return Ok(text.and_then(|text| text.trim().parse().ok()));
        }
    }
    Ok(None)
}
