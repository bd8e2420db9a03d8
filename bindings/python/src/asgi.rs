//! The middleware for ASGI. Its calls are Rust's, and it adds no coroutine: what an application awaits it
//! is the application inside, and the exchange takes part in how that ends.

use std::sync::OnceLock;

use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyString, PyTuple};

use crate::http::{HttpExchange, HttpMeter, HttpRoute};

fn key(py: Python<'_>) -> &Bound<'_, PyString> {
    intern!(py, "talea.exchange")
}

/// The middleware. Its Python class reads the routes of an application, in `_declare`.
#[pyclass(frozen, subclass, dict, module = "talea._talea")]
#[derive(Default)]
pub(crate) struct AsgiMiddleware {
    inside: OnceLock<Inside>,
    /// The application whose routes were read.
    declared: OnceLock<Py<PyAny>>,
}

struct Inside {
    app: Py<PyAny>,
    meter: Py<HttpMeter>,
}

#[pymethods]
impl AsgiMiddleware {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self::default()
    }

    /// Sets the application inside and the metrics.
    fn _begin(&self, app: Py<PyAny>, meter: Py<HttpMeter>) {
        self.inside.get_or_init(|| Inside { app, meter });
    }

    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        scope: &Bound<'py, PyDict>,
        receive: &Bound<'py, PyAny>,
        send: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let inside = this.inside.get();
        let Inside { app, meter } =
            inside.ok_or_else(|| PyRuntimeError::new_err("the middleware has no application"))?;
        let app = app.bind(py);
        if this.declared.get().is_none() {
            if let Some(application) = scope.get_item(intern!(py, "app"))? {
                slf.call_method1(intern!(py, "_declare"), (&application,))?;
                this.declared.get_or_init(|| application.unbind());
            }
        }
        let kind = scope.get_item(intern!(py, "type"))?;
        let is_http = match &kind {
            Some(kind) => kind.extract::<&str>()? == "http",
            None => false,
        };
        // Installed twice, the outer one records.
        if !is_http || scope.contains(key(py))? {
            return app.call1((scope, receive, send));
        }
        let exchange =
            Bound::new(py, HttpMeter::asgi(meter.bind(py), scope, send.clone().unbind())?)?;
        scope.set_item(key(py), &exchange)?;
        let awaited = app
            .call1((scope, receive, &exchange))
            .and_then(|awaitable| awaitable.call_method0(intern!(py, "__await__")))
            .and_then(|awaited| awaited.try_iter());
        match awaited {
            Ok(inner) => {
                let (inner, exchange) = (inner.unbind(), exchange.unbind());
                Ok(Bound::new(py, Running { inner, exchange })?.into_any())
            }
            Err(error) => {
                ended(py, exchange.get(), &error);
                Err(error)
            }
        }
    }
}

/// An exception left the application.
#[cold]
fn ended(py: Python<'_>, exchange: &HttpExchange, error: &PyErr) {
    // Not if it was cancelled.
    if error.is_instance_of::<PyException>(py) {
        exchange.failed();
    }
    exchange.close();
}

/// A request that is being answered, to be awaited.
#[pyclass(frozen, module = "talea._talea")]
struct Running {
    inner: Py<PyIterator>,
    exchange: Py<HttpExchange>,
}

#[pymethods]
impl Running {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.inner.bind(py).clone().next() {
            Some(Ok(future)) => Ok(Some(future)),
            Some(Err(error)) => {
                ended(py, self.exchange.get(), &error);
                Err(error)
            }
            None => {
                self.exchange.get().close();
                Ok(None)
            }
        }
    }

    /// What `await` calls in place of `__next__` if it has a value; ASGI's futures have none.
    fn send<'py>(&self, py: Python<'py>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.delegated(py, intern!(py, "send"), (value,))
    }

    #[pyo3(signature = (*exception))]
    fn throw<'py>(
        &self,
        py: Python<'py>,
        exception: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.delegated(py, intern!(py, "throw"), exception)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let closed = self.inner.bind(py).call_method0(intern!(py, "close"));
        self.exchange.get().close();
        closed.map(drop)
    }
}

impl Running {
    fn delegated<'py>(
        &self,
        py: Python<'py>,
        method: &Bound<'py, PyString>,
        arguments: impl pyo3::call::PyCallArgs<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // The application ends by an exception, StopIteration if it returned.
        self.inner.bind(py).call_method1(method, arguments).inspect_err(|error| {
            match error.is_instance_of::<pyo3::exceptions::PyStopIteration>(py) {
                true => self.exchange.get().close(),
                false => ended(py, self.exchange.get(), error),
            }
        })
    }
}

/// The application of a route, which says that the route has taken the request.
#[pyclass(frozen, module = "talea._talea")]
pub(crate) struct AsgiRoute {
    app: Py<PyAny>,
    route: Py<HttpRoute>,
}

#[pymethods]
impl AsgiRoute {
    #[new]
    fn new(app: Py<PyAny>, route: Py<HttpRoute>) -> Self {
        Self { app, route }
    }

    fn __call__<'py>(
        &self,
        py: Python<'py>,
        scope: &Bound<'py, PyDict>,
        receive: &Bound<'py, PyAny>,
        send: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(exchange) = scope.get_item(key(py))? {
            exchange.cast::<HttpExchange>()?.get().enter(self.route.get());
        }
        // The coroutine of the application, not one around it.
        self.app.bind(py).call1((scope, receive, send))
    }
}
