//! The kinds of metrics.

use std::time::{Duration, UNIX_EPOCH};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use talea::{
    Bucketing, Combine, DynamicLabels, DynamicStateSet, ExemplarError, Family, FloatCounter,
    FloatGauge, Floats, Metric, Opts,
};

use crate::blocks::{CountedExceptions, InProgress, Timer};
use crate::callable;
use crate::family::{Defined, Parts, no_such_state};
use crate::region::{PRIVATE_LEN, Region, help, with_room};

/// The registry that a metric is asked to be in.
enum Wanted<'py> {
    Default,
    None,
    Registry(Bound<'py, PyAny>),
}

impl<'py> FromPyObject<'_, 'py> for Wanted<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(if object.is_none() { Self::None } else { Self::Registry(object.to_owned()) })
    }
}

impl<'py> Wanted<'py> {
    fn registry(self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(match self {
            Self::Default => {
                Some(callable::import(py, "talea_metrics.registry")?.getattr("REGISTRY")?)
            }
            Self::None => None,
            Self::Registry(registry) => Some(registry),
        })
    }
}

/// The region of a registry for a metric. A registry that is not Talea's has none; it calls the metric's
/// `collect`, and the metric has memory of its own.
fn region_of(
    py: Python<'_>,
    registry: Option<&Bound<'_, PyAny>>,
    kind: &str,
    name: &str,
) -> PyResult<Py<Region>> {
    match registry {
        Some(registry) if registry.hasattr("_region_for")? => {
            Ok(callable::call_method(registry, "_region_for", (kind, name))?.extract()?)
        }
        _ => {
            let registries = callable::import(py, "talea_metrics.registry")?;
            let of_none = callable::call_method(&registries, "region_of_none", (PRIVATE_LEN,))?;
            Ok(of_none.extract()?)
        }
    }
}

fn registered<M: Metric + Send + Sync + 'static>(
    py: Python<'_>,
    region: Py<Region>,
    opts: Opts<'_>,
    labelnames: &[String],
) -> PyResult<(Py<Region>, Family<DynamicLabels, M>)> {
    let (region, family) =
        with_room(py, region, 1, |region| region.registry.family(opts, labelnames))?;
    let kept = family.clone();
    region.get().note(
        || format!("{labelnames:?} {opts:?}"),
        || {
            Box::new(move || {
                kept.remove_matching(&[]);
                // The series of those beyond the limit stays.
                kept.dropped() == 0
            })
        },
    );
    Ok((region, family))
}

/// The name of a family: namespace, subsystem, name and unit, joined by `_`. A unit that the name ends
/// with is not repeated.
fn full_name(
    kind: &str,
    name: &str,
    namespace: &str,
    subsystem: &str,
    unit: &str,
) -> PyResult<String> {
    if name.is_empty() {
        return Err(PyValueError::new_err("a metric's name is empty; name what is measured"));
    }
    let parts = [namespace, subsystem, name];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let mut full = parts.join("_");
    if kind == "counter" && full.ends_with("_total") {
        full.truncate(full.len() - "_total".len());
    }
    if !unit.is_empty() {
        if kind == "stateset" {
            let message = format!("the enum {full} cannot have a unit, and {unit:?} was given");
            return Err(PyValueError::new_err(message));
        }
        if !full.ends_with(&format!("_{unit}")) {
            full = format!("{full}_{unit}");
        }
    }
    Ok(full)
}

