//! The hot part of the middleware: a request from its arrival to its end.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ::http::{Method, Version};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyTuple};
use talea_http::{Convention, Endpoint, Endpoints, ManualExchange, Opts, StatusLabel};

use crate::asgi;
use crate::callable::{self, OneArgument};
use crate::lock::StateLock;
use crate::region::{Region, with_room};

/// The HTTP metrics of a region.
#[pyclass(frozen, module = "talea._talea")]
pub(crate) struct HttpMeter {
    endpoints: Endpoints,
    unmatched: Endpoint,
    /// Whether bytes of bodies are recorded.
    has_sizes: bool,
    /// Whether the protocol's version and the scheme are labels.
    has_protocol: bool,
    has_routes: AtomicBool,
    region: Py<Region>,
}

/// A declared route: its endpoints by the methods that it answers.
#[pyclass(frozen, module = "talea._talea")]
pub(crate) struct HttpRoute {
    route: String,
    methods: Vec<(Method, Endpoint)>,
    /// For the other methods.
    rest: Endpoint,
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
        let (region, endpoints) =
            with_room(py, region, |region| opts.clone().register(&region.registry))?;
        // Exchanges and routes have handles, and no region.
        region.get().pin();
        let unmatched = endpoints.unmatched();
        let has_routes = AtomicBool::new(false);
        Ok(Self { endpoints, unmatched, has_sizes, has_protocol, has_routes, region })
    }

    /// The region that has the metrics.
    #[getter]
    fn region(&self, py: Python<'_>) -> Py<Region> {
        self.region.clone_ref(py)
    }

    /// Declares a route with the methods that it answers; without methods it answers all.
    fn route(&self, route: &str, methods: Option<Vec<String>>) -> HttpRoute {
        self.has_routes.store(true, Relaxed);
        let mut known: Vec<(Method, Endpoint)> = Vec::new();
        let methods = methods.unwrap_or_default();
        let parsed = methods.iter().filter_map(|method| method.to_uppercase().parse().ok());
        for method in parsed {
            let method: Method = method;
            // A HEAD that a GET answers is a GET, as in the declaration.
            if method != Method::HEAD || !methods.iter().any(|m| m.eq_ignore_ascii_case("get")) {
                known.push((method.clone(), self.endpoints.declare(&method, route)));
            }
        }
        let rest = match known.is_empty() {
            true => self.endpoints.declare_any(route),
            false => self.endpoints.declare_rest(route),
        };
        HttpRoute { route: route.to_owned(), methods: known, rest }
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
        let state = State::new(slf.get(), exchange, method, version, is_https);
        HttpExchange::new(slf.get(), state)
    }
}

impl HttpMeter {
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
        let mut state = State::new(meter, exchange, method, version, is_https);
        state.send = Some(send.clone().unbind());
        Bound::new(py, HttpExchange::new(meter, state))
    }
}

