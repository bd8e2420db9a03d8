//! Open regions, and what they show.

use std::ffi::CString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyOSError, PyRuntimeWarning, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use talea::{
    Config, DynamicLabels, Error, Escaping, FloatGauge, Format, Info, Opts, Registry, Scraper,
    TEXT_CONTENT_TYPE,
};
use talea_http::Endpoints;
use talea_parse::Syntax;

use crate::held_by_object::HeldByObject;
use crate::parse;
use crate::private_region::{Emptied, PrivateRegion};
use crate::sorted_labels::sort_labels;

// Python aligns its objects to no more.
const _: () = assert!(align_of::<Region>() <= 16);

/// An open region.
#[pyclass(frozen, module = "talea_metrics._talea")]
pub(crate) struct Region {
    pub(crate) registry: Registry,
    /// None of a file.
    private: Option<PrivateRegion>,
    /// Whether the process's other code uses the registry.
    is_used_elsewhere: bool,
    /// Gauges whose values are taken from functions whenever this process shows the region.
    functions: Mutex<Vec<Function>>,
    /// The HTTP metrics in it, each with its definition: equal middlewares share them.
    endpoints: Mutex<Vec<(String, Endpoints)>>,
}

struct Function {
    /// The name of the gauge and its label values.
    of: (String, Vec<String>),
    gauge: Arc<HeldByObject<FloatGauge>>,
    function: Py<PyAny>,
}

/// Whether pages of this process are without the samples `_created`.
static HIDES_CREATED: AtomicBool = AtomicBool::new(false);

/// Leaves the samples `_created` out of this process's pages.
#[pyfunction]
pub(crate) fn disable_created_metrics() {
    HIDES_CREATED.store(true, Ordering::Relaxed);
}

/// Shows the samples `_created` in OpenMetrics again.
#[pyfunction]
pub(crate) fn enable_created_metrics() {
    HIDES_CREATED.store(false, Ordering::Relaxed);
}

/// The most memory that a metric without a registry needs, in bytes.
pub(crate) const PRIVATE_LEN: u64 = 4 << 20;

fn failed(error: impl ToString) -> PyErr {
    PyOSError::new_err(error.to_string())
}

impl Region {
    /// Memory of this process and those that it forks, for a metric that is in no registry.
    pub(crate) fn private() -> PyResult<Self> {
        Self::in_memory(Some(PRIVATE_LEN))
    }

    fn in_memory(size: Option<u64>) -> PyResult<Self> {
        let (registry, private) = PrivateRegion::open(size).map_err(failed)?;
        Ok(Self::of(registry, Some(private)))
    }

    fn in_file(registry: Result<Registry, impl ToString>) -> PyResult<Self> {
        Ok(Self::of(registry.map_err(failed)?, None))
    }

    fn of(registry: Registry, private: Option<PrivateRegion>) -> Self {
        let (is_used_elsewhere, functions, endpoints) = Default::default();
        Self { registry, private, is_used_elsewhere, functions, endpoints }
    }

    /// Notes that a family of this definition is in the region, and how its series are removed.
    pub(crate) fn note(
        &self,
        definition: impl FnOnce() -> String,
        emptied: impl FnOnce() -> Emptied,
    ) {
        if let Some(private) = &self.private {
            private.note(&definition(), emptied);
        }
    }

    /// The HTTP metrics of a definition, registered if they are new.
    pub(crate) fn endpoints(
        &self,
        definition: &str,
        register: impl FnOnce(&Registry) -> Result<Endpoints, Error>,
    ) -> Result<Endpoints, Error> {
        let mut all = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = all.iter().find(|(known, _)| known == definition) {
            return Ok(*known);
        }
        let endpoints = register(&self.registry)?;
        all.push((definition.to_owned(), endpoints));
        // Their handles stay, so a region in memory cannot be used again.
        self.note(|| definition.to_owned(), || Box::new(|| false));
        Ok(endpoints)
    }

    /// Sets a gauge from a function whenever the region is shown, in place of an earlier function.
    pub(crate) fn set_function(
        &self,
        of: (String, Vec<String>),
        gauge: HeldByObject<FloatGauge>,
        function: Py<PyAny>,
    ) {
        let gauge = Arc::new(gauge);
        self.forget_functions(&of.0, Some(&of.1));
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        functions.push(Function { of, gauge, function });
    }

    /// Calls no functions any more for a gauge of this name: for one series, or for all.
    pub(crate) fn forget_functions(&self, name: &str, labelvalues: Option<&[String]>) {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        let (forgotten, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut *functions)
            .into_iter()
            .partition(|f| f.of.0 == name && labelvalues.is_none_or(|of| f.of.1 == of));
        *functions = kept;
        // Without the lock: the last reference to a function may run any code.
        drop(functions);
        drop(forgotten);
    }

