//! Pages that are read, and names that are escaped.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use talea::Escaping;
use talea_parse::{FamilyRef, LabelsRef, SampleRef, Syntax};

/// The families of a page, in the form that `Region.families` has.
#[pyfunction]
pub(crate) fn parse<'py>(
    py: Python<'py>,
    page: &str,
    is_openmetrics: bool,
) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    families(py, page, if is_openmetrics { Syntax::OpenMetrics } else { Syntax::Text })
}

pub(crate) fn families<'py>(
    py: Python<'py>,
    page: &str,
    syntax: Syntax,
) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let families = talea_parse::families(page, syntax);
    let families = families.map_err(|error| PyValueError::new_err(error.to_string()))?;
    families.iter().map(|family| tuple_of_family(py, family, syntax)).collect()
}

/// A name as an escaping shows it: `underscores`, `dots`, `values` or `allow-utf-8`.
#[pyfunction]
pub(crate) fn escape_name(name: &str, escaping: &str, is_label: bool) -> PyResult<String> {
    let Some(escaping) = Escaping::from_name(escaping) else {
        return Err(PyValueError::new_err(format!(
            "the escaping is {escaping:?}; expected allow-utf-8, underscores, dots or values"
        )));
    };
    let escaped = if is_label { escaping.label(name) } else { escaping.name(name) };
    Ok(escaped.into_owned())
}

fn tuple_of_family<'py>(
    py: Python<'py>,
    family: &FamilyRef<'_>,
    syntax: Syntax,
) -> PyResult<Bound<'py, PyTuple>> {
    let samples = family.samples.iter().map(|sample| tuple_of_sample(py, sample));
    let samples = samples.collect::<PyResult<Vec<_>>>()?;
    let kind = family.kind.as_str(syntax).unwrap_or("unknown");
    let help = family.help.as_deref().unwrap_or_default();
    (&*family.name, help, kind, family.unit.unwrap_or_default(), samples).into_pyobject(py)
}

fn tuple_of_sample<'py>(py: Python<'py>, sample: &SampleRef<'_>) -> PyResult<Bound<'py, PyTuple>> {
    let labels = |labels: LabelsRef<'_>| {
        let dict = PyDict::new(py);
        labels.iter().try_for_each(|(name, value)| dict.set_item(&*name, &*value))?;
        Ok::<_, PyErr>(dict)
    };
    let exemplar = match &sample.exemplar {
        Some(exemplar) => {
            Some((labels(exemplar.labels)?, exemplar.value, exemplar.timestamp).into_pyobject(py)?)
        }
        None => None,
    };
    (&*sample.name, labels(sample.labels)?, sample.value, sample.timestamp, exemplar)
        .into_pyobject(py)
}
