//! What all metrics share: a family, and the children that were asked for.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use talea::{DynamicLabels, Family, Metric};

/// A family of a kind of metric, with its children: instances of the same class, by label values.
pub(crate) struct Children<M: Metric> {
    family: Family<DynamicLabels, M>,
    names: Vec<String>,
    /// By tuples of texts. A child keeps its series.
    children: Py<PyDict>,
}

/// Either the family or a child, which is the metric itself. A family without labels is both.
///
/// Both are in boxes: some metrics are aligned to cache lines, and Python aligns its objects to no more
/// than 16 bytes.
pub(crate) struct Parts<M: Metric> {
    children: Option<Box<Children<M>>>,
    metric: Option<Box<M>>,
}

impl<M: Metric + Clone> Children<M> {
    pub(crate) fn parts(
        py: Python<'_>,
        family: Family<DynamicLabels, M>,
        names: Vec<String>,
    ) -> Parts<M> {
        let metric = names.is_empty().then(|| Box::new(family.with_values(&[""; 0]).keep()));
        let children = PyDict::new(py).unbind();
        Parts { children: Some(Box::new(Self { family, names, children })), metric }
    }

    /// The child of label values, made by `make` at the first time.
    #[inline]
    pub(crate) fn child<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
        make: impl FnOnce(M) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let children = self.children.bind(py);
        // Only tuples of texts are keys, and a text equals nothing else.
        let known = if named.is_none() { children.get_item(values)? } else { None };
        if let Some(child) = known {
            return Ok(child);
        }
        let key = self.key(py, values, named)?;
        if let Some(child) = children.get_item(&key)? {
            return Ok(child);
        }
        let texts: Vec<String> = key.extract::<Vec<String>>()?;
        let child = make(self.family.with_values(&texts).keep())?;
        // Another thread may have made one meanwhile: all get the first.
        let first = children.call_method1("setdefault", (key, child))?;
        Ok(first)
    }

    /// Removes a child with its series; an error if there is none.
    pub(crate) fn remove<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyTuple>,
    ) -> PyResult<()> {
        let key = self.key(py, values, None)?;
        let texts: Vec<String> = key.extract()?;
        let children = self.children.bind(py);
        let was_here = children.call_method1("pop", (key, py.None()))?;
        if !self.family.remove_values(&texts) && was_here.is_none() {
            return Err(pyo3::exceptions::PyKeyError::new_err(texts));
        }
        Ok(())
    }

    pub(crate) fn clear(&self, py: Python<'_>) {
        self.children.bind(py).clear();
        self.family.remove_matching(&[]);
    }

    /// The label values as texts, in the order of the names.
    fn key<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let found = || match named {
            Some(named) => format!("{} by position and {} by name", values.len(), named.len()),
            None => format!("{}", values.len()),
        };
        let wrong = || {
            let (names, found) = (&self.names, found());
            PyValueError::new_err(format!("labels takes values of {names:?}, not {found}"))
        };
        if self.names.is_empty() {
            return Err(PyValueError::new_err("this metric was made without labelnames"));
        }
        let texts: Vec<Bound<'py, PyString>> = match named {
            Some(named) => {
                if !values.is_empty() || named.len() != self.names.len() {
                    return Err(wrong());
                }
                let value = |name| named.get_item(name)?.ok_or_else(wrong)?.str();
                self.names.iter().map(value).collect::<PyResult<_>>()?
            }
            None if values.len() != self.names.len() => return Err(wrong()),
            None => values.iter().map(|value| value.str()).collect::<PyResult<_>>()?,
        };
        PyTuple::new(py, texts)
    }
}

impl<M: Metric + Clone> Parts<M> {
    pub(crate) fn of_child(metric: M) -> Self {
        const { assert!(align_of::<Self>() <= 16) };
        Self { children: None, metric: Some(Box::new(metric)) }
    }

    pub(crate) fn children(&self) -> PyResult<&Children<M>> {
        self.children
            .as_deref()
            .ok_or_else(|| PyValueError::new_err("this metric has its label values already"))
    }

    /// The metric; an error if its label values are missing.
    #[inline(always)]
    pub(crate) fn metric(&self) -> PyResult<&M> {
        self.metric.as_deref().ok_or_else(|| self.without_labels())
    }

    #[cold]
    fn without_labels(&self) -> PyErr {
        let names = self.children.as_ref().map(|children| &children.names);
        PyTypeError::new_err(format!("this metric needs label values: call labels with {names:?}"))
    }
}
