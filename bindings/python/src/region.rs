//! Registries, and the names in them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;
use talea::{Config, Format, Registry};
use talea_parse::Sample;

// Python aligns its objects to no more.
const _: () = assert!(align_of::<Region>() <= 16);

/// An open region, and the metrics in it.
#[pyclass(frozen, name = "CollectorRegistry", module = "talea")]
pub(crate) struct Region {
    pub(crate) registry: Registry,
}

impl Region {
    /// This one, or else the process's default, which is opened at the first time.
    pub(crate) fn or_default(py: Python<'_>, region: Option<Py<Self>>) -> PyResult<Py<Self>> {
        static DEFAULT: PyOnceLock<Py<Region>> = PyOnceLock::new();
        match region {
            Some(region) => Ok(region),
            None => {
                let default = DEFAULT.get_or_try_init(py, || Py::new(py, Self::from_env()?));
                default.map(|default| default.clone_ref(py))
            }
        }
    }

    /// Opens the file that `TALEA_REGION` names; without it, memory that this process shares with
    /// those that it forks.
    fn from_env() -> PyResult<Self> {
        let opened = Registry::from_env();
        opened.map(|registry| Self { registry }).map_err(|e| PyOSError::new_err(e.to_string()))
    }
}

/// The name of a family: namespace, subsystem, name and unit, joined by `_`. A unit that the name ends
/// with is not repeated.
pub(crate) fn full_name(namespace: &str, subsystem: &str, name: &str, unit: &str) -> String {
    let base = name.strip_suffix("_total").unwrap_or(name);
    let unit = if base.ends_with(&format!("_{unit}")) { "" } else { unit };
    let parts = [namespace, subsystem, base, unit];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("_")
}

#[pymethods]
impl Region {
    /// Opens the file of this path, or memory that this process shares with those that it forks.
    #[new]
    #[pyo3(signature = (path=None, size=None))]
    fn new(path: Option<PathBuf>, size: Option<u64>) -> PyResult<Self> {
        let config = size.map_or_else(Config::default, Config::with_len);
        let opened = match path {
            Some(path) => Registry::open_with(path, config),
            None => Registry::with_config(config),
        };
        opened.map(|registry| Self { registry }).map_err(|e| PyOSError::new_err(e.to_string()))
    }

    /// The default registry.
    #[staticmethod]
    fn _default(py: Python<'_>) -> PyResult<Py<Self>> {
        Self::or_default(py, None)
    }

    /// A page in the format that an `Accept` header asks for, and its `Content-Type`.
    fn _render<'py>(&self, py: Python<'py>, accept: &str) -> (Bound<'py, PyBytes>, String) {
        let (format, escaping) = Format::negotiate(accept);
        let mut scraper = self.registry.scraper();
        scraper.format(format, escaping);
        (PyBytes::new(py, scraper.scrape()), format.content_type(escaping))
    }

    /// The value of a sample of the page, if there is one. Labels are compared as texts, but `le` and
    /// `quantile` as numbers.
    #[pyo3(signature = (name, labels=None))]
    fn get_sample_value(
        &self,
        name: &str,
        labels: Option<BTreeMap<String, String>>,
    ) -> PyResult<Option<f64>> {
        let labels = labels.unwrap_or_default();
        let mut scraper = self.registry.scraper();
        let page = String::from_utf8_lossy(scraper.scrape());
        let samples = talea_parse::text(&page).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let is_it = |sample: &Sample| {
            let is_equal = |(key, value): &(String, String)| {
                labels.get(key).is_some_and(|wanted| is_same(key, wanted, value))
            };
            sample.name == name
                && sample.labels.len() == labels.len()
                && sample.labels.iter().all(is_equal)
        };
        Ok(samples.iter().find(|sample| is_it(sample)).map(|sample| sample.value))
    }
}

fn is_same(label: &str, one: &str, other: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    let are_numbers = matches!(label, "le" | "quantile");
    one == other || are_numbers && number(one).is_some() && number(one) == number(other)
}