    fn scraper(&self, format: Format, escaping: Escaping) -> Scraper {
        let mut scraper = self.registry.scraper();
        scraper.format(format, escaping);
        scraper.write_decimals();
        if HIDES_CREATED.load(Ordering::Relaxed) {
            scraper.hide_created();
        } else {
            scraper.show_created();
        }
        scraper
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // First what has series stay.
        self.functions.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        match self.private.take() {
            Some(private) => private.give_back(&self.registry),
            // A file has what other processes count: one more may go.
            None if !self.is_used_elsewhere => self.registry.close(false),
            None => {}
        }
    }
}

#[pymethods]
impl Region {
    /// Opens the file of this path, or memory that this process shares with those that it forks.
    #[new]
    #[pyo3(signature = (path=None, size=None))]
    fn new(path: Option<PathBuf>, size: Option<u64>) -> PyResult<Self> {
        match path {
            Some(path) => {
                let config = size.map_or_else(Config::default, Config::with_len);
                Self::in_file(Registry::open_with(path, config))
            }
            None => Self::in_memory(size),
        }
    }

    /// Opens the file that `TALEA_REGION` names; without it, memory as `Region()`.
    #[staticmethod]
    fn from_env() -> PyResult<Self> {
        let mut region = Self::in_file(Registry::from_env())?;
        // Its thread goes on using it.
        region.is_used_elsewhere = true;
        Ok(region)
    }

    /// Whether it is memory that this process has for itself, and its children.
    fn is_of_process(&self) -> bool {
        self.private.as_ref().is_some_and(PrivateRegion::is_of_process)
    }

    /// The gauges whose values are taken from functions, each with its function. The caller is Python: a thread
    /// that runs such a function when the interpreter ends is unwound, and Rust's frames must not be among its own.
    fn functions(&self, py: Python<'_>) -> Vec<(FunctionGauge, Py<PyAny>)> {
        let functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        let copied = functions
            .iter()
            .map(|f| (FunctionGauge(Arc::clone(&f.gauge)), f.function.clone_ref(py)));
        copied.collect()
    }

    /// A page in the format that an `Accept` header asks for, and its `Content-Type`; protobuf only if
    /// `is_binary` allows it. Of families that have any of the names, or samples of that name; without
    /// names, of all.
    fn render<'py>(
        &self,
        py: Python<'py>,
        accept: &str,
        is_binary: bool,
        names: Vec<String>,
    ) -> PyResult<(Bound<'py, PyBytes>, String)> {
        let (format, escaping) = negotiated(accept, is_binary);
        let content_type = content_type(format, escaping, accept);
        let mut scraper = self.scraper(format, escaping);
        let named = (!names.is_empty()).then(|| named(&mut scraper, &names));
        let page = match &named {
            Some(page) => page,
            None => scraper.scrape(),
        };
        let page = match format {
            Format::Protobuf => PyBytes::new(py, page),
            _ => PyBytes::new(py, &sort_labels(page)),
        };
        Ok((page, content_type))
    }

    /// Families with all of their samples: those that have any of the names, or samples of that name;
    /// without names all. Each is a tuple of name, help, type, unit and samples, and a sample is a tuple
    /// of name, labels, value and exemplar.
    #[pyo3(signature = (names=None))]
    fn families<'py>(
        &self,
        py: Python<'py>,
        names: Option<Vec<String>>,
    ) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let mut scraper = self.scraper(Format::OpenMetrics, Escaping::AllowUtf8);
        let page = named(&mut scraper, &names.unwrap_or_default());
        let page = String::from_utf8_lossy(&page);
        parse::families(py, &page, Syntax::OpenMetrics)
    }

    /// Removes a family, in all processes.
    fn unregister(&self, name: &str) {
        self.registry.unregister(name);
        // It may be one of theirs.
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.forget_functions(name, None);
    }

    /// Registers an info. Returns it with the region that has it.
    fn info(
        slf: Py<Self>,
        py: Python<'_>,
        name: &str,
        documentation: &str,
        labelnames: Vec<String>,
    ) -> PyResult<(Py<Self>, InfoFamily)> {
        let opts = Opts::new(name, help(documentation)).lenient_names(true).utf8_names(true);
        let (region, info) =
            with_room(py, slf, 2, |region| region.registry.info(opts, &labelnames))?;
        let kept = info.clone();
        region.get().note(
            || format!("{labelnames:?} {opts:?}"),
            || {
                Box::new(move || {
                    kept.remove_pairs(&[""; 0]);
                    true
                })
            },
        );
        Ok((region, InfoFamily(info)))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Locked if this thread's own garbage collection begins while it holds the lock.
        let Ok(functions) = self.functions.try_lock() else { return Ok(()) };
        functions.iter().try_for_each(|f| visit.call(&f.function))
    }
}

