//! Names that are checked while compiling, with errors that point at the field.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::{Error, Ident, Result};

use crate::attributes::LabelField;

/// A label's name: the field's, or what it is renamed to.
pub(crate) fn label(ident: &Ident, said: &LabelField) -> Result<String> {
    let (name, span) = match &said.rename {
        Some(text) => (text.value(), text.span()),
        None => (ident.unraw().to_string(), ident.span()),
    };
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let fault = if !is_name(&name, valid) {
        "consists of ASCII letters, digits and '_' and does not begin with a digit"
    } else if name.starts_with("__") {
        "does not begin with '__', which is reserved"
    } else if name == "le" || name == "quantile" {
        "is not `le` or `quantile`, which histograms and summaries write themselves"
    } else {
        return Ok(name);
    };
    Err(Error::new(
        span,
        format!(
            "`{ident}`: found the label name `{name}`; one {fault}. Use #[label(rename = \"…\")]"
        ),
    ))
}

/// Checks a metric's name, before what its type adds.
pub(crate) fn check_metric(field: &Ident, name: &str, span: Span) -> Result<()> {
    let reserved = ["_bucket", "_count", "_sum", "_created", "_info"];
    let fault = if let Some(fault) = beginning_fault(name) {
        fault.to_owned()
    } else if let Some(ending) = reserved.iter().find(|ending| name.ends_with(**ending)) {
        format!("does not end in `{ending}`, which is reserved for samples of other metric types")
    } else {
        return Ok(());
    };
    Err(Error::new(
        span,
        format!(
            "`{field}`: found the metric name `{name}`; one {fault}. Use #[metric(name = \"…\")]"
        ),
    ))
}

/// Checks what stands before the names of a set.
pub(crate) fn check_prefix(prefix: &str, span: Span) -> Result<()> {
    beginning_fault(prefix).map_or(Ok(()), |fault| {
        Err(Error::new(span, format!("found the prefix `{prefix}`; one {fault}")))
    })
}

fn beginning_fault(name: &str) -> Option<&'static str> {
    if !is_name(name, |c| c.is_ascii_alphanumeric() || c == '_' || c == ':') {
        Some("consists of ASCII letters, digits, '_' and ':' and does not begin with a digit")
    } else if name.starts_with("__") {
        Some("does not begin with '__', which is reserved")
    } else {
        None
    }
}

fn is_name(name: &str, valid: impl Fn(char) -> bool) -> bool {
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(valid)
}
