//! The kinds of metrics.

use std::time::UNIX_EPOCH;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use talea::{Combine, FloatCounter, FloatGauge, Floats, Opts};

use crate::blocks::{CountedExceptions, InProgress, Timer};
use crate::family::{Children, Parts};
use crate::region::{Region, full_name};

/// Defines a class: the options of its own with their defaults, how they change the family's, and its
/// own methods beside those of all.
macro_rules! class {
    (
        $name:ident of $metric:ty,
        options($($option:ident: $type:ty = $default:tt),*) $opts:ident => $with:expr;
        $($methods:tt)*
    ) => {
        #[pyclass(frozen, subclass, module = "talea")]
        pub(crate) struct $name(Parts<$metric>);

        #[pymethods]
        impl $name {
            #[new]
            #[pyo3(signature = (
                name, documentation, labelnames=Vec::new(), namespace="", subsystem="", unit="",
                registry=None, $($option=$default,)* *, limit=20_000
            ))]
            #[allow(clippy::too_many_arguments)]
            fn new(
                py: Python<'_>,
                name: &str,
                documentation: &str,
                labelnames: Vec<String>,
                namespace: &str,
                subsystem: &str,
                unit: &str,
                registry: Option<Py<Region>>,
                $($option: $type,)*
                limit: u64,
            ) -> PyResult<Self> {
                let full_name = full_name(namespace, subsystem, name, unit);
                let $opts = Opts::new(&full_name, documentation).lenient_names(true).limit(limit);
                let region = Region::or_default(py, registry)?;
                let registered = region.get().registry.family($with, &labelnames);
                let family = registered.map_err(|e| PyValueError::new_err(e.to_string()))?;
                Ok(Self(Children::parts(py, family, labelnames)))
            }

            /// The series of these label values, made at the first time.
            #[pyo3(signature = (*labelvalues, **labelkwargs))]
            fn labels<'py>(
                slf: &Bound<'py, Self>,
                labelvalues: &Bound<'py, PyTuple>,
                labelkwargs: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let py = slf.py();
                let make = |metric| Ok(Bound::new(py, Self(Parts::of_child(metric)))?.into_any());
                slf.get().0.children()?.child(py, labelvalues, labelkwargs, make)
            }

            /// Removes the series of these label values, in all processes.
            #[pyo3(signature = (*labelvalues))]
            fn remove(&self, py: Python<'_>, labelvalues: &Bound<'_, PyTuple>) -> PyResult<()> {
                self.0.children()?.remove(py, labelvalues)
            }

            /// Removes all series, in all processes.
            fn clear(&self, py: Python<'_>) -> PyResult<()> {
                self.0.children()?.clear(py);
                Ok(())
            }

            $($methods)*
        }
    };
}

class! {
    Counter of FloatCounter,
    options() opts => opts;

    /// Adds an amount: finite, and not negative.
    #[pyo3(signature = (amount=1.0))]
    fn inc(&self, amount: f64) -> PyResult<()> {
        if !(0.0..f64::INFINITY).contains(&amount) {
            let message = format!("a counter takes finite amounts that are not negative, not {amount}");
            return Err(PyValueError::new_err(message));
        }
        self.0.metric()?.add(amount);
        Ok(())
    }

    /// Counts the exceptions of this type, by default of any, that leave a block or a function.
    #[pyo3(signature = (exception=None))]
    fn count_exceptions(&self, exception: Option<Py<PyAny>>) -> PyResult<CountedExceptions> {
        Ok(CountedExceptions { counter: self.0.metric()?.clone(), exception })
    }
}

class! {
    Gauge of FloatGauge,
    options(multiprocess_mode: &str = "mostrecent") opts => opts.combine(combine(multiprocess_mode)?);

    #[pyo3(signature = (amount=1.0))]
    fn inc(&self, amount: f64) -> PyResult<()> {
        self.0.metric()?.add(amount);
        Ok(())
    }

    #[pyo3(signature = (amount=1.0))]
    fn dec(&self, amount: f64) -> PyResult<()> {
        self.0.metric()?.add(-amount);
        Ok(())
    }

    fn set(&self, value: f64) -> PyResult<()> {
        self.0.metric()?.set(value);
        Ok(())
    }

    /// Sets the seconds since 1970.
    fn set_to_current_time(&self) -> PyResult<()> {
        let now = UNIX_EPOCH.elapsed().unwrap_or_default();
        self.0.metric()?.set(now.as_secs_f64());
        Ok(())
    }

    /// Sets the duration of a block or a function, in seconds.
    fn time(&self) -> PyResult<Timer> {
        let gauge = self.0.metric()?.clone();
        Ok(Timer::new(move |seconds| gauge.set(seconds)))
    }

    /// Adds one while a block or a function runs.
    fn track_inprogress(&self) -> PyResult<InProgress> {
        Ok(InProgress { gauge: self.0.metric()?.clone() })
    }
}

class! {
    Histogram of talea::Histogram<Floats>,
    options(buckets: Option<Vec<f64>> = None) opts => match &buckets {
        // The official client takes the last one with or without.
        Some(buckets) => opts.buckets(buckets.strip_suffix(&[f64::INFINITY]).unwrap_or(buckets)),
        None => opts.buckets(&BUCKETS),
    };

    fn observe(&self, amount: f64) -> PyResult<()> {
        self.0.metric()?.observe(amount);
        Ok(())
    }

    /// Observes the duration of a block or a function, in seconds.
    fn time(&self) -> PyResult<Timer> {
        let histogram = self.0.metric()?.clone();
        Ok(Timer::new(move |seconds| histogram.observe(seconds)))
    }
}

class! {
    Summary of talea::Summary<Floats>,
    options(quantiles: Option<Vec<f64>> = None) opts => opts.quantiles(quantiles.as_deref().unwrap_or_default());

    fn observe(&self, amount: f64) -> PyResult<()> {
        self.0.metric()?.observe(amount);
        Ok(())
    }

    /// Observes the duration of a block or a function, in seconds.
    fn time(&self) -> PyResult<Timer> {
        let summary = self.0.metric()?.clone();
        Ok(Timer::new(move |seconds| summary.observe(seconds)))
    }
}

/// Those that the official client has by default.
const BUCKETS: [f64; 14] =
    [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

/// The modes of `multiprocess_mode` that a region has.
fn combine(mode: &str) -> PyResult<Combine> {
    Ok(match mode {
        "mostrecent" => Combine::Latest,
        "livesum" => Combine::Sum,
        "livemax" => Combine::Max,
        "livemin" => Combine::Min,
        "liveall" => Combine::Each,
        _ => {
            let message = format!(
                "multiprocess_mode is {mode:?}; expected mostrecent, livesum, livemax, livemin or liveall"
            );
            return Err(PyValueError::new_err(message));
        }
    })
}
