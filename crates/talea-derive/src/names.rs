//! Names that are checked while compiling, with errors that point at the field.

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Ident, LitStr, Result};

use crate::attributes::{LabelField, MetricField};

/// OpenMetrics reserves names with one underscore, Prometheus those with two.
const RESERVED: &str = "what begins with '_' is reserved; begin with a letter";

/// A label's name: the field's, or what it is renamed to.
pub(crate) fn label(ident: &Ident, said: &LabelField) -> Result<String> {
    let (name, at) = given_or(&said.rename, ident.unraw().to_string(), ident);
    let fault = if !is_name(&name, |c| c.is_ascii_alphanumeric() || c == '_') {
        "expected ASCII letters, digits and '_', and no digit first"
    } else if name.starts_with('_') {
        RESERVED
    } else if name == "le" || name == "quantile" {
        "histograms and summaries write that label themselves"
    } else {
        return Ok(name);
    };
    bail!(at, "`{ident}`: found the label name `{name}`; {fault}; use #[label(rename = \"…\")]");
}

/// A metric's name, before what its type adds: `default` or the one that is given, after the prefix of its set.
pub(crate) fn metric(
    ident: &Ident,
    said: &MetricField,
    prefix: &str,
    default: String,
) -> Result<String> {
    let (own, at) = given_or(&said.name, default, ident);
    if own.is_empty() {
        bail!(at, "`{ident}`: the metric name is empty; name what is measured");
    }
    let name = format!("{prefix}{own}");
    let reserved = ["_bucket", "_count", "_sum", "_created", "_info"];
    let fault = if let Some(fault) = fault_in_beginning(&name) {
        fault.to_owned()
    } else if let Some(ending) = reserved.iter().find(|ending| name.ends_with(**ending)) {
        format!("the ending `{ending}` is reserved for samples that other metric types make")
    } else {
        return Ok(name);
    };
    bail!(at, "`{ident}`: found the metric name `{name}`; {fault}; use #[metric(name = \"…\")]");
}

/// A name, and where it stands.
fn given_or<'a>(
    given: &'a Option<LitStr>,
    default: String,
    ident: &'a Ident,
) -> (String, &'a dyn ToTokens) {
    match given {
        Some(text) => (text.value(), text),
        None => (default, ident),
    }
}

/// Checks what stands before the names of a set.
pub(crate) fn check_prefix(literal: &LitStr) -> Result<()> {
    let prefix = literal.value();
    if let Some(fault) = fault_in_beginning(&prefix) {
        bail!(
            literal,
            "found the prefix `{prefix}`; {fault}; use another one, or `name` on each field"
        );
    }
    Ok(())
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