/// Defines a class: the options of its own with their defaults, how they change the family's, what becomes of
/// a series as it begins, and its own methods beside those of all.
macro_rules! class {
    (
        $name:ident of $metric:ty, $kind:literal,
        options($($option:ident: $type:ty = $default:expr),*) $opts:ident => $with:expr,
        states $states:expr, begin $begin:expr, bounds $bounds:expr;
        $($methods:tt)*
    ) => {
        #[pyclass(frozen, subclass, dict, weakref, module = "talea_metrics.metrics")]
        #[derive(Default)]
        pub(crate) struct $name(Parts<$metric>);

        #[pymethods]
        impl $name {
            #[classattr]
            #[pyo3(name = "_type")]
            const KIND: &'static str = $kind;

            #[new]
            #[pyo3(signature = (*_args, **_kwargs))]
            fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
                Self::default()
            }

            #[pyo3(signature = (
                name, documentation, labelnames=None, namespace="", subsystem="", unit="",
                registry=Wanted::Default, $($option=$default,)* *, limit=20_000
            ))]
            #[allow(clippy::too_many_arguments)]
            fn __init__(
                slf: &Bound<'_, Self>,
                name: &str,
                documentation: &str,
                labelnames: Option<Bound<'_, PyAny>>,
                namespace: &str,
                subsystem: &str,
                unit: &str,
                registry: Wanted<'_>,
                $($option: $type,)*
                limit: u64,
            ) -> PyResult<()> {
                let py = slf.py();
                let name = full_name($kind, name, namespace, subsystem, unit)?;
                let labelnames = match labelnames {
                    Some(names) => names.try_iter()?.map(|name| name?.extract()).collect(),
                    None => Ok(Vec::new()),
                };
                let labelnames: Vec<String> = labelnames?;
                let validation = callable::import(py, "talea_metrics.validation")?;
                callable::call_method(&validation, "check_names", (&name, &labelnames))?;
                let states: Vec<String> = $states?;
                let states_of_opts: Vec<&str> = states.iter().map(String::as_str).collect();
                let $opts = Opts::new(&name, help(documentation)).lenient_names(true).utf8_names(true);
                let $opts = $opts.limit(limit).states(&states_of_opts);
                let $opts = match labelnames.is_empty() {
                    // Its one series stays, so that readers add those of a changed help.
                    true => $opts.expires_after(None),
                    false => $opts,
                };
                let opts = $with;
                let registry = registry.registry(py)?;
                let region = region_of(py, registry.as_ref(), $kind, &name)?;
                let (region, family) = registered(py, region, opts, &labelnames)?;
                let (documentation, unit) = (documentation.to_owned(), unit.to_owned());
                let kind = $kind;
                slf.get().0.define(
                    py,
                    region,
                    Defined {
                        family,
                        kind,
                        name,
                        documentation,
                        unit,
                        labelnames,
                        states,
                        upper_bounds: $bounds,
                        hold: |child| child.cast::<Self>().ok()?.get().0.hold(),
                    },
                )?;
                if let Ok(series) = slf.get().0.series() {
                    ($begin)(series);
                }
                if let Some(registry) = registry {
                    callable::call_method(&registry, "register", (slf,))?;
                }
                Ok(())
            }

            /// The series of these label values, made at the first time.
            #[pyo3(signature = (*labelvalues, **labelkwargs))]
            fn labels<'py>(
                slf: &Bound<'py, Self>,
                labelvalues: &Bound<'py, PyTuple>,
                labelkwargs: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let py = slf.py();
                slf.get().0.child(py, labelvalues, labelkwargs, $begin, |parts| Ok(Bound::new(py, Self(parts))?.into_any()))
            }

            /// Removes the series of these label values, in all processes.
            #[pyo3(signature = (*labelvalues))]
            fn remove(&self, py: Python<'_>, labelvalues: &Bound<'_, PyTuple>) -> PyResult<()> {
                self.0.remove(py, labelvalues)
            }

            /// Removes all series that have these labels among others, in all processes.
            fn remove_by_labels(&self, py: Python<'_>, labels: &Bound<'_, PyDict>) -> PyResult<()> {
                self.0.remove_by_labels(py, labels)
            }

            /// Removes all series, in all processes.
            fn clear(&self, py: Python<'_>) -> PyResult<()> {
                self.0.clear(py)
            }

            /// The metric without samples.
            fn describe<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
                callable::call_method(&callable::import(slf.py(), "talea_metrics.metrics")?, "_describe", (slf,))
            }

            /// The metric with its samples.
            fn collect<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
                callable::call_method(&callable::import(slf.py(), "talea_metrics.metrics")?, "_collect", (slf,))
            }

            fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                let class = slf.get_type();
                let (module, class) = (class.module()?, class.qualname()?);
                Ok(format!("{module}.{class}({})", slf.get().0.defined()?.name))
            }

            fn __str__(&self) -> PyResult<String> {
                let defined = self.0.defined()?;
                Ok(format!("{}:{}", defined.kind, defined.name))
            }

            #[getter]
            fn _name(&self) -> PyResult<&str> {
                Ok(&self.0.defined()?.name)
            }

            #[getter]
            fn _documentation(&self) -> PyResult<&str> {
                Ok(&self.0.defined()?.documentation)
            }

            #[getter]
            fn _unit(&self) -> PyResult<&str> {
                Ok(&self.0.defined()?.unit)
            }

            #[getter]
            fn _labelnames<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
                PyTuple::new(py, &self.0.defined()?.labelnames)
            }

            #[getter]
            fn _labelvalues<'py>(&self, py: Python<'py>) -> Bound<'py, PyTuple> {
                self.0.labelvalues(py)
            }

            #[getter]
            fn _metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                Ok(self.0.children(py)?.clone())
            }

            #[getter]
            fn _region(&self, py: Python<'_>) -> PyResult<Py<Region>> {
                Ok(self.0.region()?.clone_ref(py))
            }

            fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
                self.0.traverse(&visit)
            }

            $($methods)*
        }
    };
}

