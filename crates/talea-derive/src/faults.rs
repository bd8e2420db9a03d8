//! Faulty items are refused with messages that name the field and the remedy. `tests/derives` has an item for each
//! message, and shows where it points; here are the other faults of the same messages.

use proc_macro2::TokenStream;
use syn::{DeriveInput, Result};

use crate::{label_value, labels, metrics};

const RESERVED: &str = "what begins with '_' is reserved; begin with a letter";

/// The message for an item.
fn refusal(derive: fn(&DeriveInput) -> Result<TokenStream>, item: &str) -> String {
    let input = syn::parse_str(item).unwrap_or_else(|error| panic!("{item}: {error}"));
    derive(&input).expect_err(item).to_string()
}

#[test]
fn an_item_of_another_kind_is_refused() {
    for (item, found) in [
        ("union X { a: u8 }", "a union"),
        ("struct X(u8);", "a tuple struct"),
        ("struct X;", "a unit struct"),
    ] {
        for (derive, name, of) in [
            (labels::derive as fn(&_) -> _, "Labels", "label"),
            (metrics::derive, "Metrics", "metric"),
        ] {
            let expected = format!(
                "`X` is {found}; {name} is derived for a struct with named fields. Give each {of} a \
                 field with its name"
            );
            assert_eq!(refusal(derive, item), expected);
        }
    }
    for (item, found) in
        [("union X { a: u8 }", "a union"), ("enum X {}", "an enum without variants")]
    {
        let expected = format!(
            "`X` is {found}; LabelValue is derived for an enum with at least one variant. A struct of \
             several labels derives Labels; any other type that implements Display can be a field \
             with #[label(display)]"
        );
        assert_eq!(refusal(label_value::derive, item), expected);
    }
}

#[test]
fn a_parameter_that_is_a_number_is_refused() {
    let item = "struct X<const N: usize> { a: u8 }";
    let expected =
        "`X`: Labels takes no type or const parameters; give the field a type of its own";
    assert_eq!(refusal(labels::derive, item), expected);
    let expected = "`X` has parameters; Metrics takes none: a set can be a static";
    assert_eq!(refusal(metrics::derive, item), expected);
}

#[test]
fn a_label_that_no_scraper_takes_is_refused() {
    let characters = "expected ASCII letters, digits and '_', and no digit first";
    for (options, field, name, fault) in [
        ("", "größe", "größe", characters),
        ("", "quantile", "quantile", "histograms and summaries write that label themselves"),
        ("", "__name", "__name", RESERVED),
        ("", "_name", "_name", RESERVED),
        (r#"#[label(rename = "")]"#, "name", "", characters),
    ] {
        let expected = format!(
            "`{field}`: found the label name `{name}`; {fault}; use #[label(rename = \"…\")]"
        );
        assert_eq!(
            refusal(labels::derive, &format!("struct X {{ {options} {field}: u8 }}")),
            expected
        );
    }
}

#[test]
fn a_metric_whose_name_is_reserved_is_refused() {
    let ending = |ending| {
        format!("the ending `{ending}` is reserved for samples that other metric types make")
    };
    for (of_set, options, field, name, fault) in [
        ("", "", "order_bucket", "order_bucket", ending("_bucket")),
        ("", "", "order_count", "order_count", ending("_count")),
        ("", "", "order_sum", "order_sum", ending("_sum")),
        ("", "", "orders_created", "orders_created", ending("_created")),
        (r#"#[metrics(prefix = "order")]"#, "", "info", "order_info", ending("_info")),
        ("", r#"#[metric(name = "_orders")]"#, "orders", "_orders", RESERVED.to_owned()),
    ] {
        let item = format!("{of_set} struct X {{ /** A. */ {options} {field}: Counter }}");
        let expected = format!(
            "`{field}`: found the metric name `{name}`; {fault}; use #[metric(name = \"…\")]"
        );
        assert_eq!(refusal(metrics::derive, &item), expected);
    }
}

#[test]
fn a_prefix_that_no_name_can_begin_with_is_refused() {
    for prefix in ["", "my shop"] {
        let expected = format!(
            "found the prefix `{prefix}`; expected ASCII letters, digits, '_' and ':', and no digit \
             first; use another one, or `name` on each field"
        );
        let item = format!("#[metrics(prefix = {prefix:?})] struct X {{ /** A. */ a: Counter }}");
        assert_eq!(refusal(metrics::derive, &item), expected);
    }
}