fn known_method(method: &str) -> Method {
    Method::from_bytes(method.as_bytes()).unwrap_or(Method::GET)
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

/// A request in flight.
#[pyclass(frozen, module = "talea._talea")]
pub(crate) struct HttpExchange {
    /// Whether its meter knew routes when it arrived.
    pub(crate) has_routes: bool,
    state: StateLock<State>,
}

struct State {
    exchange: ManualExchange,
    /// The endpoint of a request that no route has taken.
    unmatched: Endpoint,
    /// The server's `send`, if the interface is ASGI, until the exchange is closed: it leads back to the
    /// scope, and thereby to the exchange.
    send: Option<Py<PyAny>>,
    /// The coroutine of the application inside, likewise.
    coroutine: Option<Py<PyAny>>,
    method: Method,
    version: Version,
    is_https: bool,
    /// The status of a head whose body has not begun.
    status: Option<u16>,
    is_closed: bool,
}

/// A message of ASGI.
enum Message {
    Head(u16),
    Piece { bytes: u64, is_last: bool },
    Other,
}

impl Message {
    #[inline]
    fn of(message: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = message.py();
        let message = message.cast::<PyDict>()?;
        let Some(kind) = message.get_item(intern!(py, "type"))? else { return Ok(Self::Other) };
        Ok(match kind.extract::<&str>()? {
            "http.response.start" => match message.get_item(intern!(py, "status"))? {
                Some(status) => Self::Head(status.extract()?),
                None => Self::Other,
            },
            "http.response.body" => {
                let Some(body) = message.get_item(intern!(py, "body"))? else {
                    return Ok(Self::Piece { bytes: 0, is_last: !has_more(message)? });
                };
                // Mostly there is nothing but the type and the body.
                let is_last = message.len() == 2 || !has_more(message)?;
                Self::Piece { bytes: body.len()? as u64, is_last }
            }
            "http.response.pathsend" => Self::Piece { bytes: 0, is_last: true },
            _ => Self::Other,
        })
    }
}

/// Whether more pieces of a body follow a message.
fn has_more(message: &Bound<'_, PyDict>) -> PyResult<bool> {
    let more = message.get_item(intern!(message.py(), "more_body"))?;
    more.map_or(Ok(false), |more| more.is_truthy())
}

impl Drop for State {
    fn drop(&mut self) {
        if !self.is_closed {
            self.end();
        }
    }
}

impl State {
    /// Records the head of a response whose body has not begun, and ends the request. One that has no route by
    /// now is unmatched.
    fn end(&mut self) {
        self.enter(self.unmatched);
        if let Some(status) = self.status.take() {
            self.exchange.begin_response(status);
        }
        self.exchange.close();
        self.is_closed = true;
    }

    fn new(
        meter: &HttpMeter,
        exchange: ManualExchange,
        method: Method,
        version: Version,
        is_https: bool,
    ) -> Self {
        let (send, coroutine, status) = (None, None, None);
        let unmatched = meter.unmatched;
        Self {
            exchange,
            unmatched,
            send,
            coroutine,
            method,
            version,
            is_https,
            status,
            is_closed: false,
        }
    }

    /// The status of the response. A request that no route has taken is unmatched.
    fn head(&mut self, status: u16) {
        self.enter(self.unmatched);
        self.status = Some(status);
    }

    fn enter(&mut self, endpoint: Endpoint) {
        self.exchange.enter(endpoint, &self.method, self.version, self.is_https);
    }

    /// A piece of the body, of which more may follow.
    fn body(&mut self, bytes: u64, is_last: bool) {
        match self.status.take() {
            Some(status) if is_last => return self.exchange.respond(status, bytes),
            Some(status) => self.exchange.begin_response(status),
            None => {}
        }
        self.exchange.sent(bytes);
        if is_last {
            self.exchange.end();
        }
    }
}

impl HttpExchange {
    fn new(meter: &HttpMeter, state: State) -> Self {
        let has_routes = meter.has_routes.load(Relaxed);
        Self { has_routes, state: StateLock::new(state) }
    }

    /// Sets the coroutine of the application inside.
    pub(crate) fn begin(&self, coroutine: Bound<'_, PyAny>) {
        let py = coroutine.py();
        self.state.lock(py).coroutine = Some(coroutine.unbind());
    }

    /// The coroutine of the application inside, until the exchange is closed.
    pub(crate) fn coroutine<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.state.lock(py).coroutine.as_ref().map(|coroutine| coroutine.bind(py).clone())
    }

    /// The service's code failed with an exception.
    pub(crate) fn failed(&self, py: Python<'_>) {
        let mut state = self.state.lock(py);
        let unmatched = state.unmatched;
        state.enter(unmatched);
        state.exchange.failed();
    }

    /// The service's code failed with an exception. A head that it sent before is on its way to the client:
    /// servers of ASGI do not wait for the body.
    pub(crate) fn failed_after_head(&self, py: Python<'_>) {
        let mut state = self.state.lock(py);
        if let Some(status) = state.status.take() {
            state.exchange.begin_response(status);
        }
        drop(state);
        self.failed(py);
    }

    /// Ends the request: as aborted, if it has not ended already.
    pub(crate) fn end(&self, py: Python<'_>) {
        let mut state = self.state.lock(py);
        state.end();
        let objects = [state.send.take(), state.coroutine.take()];
        // Without the lock: the last reference to an object of Python may run any code.
        drop(state);
        objects.into_iter().flatten().for_each(|object| drop(object.into_bound(py)));
    }
}

#[pymethods]
impl HttpExchange {
    /// The request is for this route.
    pub(crate) fn enter(&self, py: Python<'_>, route: &HttpRoute) {
        let mut state = self.state.lock(py);
        let is_head = state.method == Method::HEAD;
        let of = |method: &Method| route.methods.iter().find(|(known, _)| known == method);
        let found = of(&state.method).or_else(|| if is_head { of(&Method::GET) } else { None });
        let endpoint = found.map_or(route.rest, |(_, endpoint)| *endpoint);
        state.enter(endpoint);
    }

