//! Context managers, which are decorators of functions too.

use std::sync::Mutex;
use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use talea::{FloatCounter, FloatGauge};

/// Wraps a function, so that each call of it runs within the block.
fn decorate<'py>(
    block: &Bound<'py, PyAny>,
    function: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    block.py().import("talea._decorate")?.call_method1("decorate", (block, function))
}

// Python aligns its objects to no more.
const _: () = assert!(align_of::<CountedExceptions>() <= 16 && align_of::<InProgress>() <= 16);

type Observe = dyn Fn(f64) + Send + Sync;

/// Measures a block or each call of a function.
#[pyclass(frozen, module = "talea")]
pub(crate) struct Timer {
    observe: Box<Observe>,
    /// When the blocks began that are open, the innermost last.
    began: Mutex<Vec<Instant>>,
}

impl Timer {
    pub(crate) fn new(observe: impl Fn(f64) + Send + Sync + 'static) -> Self {
        Self { observe: Box::new(observe), began: Mutex::default() }
    }
}

#[pymethods]
impl Timer {
    /// Observes a duration in seconds.
    fn _observe(&self, seconds: f64) {
        (self.observe)(seconds);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf.get().began.lock().expect("no code panics while it is locked").push(Instant::now());
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        let began = self.began.lock().expect("no code panics while it is locked").pop();
        if let Some(began) = began {
            (self.observe)(began.elapsed().as_secs_f64());
        }
    }

    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        function: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("talea._decorate")?.call_method1("timed", (slf, function))
    }
}

/// Counts the exceptions that leave a block or a function.
#[pyclass(frozen, module = "talea")]
pub(crate) struct CountedExceptions {
    pub(crate) counter: FloatCounter,
    /// A type, or a tuple of them; any exception if it is none.
    pub(crate) exception: Option<Py<PyAny>>,
}

#[pymethods]
impl CountedExceptions {
    fn __enter__(&self) {}

    fn __exit__(
        &self,
        kind: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let py = kind.py();
        let is_counted = match &self.exception {
            _ if kind.is_none() => false,
            Some(exception) => value.is_instance(exception.bind(py))?,
            None => value.is_instance_of::<pyo3::exceptions::PyException>(),
        };
        if is_counted {
            self.counter.add(1.0);
        }
        Ok(false)
    }

    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        function: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        decorate(slf, function)
    }
}

/// Adds one to a gauge while a block or a function runs.
#[pyclass(frozen, module = "talea")]
pub(crate) struct InProgress {
    pub(crate) gauge: FloatGauge,
}

#[pymethods]
impl InProgress {
    fn __enter__(&self) {
        self.gauge.add(1.0);
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        self.gauge.add(-1.0);
    }

    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        function: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        decorate(slf, function)
    }
}
