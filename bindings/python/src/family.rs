//! The common parts of all metrics: a family, and the children that were asked for.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use talea::{DynamicLabels, Family, HeldSeries, Hold, Metric};

use crate::held_by_object::HeldByObject;
use crate::region::Region;

/// The definition of a metric, which it shares with its children.
pub(crate) struct Defined<M: Metric> {
    pub(crate) family: Family<DynamicLabels, M>,
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) documentation: String,
    pub(crate) unit: String,
    pub(crate) labelnames: Vec<String>,
    /// The states of an enum.
    pub(crate) states: Vec<String>,
    /// The thresholds of a histogram, the last of them +Inf.
    pub(crate) upper_bounds: Vec<f64>,
    /// What has the series of a child stay.
    pub(crate) hold: fn(&Bound<'_, PyAny>) -> Option<Arc<Hold>>,
}

/// A metric: either one with label names, which has children, or one without, or a child.
///
/// `__init__` defines it, so that Python classes may have other arguments than their base. Metrics are in
/// boxes: some are aligned to cache lines, and Python aligns its objects to no more than 16 bytes.
pub(crate) struct Parts<M: Metric> {
    /// Its series, unless it has children.
    series: OnceLock<Box<M>>,
    /// Has the series of a child stay.
    hold: OnceLock<Arc<Hold>>,
    defined: OnceLock<Arc<Defined<M>>>,
    /// By tuples of texts. Those whose series is removed, or idle and hidden, are dropped now and then.
    children: OnceLock<Py<PyDict>>,
    /// The family's count of removals when children were last dropped.
    dropped_at: AtomicU64,
    /// How many children were made since.
    made_since: AtomicUsize,
    /// The label values of a child.
    labelvalues: OnceLock<Py<PyTuple>>,
    /// The region of the series. Of each object its own reference, which a garbage collection can count. It is
    /// the last field, so that it is dropped after the series.
    region: OnceLock<Py<Region>>,
    /// False in memory that is zero. A class with a `__dict__` gets its dict, and thereby perhaps a garbage
    /// collection, before PyO3 writes to the object's memory.
    is_made: bool,
}

impl<M: Metric> Default for Parts<M> {
    fn default() -> Self {
        const { assert!(align_of::<Self>() <= 16) };
        Self {
            series: OnceLock::new(),
            hold: OnceLock::new(),
            defined: OnceLock::new(),
            children: OnceLock::new(),
            dropped_at: AtomicU64::new(0),
            made_since: AtomicUsize::new(0),
            labelvalues: OnceLock::new(),
            region: OnceLock::new(),
            is_made: true,
        }
    }
}

impl<M: Metric + Clone> Parts<M> {
    pub(crate) fn define(
        &self,
        py: Python<'_>,
        region: Py<Region>,
        defined: Defined<M>,
    ) -> PyResult<()> {
        if defined.labelnames.is_empty() {
            let series = defined.family.with_values(&[""; 0]).keep();
            let _ = self.series.set(Box::new(series));
        } else {
            let _ = self.children.set(PyDict::new(py).unbind());
        }
        let _ = self.region.set(region);
        let is_new = self.defined.set(Arc::new(defined)).is_ok();
        if is_new { Ok(()) } else { Err(PyValueError::new_err("this metric is defined already")) }
    }

    pub(crate) fn defined(&self) -> PyResult<&Arc<Defined<M>>> {
        self.defined.get().ok_or_else(undefined)
    }

    pub(crate) fn region(&self) -> PyResult<&Py<Region>> {
        self.region.get().ok_or_else(undefined)
    }

    /// The series; an error if label values are missing.
    #[inline(always)]
    pub(crate) fn series(&self) -> PyResult<&M> {
        match self.series.get() {
            Some(series) => Ok(series),
            None => Err(self.without_values()),
        }
    }

    #[cold]
    fn without_values(&self) -> PyErr {
        match self.defined() {
            Ok(defined) => PyValueError::new_err(format!(
                "{} metric is missing label values: call labels with {:?}",
                defined.kind, defined.labelnames
            )),
            Err(error) => error,
        }
    }

