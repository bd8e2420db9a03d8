//! A request from its arrival to its end.

use std::ffi::CStr;

use ::http::{Method, Version};
use pyo3::exceptions::{PyException, PyRuntimeError, PyStopIteration};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyTuple};
use talea::fork_generation;
use talea_http::{Endpoint, ManualExchange};

use crate::callable::{self, OneArgument, Step};
use crate::lock::{Guard, StateLock};
use crate::region::Region;
use crate::route::HttpRoute;

/// A request in flight.
#[pyclass(frozen, module = "talea_metrics._talea")]
pub(crate) struct HttpExchange {
    /// Its meter, if that had read the routes of an application when it arrived.
    pub(crate) reader: Option<u64>,
    state: StateLock<State>,
    /// The region of its series. It is the last field: the state may still record as it is dropped.
    region: Py<Region>,
}

/// A request as it arrives.
pub(crate) struct IncomingRequest {
    pub(crate) exchange: ManualExchange,
    /// The endpoint of a request that no route has taken.
    pub(crate) unmatched: Endpoint,
    pub(crate) method: Method,
    pub(crate) version: Version,
    pub(crate) is_https: bool,
}

struct State {
    request: IncomingRequest,
    /// The server's `send`, if the interface is ASGI, until the exchange is closed: it leads back to the
    /// scope, and thereby to the exchange.
    send: Option<Py<PyAny>>,
    /// The coroutine of the application inside, likewise.
    coroutine: Option<Py<PyAny>>,
    /// The middleware and the scope of a request, likewise, if the routes of its application were read.
    origin: Option<(Py<PyAny>, Py<PyDict>)>,
    /// The status of a head whose body has not begun.
    status: Option<u16>,
    /// Whether the response says that the service failed.
    is_error: bool,
    /// The last piece of an error of ASGI has passed, of so many bytes. The end is recorded with that of the
    /// application: a layer inside may have answered for an exception, and raise it on.
    last_of_error: Option<u64>,
    is_closed: bool,
    /// The generation of the process in which it arrived.
    generation: u64,
}

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
            "http.response.zerocopysend" => {
                // Without a count, the server sends the file to its end.
                let count = message.get_item(intern!(py, "count"))?;
                let bytes = count.and_then(|count| count.extract().ok()).unwrap_or(0);
                Self::Piece { bytes, is_last: !has_more(message)? }
            }
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
            self.leave_to_parent();
            self.end();
        }
    }
}

impl State {
    /// Records nothing in a child that was forked during the request: its parent does.
    #[inline]
    fn leave_to_parent(&mut self) {
        if self.generation != fork_generation() {
            self.request.exchange.forget();
        }
    }

    /// Records the head of a response whose body has not begun, and ends the request. One that has no route by
    /// now is unmatched.
    fn end(&mut self) {
        self.enter(self.request.unmatched);
        if let Some(bytes) = self.last_of_error.take() {
            self.record_piece(bytes, true);
        }
        if let Some(status) = self.status.take() {
            self.request.exchange.begin_response(status);
        }
        self.request.exchange.close();
        self.is_closed = true;
    }

    /// The status of the response. A request that no route has taken is unmatched.
    fn head(&mut self, status: u16) {
        self.enter(self.request.unmatched);
        self.status = Some(status);
        self.is_error = status >= 500;
    }

    fn enter(&mut self, endpoint: Endpoint) {
        let IncomingRequest { exchange, method, version, is_https, .. } = &mut self.request;
        exchange.enter(endpoint, method, *version, *is_https);
    }

    /// A piece of the body, of which more may follow.
    #[inline]
    fn body(&mut self, bytes: u64, is_last: bool) {
        if self.is_error && is_last && self.send.is_some() {
            self.last_of_error = Some(bytes);
        } else {
            self.record_piece(bytes, is_last);
        }
    }

    #[inline]
    fn record_piece(&mut self, bytes: u64, is_last: bool) {
        let exchange = &mut self.request.exchange;
        match self.status.take() {
            Some(status) if is_last => return exchange.respond(status, bytes),
            Some(status) => exchange.begin_response(status),
            None => {}
        }
        exchange.sent(bytes);
        if is_last {
            exchange.end();
        }
    }
}

impl HttpExchange {
    pub(crate) fn new(
        request: IncomingRequest,
        reader: Option<u64>,
        send: Option<Py<PyAny>>,
        region: Py<Region>,
    ) -> Self {
        let state = State {
            request,
            send,
            coroutine: None,
            origin: None,
            status: None,
            is_error: false,
            last_of_error: None,
            is_closed: false,
            generation: fork_generation(),
        };
        Self { reader, state: StateLock::new(state), region }
    }

