//! Context managers, which are decorators of functions too.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
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

/// Measures a block or each call of a function.
#[pyclass(frozen, module = "talea")]
pub(crate) struct Timer {
    metric: Mutex<Py<PyAny>>,
    /// The method of the metric that takes seconds.
    method: Py<PyString>,
    /// When the blocks began that are open, the innermost last.
    began: Mutex<Vec<Instant>>,
    /// The duration of the last block, in seconds.
    duration: Mutex<Option<f64>>,
}

impl Timer {
    pub(crate) fn new(metric: &Bound<'_, PyAny>, method: &str) -> Self {
        Self {
            metric: Mutex::new(metric.clone().unbind()),
            method: PyString::intern(metric.py(), method).unbind(),
            began: Mutex::default(),
            duration: Mutex::default(),
        }
    }
}

/// No code panics while such a lock is held, and none waits for it with the interpreter.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl Timer {
    /// Observes a duration in seconds.
    fn _observe(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let metric = lock(&self.metric).clone_ref(py);
        metric.call_method1(py, &self.method, (seconds,))?;
        Ok(())
    }

    /// The label values of the series that takes the duration: they may be known only in the block.
    #[pyo3(signature = (*labelvalues, **labelkwargs))]
    fn labels(
        &self,
        py: Python<'_>,
        labelvalues: Bound<'_, PyTuple>,
        labelkwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let family = lock(&self.metric).clone_ref(py);
        let child = family.call_method(py, "labels", labelvalues, labelkwargs)?;
        *lock(&self.metric) = child;
        Ok(())
    }

    /// The duration of the last block in seconds, if one has ended.
    #[getter]
    fn duration(&self) -> Option<f64> {
        *lock(&self.duration)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        lock(&slf.get().began).push(Instant::now());
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let began = lock(&self.began).pop();
        let Some(began) = began else { return Ok(()) };
        let seconds = began.elapsed().as_secs_f64();
        *lock(&self.duration) = Some(seconds);
        self._observe(py, seconds)
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
