//! The keys of `#[label(…)]`, `#[metric(…)]` and `#[metrics(…)]`.

use std::collections::HashSet;

use syn::meta::ParseNestedMeta;
use syn::{Attribute, Expr, LitStr, Result};

use crate::case::{self, Case};

/// The options of `#[label(…)]` on a field of `Labels`.
#[derive(Default)]
pub(crate) struct LabelField {
    pub(crate) rename: Option<LitStr>,
    pub(crate) display: bool,
}

impl LabelField {
    pub(crate) fn of(attributes: &[Attribute], field: &str) -> Result<Self> {
        let mut said = Self::default();
        keys(attributes, "label", field, &["rename = \"…\"", "display"], |key, meta| {
            match key {
                "rename" => said.rename = Some(meta.value()?.parse()?),
                "display" => said.display = true,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(said)
    }
}

/// The text that `#[label(rename = "…")]` gives a variant, if it does.
pub(crate) fn renamed(attributes: &[Attribute], variant: &str) -> Result<Option<LitStr>> {
    only_text(attributes, "label", "rename", variant)
}

/// How `#[label(rename_all = "…")]` writes the variants of an enum.
pub(crate) fn case(attributes: &[Attribute], item: &str) -> Result<Case> {
    let Some(text) = only_text(attributes, "label", "rename_all", item)? else {
        return Ok(case::default());
    };
    let Some(case) = case::named(&text.value()) else {
        bail!(text, "`{item}`: found {:?}; expected {}", text.value(), case::names());
    };
    Ok(case)
}

/// The options of `#[metric(…)]` on a field of `Metrics`.
#[derive(Default)]
pub(crate) struct MetricField {
    pub(crate) name: Option<LitStr>,
    /// The methods of `Opts` that are called, with what.
    pub(crate) opts: Vec<(&'static str, Expr)>,
    /// Whether it is a set, by `nested` or by a prefix.
    pub(crate) nested: bool,
    /// The prefix of such a set, by `#[metrics(prefix = "…")]`.
    pub(crate) prefix: Option<LitStr>,
}

impl MetricField {
    /// Each takes an expression and is a method of `Opts`.
    const OPTS: [&'static str; 12] = [
        "buckets",
        "bucketing",
        "schema",
        "max_buckets",
        "widest_zero",
        "quantiles",
        "window",
        "striped",
        "limit",
        "expires_after",
        "combine",
        "whole",
    ];

    pub(crate) fn of(attributes: &[Attribute], field: &str) -> Result<Self> {
        let mut said = Self::default();
        let mut expected = Self::of_metrics();
        expected.push("nested");
        let mut others = 0;
        let mut last = None;
        keys(attributes, "metric", field, &expected, |key, meta| {
            match key {
                "nested" => said.nested = true,
                _ if !said.take(key, meta)? => return Ok(false),
                _ => {}
            }
            others += usize::from(key != "nested");
            last = Some(meta.error(format_args!(
                "`{field}`: a nested set has the names and choices of its own fields; give `nested` alone"
            )));
            Ok(true)
        })?;
        said.prefix = prefix(attributes, field)?;
        said.nested |= said.prefix.is_some();
        match last {
            Some(error) if said.nested && others > 0 => Err(error),
            _ => Ok(said),
        }
    }

    /// The options of `#[register(…)]` on a static.
    pub(crate) fn of_static(attribute: &Attribute, name: &str) -> Result<Self> {
        let mut said = Self::default();
        let attributes = std::slice::from_ref(attribute);
        keys(attributes, "register", name, &Self::of_metrics(), |key, meta| said.take(key, meta))?;
        Ok(said)
    }

    /// The keys of a metric.
    fn of_metrics() -> Vec<&'static str> {
        ["name = \"…\""].into_iter().chain(Self::OPTS).collect()
    }

    /// Takes a key of a metric; false if it is none.
    fn take(&mut self, key: &str, meta: &ParseNestedMeta<'_>) -> Result<bool> {
        match Self::OPTS.into_iter().find(|opt| *opt == key) {
            Some(opt) => self.opts.push((opt, meta.value()?.parse()?)),
            None if key == "name" => self.name = Some(meta.value()?.parse()?),
            None => return Ok(false),
        }
        Ok(true)
    }
}

/// The prefix of a set, or of a field that is one, by `#[metrics(prefix = "…")]`.
pub(crate) fn prefix(attributes: &[Attribute], item: &str) -> Result<Option<LitStr>> {
    only_text(attributes, "metrics", "prefix", item)
}

/// Refuses an attribute that would be ignored where it stands.
pub(crate) fn refuse(attributes: &[Attribute], name: &str, remedy: &str) -> Result<()> {
    if let Some(attribute) = attributes.iter().find(|attribute| attribute.path().is_ident(name)) {
        bail!(attribute, "{remedy}");
    }
    Ok(())
}

/// The text of a key, which is the only one that an attribute takes here.
fn only_text(attributes: &[Attribute], name: &str, only: &str, of: &str) -> Result<Option<LitStr>> {
    let mut text = None;
    keys(attributes, name, of, &[&format!("{only} = \"…\"")], |key, meta| {
        if key == only {
            text = Some(meta.value()?.parse()?);
        }
        Ok(key == only)
    })?;
    Ok(text)
}

/// Goes through the keys of an attribute; `take` says whether it knows the key.
fn keys(
    attributes: &[Attribute],
    name: &str,
    of: &str,
    expected: &[&str],
    mut take: impl FnMut(&str, &ParseNestedMeta<'_>) -> Result<bool>,
) -> Result<()> {
    let mut seen = HashSet::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident(name)) {
        attribute.parse_nested_meta(|meta| {
            let key = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
            if !take(&key, &meta)? {
                let expected = expected.join("`, `");
                return Err(meta.error(format_args!(
                    "`{of}`: unknown key in #[{name}(…)]; expected `{expected}`"
                )));
            }
            if seen.contains(&key) {
                return Err(
                    meta.error(format_args!("`{of}`: `{key}` is given twice; give it once"))
                );
            }
            seen.insert(key);
            Ok(())
        })?;
    }
    Ok(())
}