    #[inline]
    fn state<'a>(&'a self, py: Python<'a>) -> Guard<'a, State> {
        let mut state = self.state.lock(py);
        state.leave_to_parent();
        state
    }

    pub(crate) fn arrived_at(&self, middleware: Bound<'_, PyAny>, scope: &Bound<'_, PyDict>) {
        let origin = (middleware.unbind(), scope.clone().unbind());
        self.state(scope.py()).origin = Some(origin);
    }

    /// Has the routes read again if the scope has an endpoint: a route that was added since they were read may
    /// have taken this request.
    #[cold]
    fn look_for_route(&self, py: Python<'_>) -> PyResult<()> {
        let Some((middleware, scope)) = self.state(py).origin.take() else { return Ok(()) };
        if let Some(endpoint) = scope.bind(py).get_item(intern!(py, "endpoint"))? {
            callable::call_method(middleware.bind(py), "_declare_added", (endpoint,))?;
        }
        Ok(())
    }

    pub(crate) fn begin(&self, coroutine: Bound<'_, PyAny>) {
        let py = coroutine.py();
        self.state(py).coroutine = Some(coroutine.unbind());
    }

    /// The coroutine of the application inside, until the exchange is closed.
    pub(crate) fn coroutine<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.state(py).coroutine.as_ref().map(|coroutine| coroutine.bind(py).clone())
    }

    /// Ends the request: as aborted, if it has not ended already.
    pub(crate) fn end(&self, py: Python<'_>) {
        let mut state = self.state(py);
        state.end();
        let objects = [state.send.take(), state.coroutine.take()];
        let origin = state.origin.take();
        // Without the lock: the last reference to an object of Python may run any code.
        drop(state);
        objects.into_iter().flatten().for_each(|object| drop(object.into_bound(py)));
        drop(origin.map(|(middleware, scope)| (middleware.into_bound(py), scope.into_bound(py))));
    }
}

#[pymethods]
impl HttpExchange {
    /// The request is for this route.
    pub(crate) fn enter(&self, py: Python<'_>, route: &HttpRoute) {
        let mut state = self.state(py);
        let endpoint = route.endpoint(&state.request.method);
        state.enter(endpoint);
    }

    /// The request is for this route, which was read from an application. Without effect if it belongs to
    /// another meter, and this request's has read routes too: applications may share a route.
    pub(crate) fn enter_read(&self, py: Python<'_>, route: &HttpRoute) {
        if self.reader.is_none_or(|reader| reader == route.meter) {
            self.enter(py, route);
        }
    }

    /// The status of the response. A request that no route has taken is unmatched.
    fn head(&self, py: Python<'_>, status: u16) {
        self.state(py).head(status);
    }

    /// A piece of the response's body, of which more may follow.
    fn body(&self, py: Python<'_>, bytes: u64, is_last: bool) {
        self.state(py).body(bytes, is_last);
    }

    /// Whether the request has ended.
    pub(crate) fn is_closed(&self, py: Python<'_>) -> bool {
        self.state(py).is_closed
    }

    /// The service's code failed with an exception.
    pub(crate) fn failed(&self, py: Python<'_>) {
        let mut state = self.state(py);
        let unmatched = state.request.unmatched;
        state.enter(unmatched);
        state.request.exchange.failed();
    }

    /// The service's code failed with an exception, and this head is sent: servers of ASGI do not wait for the
    /// body, and an application of WSGI may have answered for the exception.
    pub(crate) fn failed_after_head(&self, py: Python<'_>) {
        let mut state = self.state(py);
        if let Some(status) = state.status.take() {
            state.request.exchange.begin_response(status);
        }
        if let Some(bytes) = state.last_of_error.take() {
            state.request.exchange.sent(bytes);
        }
        drop(state);
        self.failed(py);
    }

    /// The request is in flight, and which route takes it is not known yet.
    fn wait(&self, py: Python<'_>) {
        let mut state = self.state(py);
        let IncomingRequest { exchange, unmatched, method, version, is_https } = &mut state.request;
        exchange.wait_at(*unmatched, method, *version, *is_https);
    }