class! {
    Counter of FloatCounter, "counter",
    options() opts => opts,
    states Ok::<_, PyErr>(Vec::new()), begin |_| (), bounds Vec::new();

    /// Adds an amount: finite, and not negative.
    #[pyo3(signature = (amount=1.0, exemplar=None))]
    fn inc(&self, amount: f64, exemplar: Option<Bound<'_, PyDict>>) -> PyResult<()> {
        let series = self.0.series()?;
        if !(0.0..f64::INFINITY).contains(&amount) {
            return Err(no_amount(amount));
        }
        match exemplar {
            None => series.add(amount),
            Some(of) => with_exemplar(&of, |labels| series.add_with_exemplar(amount, labels))?,
        }
        Ok(())
    }

    /// Counts from 0 again, in all processes.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.0.reset(py)
    }

    /// Counts the exceptions of this type, by default of any, that leave a block or a function.
    #[pyo3(signature = (exception=None))]
    fn count_exceptions(
        &self,
        py: Python<'_>,
        exception: Option<Py<PyAny>>,
    ) -> PyResult<CountedExceptions> {
        let counter = self.0.held()?;
        Ok(CountedExceptions { counter, exception, _region: self.0.region()?.clone_ref(py) })
    }

    #[getter]
    fn _value(&self) -> PyResult<CurrentValue> {
        Ok(CurrentValue(self.0.series()?.get()))
    }
}

class! {
    Gauge of FloatGauge, "gauge",
    options(multiprocess_mode: &str = "mostrecent") opts => opts.combine(combine(multiprocess_mode)?),
    states Ok::<_, PyErr>(Vec::new()), begin |_| (), bounds Vec::new();

    #[pyo3(signature = (amount=1.0))]
    fn inc(&self, amount: f64) -> PyResult<()> {
        self.0.series()?.add(amount);
        Ok(())
    }

    #[pyo3(signature = (amount=1.0))]
    fn dec(&self, amount: f64) -> PyResult<()> {
        self.0.series()?.add(-amount);
        Ok(())
    }

    fn set(&self, value: f64) -> PyResult<()> {
        self.0.series()?.set(value);
        Ok(())
    }

    /// Sets the seconds since 1970.
    fn set_to_current_time(&self) -> PyResult<()> {
        let now = UNIX_EPOCH.elapsed().unwrap_or_default();
        self.0.series()?.set(now.as_secs_f64());
        Ok(())
    }

