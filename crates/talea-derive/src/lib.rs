//! The macros of Talea: derives, and attributes of statics and functions. The crate `talea`
//! re-exports them.

/// Returns an error that points at some tokens.
macro_rules! bail {
    ($at:expr, $($message:tt)+) => {
        return Err(syn::Error::new_spanned(&$at, format!($($message)+)))
    };
}

mod attributes;
mod case;
mod declared;
#[cfg(test)]
mod faults;
mod function;
mod item;
mod label_value;
mod labels;
mod metrics;
mod names;

use proc_macro::TokenStream;
use syn::{DeriveInput, Error, ItemStatic, parse_macro_input};

/// Derives `Labels` for a struct with named fields: each field is a label, in order. A
/// field's name is the label's; `#[label(rename = "…")]` gives another.
/// `#[label(display)]` takes what a field of any type displays, as a dynamic label.
///
/// Fields may borrow. A family is named with `'static` (`Family<Sale<'static>, Counter>`),
/// a look-up takes any lifetime.
///
/// Errors while compiling: an enum, a union, a struct without field names, type or const
/// parameters; a label name that a scraper would refuse, or that is there twice; a field
/// whose type is no `LabelValue`.
#[proc_macro_derive(Labels, attributes(label))]
pub fn derive_labels(input: TokenStream) -> TokenStream {
    expand(&parse_macro_input!(input), labels::derive, labels::fallback)
}

/// Derives `LabelValue` for an enum without fields: each variant is a value, in
/// `snake_case`. `#[label(rename_all = "…")]` on the enum says another case, as in
/// serde: `SCREAMING_SNAKE_CASE`, `kebab-case`, `lowercase`, `UPPERCASE`,
/// `camelCase`, `PascalCase`. `#[label(rename = "…")]` gives a variant a text of its
/// own.
///
/// Such a label is fixed: a family of fixed labels finds a series by arithmetic.
///
/// Errors while compiling: an enum without variants, a variant with fields, a text that
/// two variants have, anything but an enum.
#[proc_macro_derive(LabelValue, attributes(label))]
pub fn derive_label_value(input: TokenStream) -> TokenStream {
    expand(&parse_macro_input!(input), label_value::derive, label_value::fallback)
}

/// Derives `Metrics` for a struct whose fields are metrics or families, and gives it `const fn
/// new()`, with which it can be a `static`, and `for_test()`, which makes a set and a registry of
/// its own (and panics if a metric cannot be registered).
///
/// The field's doc comment is the help. The name is the struct's prefix, given by `#[metrics(prefix
/// = "…")]`, then the field's name. `#[metric(name = "…", buckets = [..], bucketing = …, schema =
/// 5, max_buckets = 320, widest_zero = 1e-6, quantiles = [..], window = …, striped = true, limit =
/// 100, expires_after = None, combine = …, whole = true)]` on a field sets the options of these
/// names in `Opts`; `#[metric(nested)]` marks a field that is a set itself, with its own prefix.
/// `#[metrics(prefix = "read")]` on such a field comes before that: a set with the prefix `pool`
/// has the names `read_pool_…` there.
///
/// Errors while compiling: a field without a doc comment; a name that a scraper would refuse or
/// that is there twice; two nested sets of one type and prefix; a field that is no metric;
/// parameters. A fault that only the types show, such as a label name that is taken, or two sets
/// that define one metric, is an error of `install`.
#[proc_macro_derive(Metrics, attributes(metrics, metric))]
pub fn derive_metrics(input: TokenStream) -> TokenStream {
    expand(&parse_macro_input!(input), metrics::derive, metrics::fallback)
}

/// Registers a static metric or family with the program's default registry.
#[proc_macro_attribute]
pub fn register(arguments: TokenStream, item: TokenStream) -> TokenStream {
    on_item(
        item.clone(),
        declared::register(arguments.into(), parse_macro_input!(item as ItemStatic)),
    )
}

/// Times each call of a function.
#[proc_macro_attribute]
pub fn timed(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = function::metric(arguments.into(), "#[timed(histogram)]")
        .and_then(|metric| function::timed(metric, syn::parse(item.clone())?));
    on_item(item, expanded)
}

/// Counts each call of a function, and those that fail.
#[proc_macro_attribute]
pub fn counted(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = function::metric(arguments.into(), "#[counted(calls, error = failures)]")
        .and_then(|counted| function::counted(counted, syn::parse(item.clone())?));
    on_item(item, expanded)
}

/// The expansion of an item. With an error the item stays as it is, so that its uses are no further
/// errors.
fn on_item(item: TokenStream, expanded: Result<proc_macro2::TokenStream, Error>) -> TokenStream {
    expanded.map_or_else(
        |error| [error.into_compile_error().into(), item].into_iter().collect(),
        Into::into,
    )
}

/// The implementation derived for an item. With an error, that is an implementation that does nothing, so that
/// uses of the item are no further errors.
fn expand(
    input: &DeriveInput,
    derive: fn(&DeriveInput) -> Result<proc_macro2::TokenStream, Error>,
    fallback: fn(&DeriveInput) -> proc_macro2::TokenStream,
) -> TokenStream {
    let derived = derive(input);
    derived
        .unwrap_or_else(|error| [error.into_compile_error(), fallback(input)].into_iter().collect())
        .into()
}
