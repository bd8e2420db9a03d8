//! Pages that are read, and names that are escaped.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use talea::Escaping;
use talea_parse::{FamilyRef, Finding, LabelsRef, SampleRef, Severity, Syntax, check};

/// The families of a page, in the form that `Region.families` has. A page is refused if Prometheus
/// refuses it, or the official client's parser for the format does.
#[pyfunction]
pub(crate) fn parse<'py>(
    py: Python<'py>,
    page: &str,
    is_openmetrics: bool,
) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let syntax = if is_openmetrics { Syntax::OpenMetrics } else { Syntax::Text };
    let read = families(py, page, syntax)?;
    match check(page, syntax).into_iter().find(|finding| is_refused(finding, syntax)) {
        None => Ok(read),
        Some(Finding { line, column, found, instead, .. }) => {
            Err(PyValueError::new_err(format!("line {line}, column {column}: {found}; {instead}")))
        }
    }
}

/// Whether the official client's parser refuses a page with such a finding, or Prometheus drops it
/// though its parser reads it.
fn is_refused(finding: &Finding, syntax: Syntax) -> bool {
    match syntax {
        _ if finding.severity == Severity::Advice => false,
        Syntax::Text => matches!(
            finding.rule,
            "empty-name"
                | "label-twice"
                | "no-blank"
                | "no-comma"
                | "raw-line-feed"
                | "reserved-label"
        ),
        // The official parser enforces the specification, but for these.
        Syntax::OpenMetrics => {
            !matches!(
                finding.rule,
                "canonical-number" | "help-quote" | "reserved-name" | "series-twice"
            ) && (finding.rule != "reserved-label" || finding.found.contains(" __"))
        }
    }
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
    // In text the official client knows words, not their distance.
    let help = if syntax == Syntax::Text { help.trim_matches([' ', '\t', '\r']) } else { help };
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
