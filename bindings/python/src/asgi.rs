//! The middleware for ASGI. Its calls are Rust's, and it adds no coroutine: what an application awaits it
//! is the exchange, which runs the application inside, and takes part in how that ends.

use std::ffi::CStr;
use std::sync::OnceLock;

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::callable::{self, Callable, ThreeArguments};
use crate::exchange::{HttpExchange, ended};
use crate::http::HttpMeter;
use crate::route::HttpRoute;

fn key(py: Python<'_>) -> &Bound<'_, PyString> {
    intern!(py, "talea.exchange")
}

/// The middleware. Its Python class reads the routes of an application, in `_declare`.
#[pyclass(frozen, subclass, module = "talea_metrics._talea")]
#[derive(Default)]
pub(crate) struct AsgiMiddleware {
    inside: OnceLock<Inside>,
    /// The application whose routes were read at its first request.
    declared: OnceLock<Py<PyAny>>,
}

struct Inside {
    app: Callable,
    meter: Py<HttpMeter>,
    /// The class of what an `async def` returns.
    coroutine: Py<PyAny>,
}

#[pymethods]
impl AsgiMiddleware {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self::default()
    }

    /// Sets the application inside and the metrics.
    fn _begin(&self, app: Bound<'_, PyAny>, meter: Py<HttpMeter>) -> PyResult<()> {
        let coroutine = app.py().import("types")?.getattr("CoroutineType")?.unbind();
        let app = Callable::new(app)?;
        self.inside.get_or_init(|| Inside { app, meter, coroutine });
        Ok(())
    }

    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        scope: &Bound<'py, PyDict>,
        receive: &Bound<'py, PyAny>,
        send: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let Some(Inside { app, meter, coroutine }) = this.inside.get() else {
            return Err(PyRuntimeError::new_err("the middleware has no application"));
        };
        if this.declared.get().is_none() {
            this.declare(slf, scope)?;
        }
        let is_http = match scope.get_item(intern!(py, "type"))? {
            Some(kind) => callable::is_text(&kind, intern!(py, "http"))?,
            None => false,
        };
        // Installed twice, the outer one records. A request that is made again is another one.
        let is_inner = match scope.get_item(key(py))? {
            Some(exchange) => !exchange.cast::<HttpExchange>()?.get().is_closed(py),
            None => false,
        };
        if !is_http || is_inner {
            return app.call([scope, receive, send]);
        }
        let exchange = HttpMeter::asgi(meter.bind(py), scope, send)?;
        if this.declared.get().is_some() {
            exchange.get().arrived_at(slf.clone().into_any(), scope);
        }
        scope.set_item(key(py), &exchange)?;
        let send = callable::of_one(&exchange)?;
        match app.call([scope, receive, &send]).and_then(|awaitable| {
            match awaitable.get_type().is(coroutine) {
                true => Ok(awaitable),
                false => callable::call_method(&awaitable, "__await__", ()),
            }
        }) {
            Ok(awaited) => {
                exchange.get().begin(awaited);
                Ok(exchange.into_any())
            }
            Err(error) => {
                ended(py, exchange.get(), &error);
                Err(error)
            }
        }
    }

    /// The application whose routes were read at its first request.
    #[getter]
    fn _declared(&self) -> Option<&Py<PyAny>> {
        self.declared.get()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Some(Inside { app, meter, coroutine }) = self.inside.get() {
            app.traverse(&visit)?;
            visit.call(meter)?;
            visit.call(coroutine)?;
        }
        visit.call(self.declared.get())
    }
}

impl AsgiMiddleware {
    /// Has the routes of the application declared, unless a middleware outside has done that: it records. That is
    /// done at the first message, and at the first request: the application may add routes as it starts.
    #[cold]
    fn declare(&self, slf: &Bound<'_, Self>, scope: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = slf.py();
        let Some(application) = scope.get_item(intern!(py, "app"))? else { return Ok(()) };
        let by_outer = match scope.get_item(key(py))? {
            Some(exchange) => exchange.cast::<HttpExchange>()?.get().reader.is_some(),
            // A message without an exchange, such as that of the start.
            None => scope.contains(intern!(py, "talea.declared"))?,
        };
        if !by_outer {
            callable::call_method(slf, "_declare", (&application,))?;
            let is_start = match scope.get_item(intern!(py, "type"))? {
                Some(kind) => callable::is_text(&kind, intern!(py, "lifespan"))?,
                None => false,
            };
            if !is_start {
                self.declared.get_or_init(|| application.unbind());
            }
            scope.set_item(intern!(py, "talea.declared"), true)?;
        }
        Ok(())
    }
}

/// The application of a route, which says that the route has taken the request.
#[pyclass(frozen, module = "talea_metrics._talea")]
struct AsgiRoute {
    app: Callable,
    route: Py<HttpRoute>,
}

#[pymethods]
impl AsgiRoute {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.app.traverse(&visit)?;
        visit.call(&self.route)
    }
}

/// The application of a route, so that the exchange of a request knows the route.
#[pyfunction]
pub(crate) fn asgi_route<'py>(
    app: Bound<'py, PyAny>,
    route: Py<HttpRoute>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = app.py();
    callable::of_three(&Bound::new(py, AsgiRoute { app: Callable::new(app)?, route })?)
}

impl ThreeArguments for AsgiRoute {
    const FUNCTION: &'static CStr = c"asgi_route";

    fn call<'py>(
        this: &Bound<'py, Self>,
        arguments: [&Bound<'py, PyAny>; 3],
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (this.py(), this.get());
        let Ok(scope) = arguments[0].cast::<PyDict>() else {
            return Err(PyTypeError::new_err("the scope of a request is not a dict"));
        };
        if let Some(exchange) = scope.get_item(key(py))? {
            exchange.cast::<HttpExchange>()?.get().enter_read(py, this.route.get());
        }
        // The coroutine of the application, not one around it.
        this.app.call(arguments)
    }
}