    /// Takes the value from a function whenever this process shows the registry.
    fn set_function(&self, py: Python<'_>, f: Py<PyAny>) -> PyResult<()> {
        let series = self.0.held()?;
        if !f.bind(py).is_callable() {
            return Err(PyValueError::new_err("set_function takes a function that returns a number"));
        }
        self.0.region()?.get().set_function(self.0.identity(py)?, series, f);
        Ok(())
    }

    /// Sets the duration of a block or a function, in seconds.
    fn time(slf: &Bound<'_, Self>) -> Timer {
        Timer::new(slf.as_any(), |gauge, seconds| {
            gauge.call_method1(intern!(gauge.py(), "set"), (seconds,)).map(drop)
        })
    }

    /// Adds one while a block or a function runs.
    fn track_inprogress(&self, py: Python<'_>) -> PyResult<InProgress> {
        let (gauge, _region) = (self.0.held()?, self.0.region()?.clone_ref(py));
        Ok(InProgress { gauge, open: Default::default(), _region })
    }

    #[getter]
    fn _value(&self) -> PyResult<CurrentValue> {
        Ok(CurrentValue(self.0.series()?.get()))
    }
}

class! {
    Histogram of talea::Histogram<Floats>, "histogram",
    options(
        buckets: Buckets = Buckets::default(), native: bool = false,
        quantiles: Option<Vec<f64>> = None, window: f64 = WINDOW
    ) opts => {
        // Quantiles are read from native buckets.
        let native = native || quantiles.is_some();
        let opts = opts.bucketing(if native { Bucketing::Dual } else { Bucketing::Classic });
        let opts = match &quantiles {
            Some(quantiles) => opts.quantiles(quantiles).window(seconds(window)?),
            None => opts,
        };
        opts.buckets(buckets.0.strip_suffix(&[f64::INFINITY]).unwrap_or(&buckets.0))
    },
    states Ok::<_, PyErr>(Vec::new()), begin |_| (), bounds buckets.0;

    #[pyo3(signature = (amount, exemplar=None))]
    fn observe(&self, amount: f64, exemplar: Option<Bound<'_, PyDict>>) -> PyResult<()> {
        let series = self.0.series()?;
        match exemplar {
            None => series.observe(amount),
            Some(of) => with_exemplar(&of, |labels| series.observe_with_exemplar(amount, labels))?,
        }
        Ok(())
    }

    /// Observes the duration of a block or a function, in seconds.
    fn time(slf: &Bound<'_, Self>) -> Timer {
        Timer::new(slf.as_any(), observe_seconds)
    }

    #[classattr]
    #[pyo3(name = "DEFAULT_BUCKETS")]
    fn default_buckets(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        PyTuple::new(py, Buckets::default().0)
    }

    #[getter]
    fn _upper_bounds(&self) -> PyResult<Vec<f64>> {
        Ok(self.0.defined()?.upper_bounds.clone())
    }
}

class! {
    Summary of talea::Summary<Floats>, "summary",
    options(quantiles: Option<Vec<f64>> = None, window: f64 = WINDOW) opts => {
        opts.quantiles(quantiles.as_deref().unwrap_or_default()).window(seconds(window)?)
    },
    states Ok::<_, PyErr>(Vec::new()), begin |_| (), bounds Vec::new();

    fn observe(&self, amount: f64) -> PyResult<()> {
        self.0.series()?.observe(amount);
        Ok(())
    }

    /// Observes the duration of a block or a function, in seconds.
    fn time(slf: &Bound<'_, Self>) -> Timer {
        Timer::new(slf.as_any(), observe_seconds)
    }
}

class! {
    Enum of DynamicStateSet, "stateset",
    options(states: Option<Vec<String>> = None) opts => opts,
    states states.ok_or_else(|| PyValueError::new_err("an Enum needs its states: states=[…]")),
    begin |series: &DynamicStateSet| series.set_first(0), bounds Vec::new();