    /// The status of the response. A request that no route has taken is unmatched.
    fn head(&self, py: Python<'_>, status: u16) {
        self.state.lock(py).head(status);
    }

    /// A piece of the response's body, of which more may follow.
    fn body(&self, py: Python<'_>, bytes: u64, is_last: bool) {
        self.state.lock(py).body(bytes, is_last);
    }

    /// Whether the request has ended.
    pub(crate) fn is_closed(&self, py: Python<'_>) -> bool {
        self.state.lock(py).is_closed
    }

    /// The service's code failed with an exception.
    #[pyo3(name = "failed")]
    fn py_failed(&self, py: Python<'_>) {
        self.failed(py);
    }

    /// Ends the request: as aborted, if it has not ended already. An application that is still awaited is
    /// closed before.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let closed = match self.coroutine(py) {
            Some(coroutine) => coroutine.call_method0(intern!(py, "close")).map(drop),
            None => Ok(()),
        };
        self.end(py);
        closed
    }

    /// The body of WSGI's response, recorded as it passes.
    fn watch(slf: Py<Self>, py: Python<'_>, body: Py<PyAny>) -> PyResult<WsgiBody> {
        let pieces = body.bind(py).try_iter()?.unbind();
        Ok(WsgiBody { exchange: slf, body, pieces })
    }

    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        asgi::next(slf)
    }

    /// `await` calls this in place of `__next__` if it has a value; ASGI's futures have none.
    fn send<'py>(slf: &Bound<'py, Self>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        asgi::delegated(slf, intern!(slf.py(), "send"), (value,))
    }

    #[pyo3(signature = (*exception))]
    fn throw<'py>(
        slf: &Bound<'py, Self>,
        exception: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        asgi::delegated(slf, intern!(slf.py(), "throw"), exception)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Locked if this thread's own garbage collection begins while it holds the lock.
        let Some(state) = self.state.try_lock(&visit) else { return Ok(()) };
        visit.call(&state.send)?;
        visit.call(&state.coroutine)
    }

    fn __clear__(&self, py: Python<'_>) {
        self.end(py);
    }
}

impl OneArgument for HttpExchange {
    const FUNCTION: &'static CStr = c"send";

    /// Sends a message of ASGI by the server's `send`.
    fn call<'py>(
        this: &Bound<'py, Self>,
        argument: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, exchange) = (this.py(), this.get());
        let message = Message::of(argument)?;
        let mut state = exchange.state.lock(py);
        match message {
            Message::Head(status) => state.head(status),
            Message::Piece { bytes, is_last } => state.body(bytes, is_last),
            Message::Other => {}
        }
        let send = state.send.as_ref().map(|send| send.bind(py).clone());
        drop(state);
        match send {
            Some(send) => callable::call1(&send, argument),
            None => Err(PyRuntimeError::new_err("the application has ended, and sends a message")),
        }
    }
}

/// The body of WSGI's response.
#[pyclass(frozen, module = "talea._talea")]
pub(crate) struct WsgiBody {
    exchange: Py<HttpExchange>,
    body: Py<PyAny>,
    pieces: Py<PyIterator>,
}

#[pymethods]
impl WsgiBody {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let exchange = self.exchange.get();
        match self.pieces.bind(py).clone().next() {
            Some(Ok(piece)) => {
                let bytes = piece.cast::<PyBytes>().map_or(0, |bytes| bytes.as_bytes().len());
                exchange.body(py, bytes as u64, false);
                Ok(Some(piece))
            }
            Some(Err(error)) => {
                exchange.failed(py);
                Err(error)
            }
            None => {
                exchange.body(py, 0, true);
                Ok(None)
            }
        }
    }

    /// Closes the body inside, and ends the request.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let body = self.body.bind(py);
        let closed = match body.getattr_opt(intern!(py, "close"))? {
            Some(close) => close.call0().map(drop),
            None => Ok(()),
        };
        self.exchange.get().end(py);
        closed
    }
}

#[pymethods]
impl HttpRoute {
    fn __repr__(&self) -> String {
        format!("HttpRoute({})", self.route)
    }
}
