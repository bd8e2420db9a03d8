//! The derive macros of Talea. They are documented and re-exported by the crate
//! `talea`.

mod attributes;
mod case;
mod item;
mod label_value;
mod labels;
mod metrics;
mod names;

use proc_macro::TokenStream;
use syn::{DeriveInput, Error, parse_macro_input};

/// Derives `Labels` for a struct: each field is a label, in order. A field's
/// name is the label's; `#[label(rename = "…")]` gives another.
/// `#[label(display)]` takes what a field of any type displays.
#[proc_macro_derive(Labels, attributes(label))]
pub fn derive_labels(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input), labels::derive)
}

/// Derives `LabelValue` for an enum without fields: each variant is a value, in
/// `snake_case`. `#[label(rename_all = "…")]` on the enum says another case, as in
/// serde: `SCREAMING_SNAKE_CASE`, `kebab-case`, `lowercase`, `UPPERCASE`,
/// `camelCase`, `PascalCase`. `#[label(rename = "…")]` gives a variant a text of its
/// own.
#[proc_macro_derive(LabelValue, attributes(label))]
pub fn derive_label_value(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input), label_value::derive)
}

/// Derives `Metrics` for a struct whose fields are metrics or families, and
/// gives it `const fn new()` and `for_test()`.
///
/// The field's doc comment is the help. The name is the struct's prefix, given
/// by `#[metrics(prefix = "…")]`, then the field's name. `#[metric(name = "…",
/// buckets = [..], striped = true, limit = 100, expires_after = None, combine = …,
/// whole = true)]` on a field says otherwise, with the methods of `Opts` of these
/// names; `#[metric(nested)]` marks a field that is a set itself.
#[proc_macro_derive(Metrics, attributes(metrics, metric))]
pub fn derive_metrics(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input), metrics::derive)
}

fn expand(
    input: DeriveInput,
    derive: fn(DeriveInput) -> Result<proc_macro2::TokenStream, Error>,
) -> TokenStream {
    derive(input).unwrap_or_else(Error::into_compile_error).into()
}