    /// Sets the state, one of the states of the definition.
    fn state(&self, state: &str) -> PyResult<()> {
        let series = self.0.series()?;
        let states = &self.0.defined()?.states;
        let at = states.iter().position(|known| known == state);
        series.set(at.ok_or_else(|| no_such_state(state, states))?);
        Ok(())
    }

    #[getter]
    fn _states(&self) -> PyResult<Vec<String>> {
        Ok(self.0.defined()?.states.clone())
    }
}

/// Observes a duration. A class that is derived from these may have a method of its own.
fn observe_seconds(metric: &Bound<'_, PyAny>, seconds: f64) -> PyResult<()> {
    match metric.cast_exact::<Histogram>() {
        Ok(histogram) => histogram.get().observe(seconds, None),
        Err(_) => metric.call_method1(intern!(metric.py(), "observe"), (seconds,)).map(drop),
    }
}

/// The window of quantiles by default, in seconds.
const WINDOW: f64 = 600.0;

fn seconds(window: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(window).map_err(|_| {
        PyValueError::new_err(format!("window is {window:?}; expected seconds, 1 or more"))
    })
}

/// A value that was read.
#[pyclass(frozen, module = "talea_metrics._talea")]
pub(crate) struct CurrentValue(f64);

#[pymethods]
impl CurrentValue {
    fn get(&self) -> f64 {
        self.0
    }
}

#[cold]
fn no_amount(amount: f64) -> PyErr {
    PyValueError::new_err(format!(
        "a counter takes finite amounts that are not negative, not {amount}"
    ))
}

/// Hands the labels of an exemplar to `keep`.
#[cold]
fn with_exemplar(
    exemplar: &Bound<'_, PyDict>,
    keep: impl FnOnce(&[(&str, &str)]) -> Result<(), ExemplarError>,
) -> PyResult<()> {
    let labels: Vec<(String, String)> = exemplar
        .iter()
        .map(|(name, value)| Ok((name.extract()?, value.extract()?)))
        .collect::<PyResult<_>>()?;
    let labels: Vec<(&str, &str)> = labels.iter().map(|(n, v)| (&**n, &**v)).collect();
    keep(&labels).map_err(|error| match error {
        ExemplarError::Overflow(_) => PyRuntimeError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    })
}

/// Thresholds, the last of them +Inf: given as numbers or texts of numbers, with that one or without.
struct Buckets(Vec<f64>);

impl<'py> FromPyObject<'_, 'py> for Buckets {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let float = object.py().get_type::<pyo3::types::PyFloat>();
        let mut thresholds: Vec<f64> = object
            .try_iter()?
            .map(|one| float.call1((one?,))?.extract())
            .collect::<PyResult<_>>()?;
        if thresholds.last() != Some(&f64::INFINITY) {
            thresholds.push(f64::INFINITY);
        }
        if thresholds.len() < 2 {
            return Err(PyValueError::new_err("buckets needs a threshold that is not +Inf"));
        }
        Ok(Self(thresholds))
    }
}

/// Those that the official client has by default.
impl Default for Buckets {
    fn default() -> Self {
        let mut thresholds =
            vec![0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
        thresholds.push(f64::INFINITY);
        Self(thresholds)
    }
}

/// How the values of processes become one, for the modes of the official client. Those for all processes
/// and for living ones are the same here: the value of a process ends with it, but for the most recent.
fn combine(mode: &str) -> PyResult<Combine> {
    Ok(match mode {
        "mostrecent" | "livemostrecent" => Combine::Latest,
        "sum" | "livesum" => Combine::Sum,
        "max" | "livemax" => Combine::Max,
        "min" | "livemin" => Combine::Min,
        "all" | "liveall" => Combine::Each,
        _ => {
            let message = format!(
                "multiprocess_mode is {mode:?}; expected mostrecent, livemostrecent, sum, livesum, max, \
                 livemax, min, livemin, all or liveall"
            );
            return Err(PyValueError::new_err(message));
        }
    })
}
