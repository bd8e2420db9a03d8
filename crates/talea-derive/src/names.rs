//! Names that are checked while compiling, with errors that point at the field.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::{Error, Ident, Result};

use crate::attributes::LabelField;

/// OpenMetrics reserves names with one underscore, Prometheus those with two.
const RESERVED: &str = "what begins with '_' is reserved; begin with a letter";

/// A label's name: the field's, or what it is renamed to.
pub(crate) fn label(ident: &Ident, said: &LabelField) -> Result<String> {
    let (name, span) = match &said.rename {
        Some(text) => (text.value(), text.span()),
        None => (ident.unraw().to_string(), ident.span()),
    };
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let fault = if !is_name(&name, valid) {
        "expected ASCII letters, digits and '_', and no digit first"
    } else if name.starts_with('_') {
        RESERVED
    } else if name == "le" || name == "quantile" {
        "histograms and summaries write that label themselves"
    } else {
        return Ok(name);
    };
    Err(Error::new(
        span,
        format!("`{ident}`: found the label name `{name}`; {fault}; use #[label(rename = \"…\")]"),
    ))
}

/// Checks a metric's name, before what its type adds.
pub(crate) fn check_metric(field: &Ident, name: &str, span: Span) -> Result<()> {
    let reserved = ["_bucket", "_count", "_sum", "_created", "_info"];
    let fault = if let Some(fault) = fault_in_beginning(name) {
        fault.to_owned()
    } else if let Some(ending) = reserved.iter().find(|ending| name.ends_with(**ending)) {
        format!("the ending `{ending}` is reserved for samples that other metric types make")
    } else {
        return Ok(());
    };
    Err(Error::new(
        span,
        format!("`{field}`: found the metric name `{name}`; {fault}; use #[metric(name = \"…\")]"),
    ))
}

/// Checks what stands before the names of a set.
pub(crate) fn check_prefix(prefix: &str, span: Span) -> Result<()> {
    match fault_in_beginning(prefix) {
        Some(fault) => Err(Error::new(
            span,
            format!(
                "found the prefix `{prefix}`; {fault}; use another one, or `name` on each field"
            ),
        )),
        None => Ok(()),
    }
}

fn fault_in_beginning(name: &str) -> Option<&'static str> {
    if !is_name(name, |c| c.is_ascii_alphanumeric() || c == '_' || c == ':') {
        Some("expected ASCII letters, digits, '_' and ':', and no digit first")
    } else if name.starts_with('_') {
        Some(RESERVED)
    } else {
        None
    }
}

fn is_name(name: &str, valid: impl Fn(char) -> bool) -> bool {
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(valid)
}