/// Registers something in a region. If that is full, a warning says so, and a region of this process takes it:
/// an application starts nevertheless.
/// The warning is that of the caller, `stacklevel` frames of Python away.
pub(crate) fn with_room<T>(
    py: Python<'_>,
    region: Py<Region>,
    stacklevel: i32,
    register: impl Fn(&Region) -> Result<T, Error>,
) -> PyResult<(Py<Region>, T)> {
    // The advice to set an option that Rust has.
    let advice = "; or ask for `utf8_names`";
    let refused = |error: Error| PyValueError::new_err(error.to_string().replace(advice, ""));
    match register(region.get()) {
        Err(error @ Error::Full { .. }) => {
            let message = format!("{error}. Until then this process alone shows the metric");
            PyErr::warn(
                py,
                &py.get_type::<PyRuntimeWarning>(),
                &CString::new(message)?,
                stacklevel,
            )?;
            let private = Py::new(py, Region::private()?)?;
            let registered = register(private.get()).map_err(refused)?;
            Ok((private, registered))
        }
        registered => Ok((region, registered.map_err(refused)?)),
    }
}

/// The content type of the page that an `Accept` header asks for, where it may not be protobuf.
#[pyfunction]
pub(crate) fn negotiate(accept: &str) -> String {
    let (format, escaping) = negotiated(accept, false);
    content_type(format, escaping, accept)
}

/// Whether a page for a request with this `Accept-Encoding` header is compressed.
#[pyfunction]
pub(crate) fn accepts_gzip(accept: &str) -> bool {
    talea_http::accepts_gzip(accept)
}

/// As the official client names the formats: text without escaping is version 0.0.4, with it 1.0.0.
fn content_type(format: Format, escaping: Escaping, accept: &str) -> String {
    match (format, escaping) {
        (Format::OpenMetrics, _) if !asks_for_a_version_of_openmetrics(accept) => {
            "application/openmetrics-text; version=1.0.0; charset=utf-8".to_owned()
        }
        (Format::Text, Escaping::Underscores)
            if !accept
                .split(',')
                .any(|entry| entry.contains("text/plain") && entry.contains("version=1.0.0")) =>
        {
            TEXT_CONTENT_TYPE.to_owned()
        }
        (Format::Text, _) => {
            format!("text/plain; version=1.0.0; charset=utf-8; escaping={}", escaping.as_str())
        }
        _ => format.content_type(escaping),
    }
}

fn asks_for_a_version_of_openmetrics(accept: &str) -> bool {
    let mut entries = accept.split(',').map(str::to_ascii_lowercase);
    entries.any(|entry| entry.contains("openmetrics-text") && entry.contains("version"))
}

fn negotiated(accept: &str, is_binary: bool) -> (Format, Escaping) {
    let (format, escaping) = match Format::negotiate(accept) {
        // To the official client OpenMetrics without a version is 1.0.0, without escaping.
        (Format::OpenMetricsDraft, _) if !asks_for_a_version_of_openmetrics(accept) => {
            (Format::OpenMetrics, Escaping::Underscores)
        }
        negotiated => negotiated,
    };
    let is_text = is_binary || format != Format::Protobuf;
    (if is_text { format } else { Format::default() }, escaping)
}

fn named(scraper: &mut Scraper, names: &[String]) -> Vec<u8> {
    scraper.begin_named(names);
    let mut page = Vec::new();
    while scraper.write_some(&mut page, usize::MAX) {}
    page
}

/// A gauge that takes its value from a function.
#[pyclass(frozen, module = "talea_metrics._talea")]
pub(crate) struct FunctionGauge(Arc<HeldByObject<FloatGauge>>);

#[pymethods]
impl FunctionGauge {
    fn set(&self, value: f64) {
        self.0.metric.set(value);
    }
}

/// Series that are 1, with facts in their labels.
#[pyclass(frozen, module = "talea_metrics._talea")]
pub(crate) struct InfoFamily(Info<DynamicLabels>);

#[pymethods]
impl InfoFamily {
    /// Shows the series of label values before there are facts, unless a process has set them.
    fn begin(&self, labelvalues: Vec<String>) {
        self.0.begin_pairs(&labelvalues);
    }

    /// Sets the facts of label values, in place of earlier ones.
    fn set(&self, labelvalues: Vec<String>, facts: Vec<(String, String)>) {
        let facts: Vec<(&str, &str)> = facts.iter().map(|(k, v)| (&**k, &**v)).collect();
        self.0.set_pairs(&labelvalues, &facts);
    }

    /// Removes the facts of label values.
    fn remove(&self, labelvalues: Vec<String>) {
        self.0.remove_pairs(&labelvalues);
    }
}

/// A help text that is not empty, since Talea refuses those.
pub(crate) fn help(documentation: &str) -> &str {
    if documentation.trim().is_empty() { "No help." } else { documentation }
}