    /// The child of label values, made by `make` at the first time, after `begin`.
    #[inline]
    pub(crate) fn child<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
        begin: impl Fn(&M),
        make: impl Fn(Self) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let named = named.filter(|named| !named.is_empty());
        // Only tuples of texts are keys. Members of an enum may equal a text, and have another one.
        if let (Some(children), None) = (self.children.get(), named) {
            if values.iter_borrowed().all(|value| value.is_exact_instance_of::<PyString>()) {
                if let Some(child) = children.bind(py).get_item(values)? {
                    return Ok(child);
                }
            }
        }
        let key = self.key(py, values, named)?;
        let children = self.children(py)?;
        if let Some(child) = children.get_item(&key)? {
            return Ok(child);
        }
        self.new_or_first(py, &key, begin, make)
    }

    #[cold]
    fn new_or_first<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyTuple>,
        begin: impl Fn(&M),
        make: impl Fn(Self) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let children = self.children(py)?;
        let texts: Vec<String> = key.extract()?;
        loop {
            let mut own = self.defined()?.family.hold_values(&texts);
            if own.is_err() && self.drop_hidden(py)? {
                own = self.defined()?.family.hold_values(&texts);
            }
            let Ok(HeldSeries { metric, hold }) = own else {
                // Values beyond the limit may be anything, and of any number: no memory is kept for them.
                return make(self.new_child(py, key, self.beyond_limit()?, None)?);
            };
            begin(&metric);
            let hold = hold.map(Arc::new);
            let child = make(self.new_child(py, key, metric, hold.clone())?)?;
            // Another thread may have made one meanwhile: all get the first.
            let first = children.call_method1("setdefault", (key, &child))?;
            self.made_since.fetch_add(1, Relaxed);
            // One that is removed in between is dropped by the thread that removes it, or here.
            if first.is(&child) && hold.is_some_and(|hold| !hold.is_current()) {
                children.call_method1("pop", (key, py.None()))?;
                continue;
            }
            if self.made_since.load(Relaxed) > children.len() / 4 {
                self.drop_hidden(py)?;
            }
            return Ok(first);
        }
    }

    fn new_child(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyTuple>,
        series: M,
        hold: Option<Arc<Hold>>,
    ) -> PyResult<Self> {
        let child = Self::default();
        child.series.get_or_init(|| Box::new(series));
        hold.into_iter().for_each(|hold| drop(child.hold.set(hold)));
        child.defined.get_or_init(|| Arc::clone(self.defined.get().expect("it has children")));
        child.labelvalues.get_or_init(|| key.clone().unbind());
        let region = self.region()?.clone_ref(py);
        child.region.get_or_init(|| region);
        Ok(child)
    }

    fn beyond_limit(&self) -> PyResult<M> {
        let defined = self.defined()?;
        // More values than names belong to no series: they lead to the one for those beyond the limit.
        Ok(defined.family.with_values(&vec![""; defined.labelnames.len() + 1]).keep())
    }

    /// The series, and what has it stay.
    pub(crate) fn held(&self) -> PyResult<HeldByObject<M>> {
        Ok(HeldByObject::new(self.series()?.clone(), self.hold.get().cloned()))
    }

    /// Drops the children whose series is removed, or idle and hidden, if any was since the last time;
    /// false if none was. Code that has such a child may use it; the next call of `labels` makes another.
    pub(crate) fn drop_hidden(&self, py: Python<'_>) -> PyResult<bool> {
        let (Some(children), Some(defined)) = (self.children.get(), self.defined.get()) else {
            return Ok(false);
        };
        let removals = defined.family.removals();
        if self.dropped_at.swap(removals, Relaxed) == removals {
            return Ok(false);
        }
        self.made_since.store(0, Relaxed);
        let children = children.bind(py);
        for (key, child) in children.copy()?.iter() {
            let hold = (defined.hold)(&child);
            if hold.is_some_and(|hold| hold.is_out_of_sight()) {
                children.call_method1("pop", (key, py.None()))?;
            }
        }
        Ok(true)
    }

    pub(crate) fn hold(&self) -> Option<Arc<Hold>> {
        self.hold.get().cloned()
    }

    pub(crate) fn children<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyDict>> {
        if let Some(children) = self.children.get() {
            return Ok(children.bind(py));
        }
        let defined = self.defined()?;
        let (kind, name) = (defined.kind, &defined.name);
        let message = match self.labelvalues.get() {
            Some(values) => {
                format!("the {kind} {name} has its label values already: {}", values.bind(py))
            }
            None => format!("the {kind} {name} was made without labelnames"),
        };
        Err(PyValueError::new_err(message))
    }

    pub(crate) fn labelvalues<'py>(&self, py: Python<'py>) -> Bound<'py, PyTuple> {
        match self.labelvalues.get() {
            Some(values) => values.bind(py).clone(),
            None => PyTuple::empty(py),
        }
    }

    /// Removes a child with its series. One that is not there is not an error, as in the official client.
    pub(crate) fn remove<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyTuple>,
    ) -> PyResult<()> {
        let children = self.children(py)?;
        let key = self.key(py, values, None)?;
        let texts: Vec<String> = key.extract()?;
        let defined = self.defined()?;
        self.region()?.get().forget_functions(&defined.name, Some(&texts));
        // In this order: a thread that makes a child meanwhile finds its series gone, or loses the child.
        defined.family.remove_values(&texts);
        children.call_method1("pop", (key, py.None()))?;
        Ok(())
    }

    /// Removes all children that have these labels, with their series.
    pub(crate) fn remove_by_labels<'py>(
        &self,
        py: Python<'py>,
        labels: &Bound<'py, PyDict>,
    ) -> PyResult<()> {
        let children = self.children(py)?;
        let defined = self.defined()?;
        let mut wanted = Vec::new();
        for (name, value) in labels {
            let name: String = name.extract()?;
            let Some(at) = defined.labelnames.iter().position(|known| *known == name) else {
                let names = &defined.labelnames;
                let message = format!("there is no label {name:?}; the labels are {names:?}");
                return Err(PyValueError::new_err(message));
            };
            wanted.push((at, value.str()?.to_string()));
        }
        if wanted.is_empty() {
            return Ok(());
        }
        // Also those that only other processes have. First, as in `remove`.
        let pairs: Vec<(&str, &str)> =
            wanted.iter().map(|(at, value)| (&*defined.labelnames[*at], &**value)).collect();
        defined.family.remove_matching(&pairs);
        for key in children.keys() {
            let texts: Vec<String> = key.extract()?;
            if wanted.iter().all(|(at, value)| texts[*at] == *value) {
                children.call_method1("pop", (key, py.None()))?;
                self.region()?.get().forget_functions(&defined.name, Some(&texts));
            }
        }
        Ok(())
    }

    /// Removes all children with their series; without label names, nothing.
    pub(crate) fn clear(&self, py: Python<'_>) -> PyResult<()> {
        if let Some(children) = self.children.get() {
            let defined = self.defined()?;
            self.region()?.get().forget_functions(&defined.name, None);
            defined.family.remove_matching(&[]);
            children.bind(py).clear();
        }
        Ok(())
    }

    /// The label values as texts, in the order of the names.
    fn key<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        self.children(py)?;
        let names = &self.defined()?.labelnames;
        let wrong = || {
            let found = match named {
                Some(named) => format!("{} by position and {} by name", values.len(), named.len()),
                None => format!("{}", values.len()),
            };
            PyValueError::new_err(format!("labels takes values of {names:?}, not {found}"))
        };
        let texts: Vec<Bound<'py, PyString>> = match named {
            Some(named) => {
                if !values.is_empty() || named.len() != names.len() {
                    return Err(wrong());
                }
                names
                    .iter()
                    .map(|name| named.get_item(name)?.ok_or_else(wrong)?.str())
                    .collect::<PyResult<_>>()?
            }
            None if values.len() != names.len() => return Err(wrong()),
            None => values.iter().map(|value| value.str()).collect::<PyResult<_>>()?,
        };
        PyTuple::new(py, texts)
    }

    /// Counts from 0 again.
    pub(crate) fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.series()?;
        let defined = self.defined()?;
        match self.labelvalues.get() {
            Some(values) => {
                let texts: Vec<String> = values.extract(py)?;
                defined.family.reset_values(&texts);
            }
            None => {
                let shown = format!("{}_total", defined.name);
                self.region()?.get().registry.wipe(|name| name == shown);
            }
        }
        Ok(())
    }
}

impl<M: Metric> Parts<M> {
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        if !self.is_made {
            return Ok(());
        }
        visit.call(self.children.get())?;
        visit.call(self.region.get())
    }

    /// The identity of the series: the family's name and the label values.
    pub(crate) fn identity(&self, py: Python<'_>) -> PyResult<(String, Vec<String>)> {
        let name = self.defined.get().map(|defined| defined.name.clone()).unwrap_or_default();
        let values = self.labelvalues.get().map(|values| values.extract(py)).transpose()?;
        Ok((name, values.unwrap_or_default()))
    }
}

fn undefined() -> PyErr {
    PyValueError::new_err("this metric is not defined: call its __init__")
}

pub(crate) fn no_such_state(state: &str, states: &[String]) -> PyErr {
    PyValueError::new_err(format!("there is no state {state:?}; the states are {states:?}"))
}
