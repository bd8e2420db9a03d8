//! Context managers, which are decorators of functions too.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use talea::{FloatCounter, FloatGauge, fork_generation};

use crate::callable;
use crate::held_by_object::HeldByObject;
use crate::region::Region;

/// Wraps a function, so that each call of it runs within the block.
fn decorate<'py>(
    block: &Bound<'py, PyAny>,
    function: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let module = callable::import(block.py(), "talea_metrics._decorate")?;
    callable::call_method(&module, "decorate", (block, function))
}

// Python aligns its objects to no more.
const _: () = assert!(align_of::<CountedExceptions>() <= 16 && align_of::<InProgress>() <= 16);

/// Measures a block or each call of a function.
#[pyclass(frozen, module = "talea_metrics")]
pub(crate) struct Timer {
    metric: Py<PyAny>,
    observe: Observe,
    /// The child that takes the duration, if its label values were given in the block.
    child: OnceLock<Py<PyAny>>,
    /// How many blocks are open.
    depth: AtomicUsize,
    /// When the outermost block began.
    began: AtomicU64,
    /// When those within it began, the innermost last.
    inner: Mutex<Vec<u64>>,
    /// The bits of the duration of the last block, in seconds; NaN if none has ended.
    duration: AtomicU64,
}

/// Hands a duration in seconds to a metric.
pub(crate) type Observe = fn(&Bound<'_, PyAny>, f64) -> PyResult<()>;

/// Nanoseconds since this process measured first.
fn now() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

impl Timer {
    pub(crate) fn new(metric: &Bound<'_, PyAny>, observe: Observe) -> Self {
        Self {
            metric: metric.clone().unbind(),
            observe,
            child: OnceLock::new(),
            depth: AtomicUsize::new(0),
            began: AtomicU64::new(0),
            inner: Mutex::default(),
            duration: AtomicU64::new(f64::NAN.to_bits()),
        }
    }

    fn metric<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.child.get().unwrap_or(&self.metric).bind(py)
    }

    fn inner(&self) -> MutexGuard<'_, Vec<u64>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Timer {
    /// Observes a duration in seconds.
    fn _observe(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        (self.observe)(self.metric(py), seconds)
    }

    /// The label values of the series that takes the duration: they may be known only in the block.
    #[pyo3(signature = (*labelvalues, **labelkwargs))]
    fn labels(
        &self,
        py: Python<'_>,
        labelvalues: Bound<'_, PyTuple>,
        labelkwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let child = self.metric(py).call_method("labels", labelvalues, labelkwargs)?;
        // A child has no children, so this is the first.
        let _ = self.child.set(child.unbind());
        Ok(())
    }

    /// The duration of the last block in seconds, if one has ended.
    #[getter]
    fn duration(&self) -> Option<f64> {
        let seconds = f64::from_bits(self.duration.load(Relaxed));
        (!seconds.is_nan()).then_some(seconds)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        let timer = slf.get();
        if timer.depth.fetch_add(1, Relaxed) == 0 {
            timer.began.store(now(), Relaxed);
        } else {
            timer.inner().push(now());
        }
        slf
    }

    fn __exit__(
        &self,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let py = kind.py();
        let ended = now();
        let depth = self.depth.fetch_update(Relaxed, Relaxed, |depth| depth.checked_sub(1));
        let began = match depth {
            Err(_) => return Ok(()),
            Ok(1) => self.began.load(Relaxed),
            // Of threads that share a timer, one may have counted itself, and not begun.
            Ok(_) => self.inner().pop().unwrap_or(ended),
        };
        let seconds = ended.saturating_sub(began) as f64 / 1e9;
        self.duration.store(seconds.to_bits(), Relaxed);
        self._observe(py, seconds)
    }

    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        function: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let module = callable::import(slf.py(), "talea_metrics._decorate")?;
        callable::call_method(&module, "timed", (slf, function))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.metric)?;
        visit.call(self.child.get())
    }
}

/// Counts the exceptions that leave a block or a function.
#[pyclass(frozen, module = "talea_metrics")]
pub(crate) struct CountedExceptions {
    pub(crate) counter: HeldByObject<FloatCounter>,
    /// A type, or a tuple of them; any exception if it is none.
    pub(crate) exception: Option<Py<PyAny>>,
    pub(crate) _region: Py<Region>,
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
            self.counter.metric.add(1.0);
        }
        Ok(false)
    }

    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        function: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        decorate(slf, function)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.exception)?;
        visit.call(&self._region)
    }
}

/// Adds one to a gauge while a block or a function runs.
#[pyclass(frozen, module = "talea_metrics")]
pub(crate) struct InProgress {
    pub(crate) gauge: HeldByObject<FloatGauge>,
    /// The generation of this process, and how many blocks are open that it began.
    pub(crate) open: Mutex<(u64, usize)>,
    pub(crate) _region: Py<Region>,
}

impl InProgress {
    fn open(&self) -> MutexGuard<'_, (u64, usize)> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.0 != fork_generation() {
            *open = (fork_generation(), 0);
        }
        open
    }
}

#[pymethods]
impl InProgress {
    fn __enter__(&self) {
        self.open().1 += 1;
        self.gauge.metric.add(1.0);
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        let mut open = self.open();
        // Of a child that was forked in the block, the parent ends it.
        if open.1 > 0 {
            open.1 -= 1;
            self.gauge.metric.add(-1.0);
        }
    }

    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        function: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        decorate(slf, function)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self._region)
    }
}
