//! Names that are checked while compiling, with errors that point at the field.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Field, Fields, Ident, LitStr, Result};

/// The text that `#[label(rename = "…")]` gives, if it is there.
pub(crate) fn renamed(attributes: &[Attribute]) -> Result<Option<LitStr>> {
    let mut name = None;
    for attribute in attributes.iter().filter(|a| a.path().is_ident("label")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("rename") {
                return Err(meta.error("expected `rename = \"…\"`"));
            }
            name = Some(meta.value()?.parse()?);
            Ok(())
        })?;
    }
    Ok(name)
}

/// A label's name: the field's, or what it is renamed to.
pub(crate) fn label_name(field: &Field, ident: &Ident) -> Result<String> {
    let (name, span) = match renamed(&field.attrs)? {
        Some(text) => (text.value(), text.span()),
        None => (ident.unraw().to_string(), ident.span()),
    };
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(valid)
    {
        return Err(Error::new(
            span,
            "a label's name consists of ASCII letters, digits and '_' and does not begin with a digit; use #[label(rename = \"…\")]",
        ));
    }
    if name.starts_with("__") || name == "le" || name == "quantile" {
        return Err(Error::new(
            span,
            format!("the label name `{name}` is reserved; use #[label(rename = \"…\")]"),
        ));
    }
    Ok(name)
}

/// A metric's name, before what its type adds.
pub(crate) fn check_metric(name: &str, span: Span) -> Result<()> {
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(valid)
    {
        return Err(Error::new(
            span,
            format!(
                "`{name}` is no metric name: it consists of ASCII letters, digits, '_' and ':' and does not begin with a digit; use #[metric(name = \"…\")]"
            ),
        ));
    }
    for ending in ["_bucket", "_count", "_sum", "_created", "_info"] {
        if name.ends_with(ending) {
            return Err(Error::new(
                span,
                format!(
                    "`{name}` ends in `{ending}`, which is reserved for samples that other metric types make; use #[metric(name = \"…\")]"
                ),
            ));
        }
    }
    Ok(())
}

/// The named fields of a struct, or what was expected.
pub(crate) fn named_fields<'a>(
    input: &'a DeriveInput,
    what: &str,
) -> Result<Vec<(&'a Field, &'a Ident)>> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new(input.ident.span(), format!("{what} is derived for a struct")));
    };
    match &data.fields {
        Fields::Named(fields) => {
            Ok(fields.named.iter().filter_map(|f| Some((f, f.ident.as_ref()?))).collect())
        }
        other => Err(Error::new(
            if other.is_empty() { input.ident.span() } else { other.span() },
            format!("{what} needs fields with names"),
        )),
    }
}