    /// Ends the request: as aborted, if it has not ended already. An application that is still awaited is
    /// closed before.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let closed = match self.coroutine(py) {
            Some(coroutine) => callable::call_method(&coroutine, "close", ()).map(drop),
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
        next(slf)
    }

    /// `await` calls this in place of `__next__` if it has a value; ASGI's futures have none.
    fn send<'py>(slf: &Bound<'py, Self>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        delegated(slf, "send", (value,).into_pyobject(slf.py())?)
    }

    #[pyo3(signature = (*exception))]
    fn throw<'py>(
        slf: &Bound<'py, Self>,
        exception: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        delegated(slf, "throw", exception.clone())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.region)?;
        // Locked if this thread's own garbage collection begins while it holds the lock.
        let Some(state) = self.state.try_lock(&visit) else { return Ok(()) };
        visit.call(&state.send)?;
        visit.call(&state.coroutine)?;
        let Some((middleware, scope)) = &state.origin else { return Ok(()) };
        visit.call(middleware)?;
        visit.call(scope)
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
        let mut state = exchange.state(py);
        // A 405 is that of a route for other methods.
        if matches!(message, Message::Head(status) if status != 405)
            && !state.request.exchange.is_open()
        {
            drop(state);
            exchange.look_for_route(py)?;
            state = exchange.state(py);
        }
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

/// An exception left the application.
#[cold]
pub(crate) fn ended(py: Python<'_>, exchange: &HttpExchange, error: &PyErr) {
    if !exchange.state(py).request.exchange.is_open() {
        let _ = exchange.look_for_route(py);
    }
    // Not if it was cancelled.
    if error.is_instance_of::<PyException>(py) && !is_of_client(py, error) {
        exchange.failed_after_head(py);
    }
    exchange.end(py);
}

/// Whether an exception says that the client left: Starlette's, after a `send` that raised.
fn is_of_client(py: Python<'_>, error: &PyErr) -> bool {
    let class = || {
        let modules = py.import("sys")?.getattr("modules")?;
        modules.get_item("starlette.requests")?.getattr("ClientDisconnect")
    };
    class().is_ok_and(|class| error.matches(py, class).unwrap_or(false))
}

fn coroutine<'py>(exchange: &Bound<'py, HttpExchange>) -> PyResult<Bound<'py, PyAny>> {
    exchange
        .get()
        .coroutine(exchange.py())
        .ok_or_else(|| PyRuntimeError::new_err("the request has ended, and is awaited again"))
}

/// Runs the application inside until it waits, or ends.
#[inline]
fn next<'py>(exchange: &Bound<'py, HttpExchange>) -> PyResult<Option<Bound<'py, PyAny>>> {
    match callable::step(&coroutine(exchange)?) {
        Ok(Step::Yielded(future)) => Ok(Some(future)),
        Ok(Step::Returned(value)) => {
            exchange.get().end(exchange.py());
            if value.is_none() {
                Ok(None)
            } else {
                Err(PyStopIteration::new_err((value.unbind(),)))
            }
        }
        Err(error) => {
            ended(exchange.py(), exchange.get(), &error);
            Err(error)
        }
    }
}

/// Calls a method of the application's coroutine.
fn delegated<'py>(
    exchange: &Bound<'py, HttpExchange>,
    method: &str,
    arguments: Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = exchange.py();
    // The application ends by an exception, StopIteration if it returned.
    callable::call_method(&coroutine(exchange)?, method, arguments).inspect_err(|error| {
        match error.is_instance_of::<PyStopIteration>(py) {
            true => exchange.get().end(py),
            false => ended(py, exchange.get(), error),
        }
    })
}

/// The body of WSGI's response.
#[pyclass(frozen, module = "talea_metrics._talea")]
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
        match callable::step(self.pieces.bind(py)) {
            Ok(Step::Yielded(piece)) => {
                let bytes = piece.cast::<PyBytes>().map_or(0, |bytes| bytes.as_bytes().len());
                exchange.body(py, bytes as u64, false);
                Ok(Some(piece))
            }
            Ok(Step::Returned(_)) => {
                exchange.body(py, 0, true);
                Ok(None)
            }
            Err(error) => {
                // Not if the server or the service stops, by SystemExit or another one that is no Exception.
                if error.is_instance_of::<PyException>(py) {
                    exchange.failed(py);
                }
                Err(error)
            }
        }
    }

    /// Closes the body inside, and ends the request.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let body = self.body.bind(py);
        let closed = match body.getattr_opt(intern!(py, "close"))? {
            Some(close) => callable::call0(&close).map(drop),
            None => Ok(()),
        };
        self.exchange.get().end(py);
        closed
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.exchange)?;
        visit.call(&self.body)?;
        visit.call(&self.pieces)
    }
}
