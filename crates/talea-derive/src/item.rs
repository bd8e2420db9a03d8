//! Checks of the item that a derive is on.

use syn::{Data, DataEnum, DeriveInput, Field, Fields, Ident, Result};

/// The named fields of a struct. For another item, what to do instead: `enums` for
/// an enum, `fields` for the rest.
pub(crate) fn named_fields<'a>(
    input: &'a DeriveInput,
    derive: &str,
    enums: &str,
    fields: &str,
) -> Result<Vec<(&'a Field, &'a Ident)>> {
    let name = &input.ident;
    let (found, instead) = match &input.data {
        Data::Enum(_) => ("an enum", enums),
        Data::Union(_) => ("a union", fields),
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => {
                return Ok(fields
                    .named
                    .iter()
                    .filter_map(|f| Some((f, f.ident.as_ref()?)))
                    .collect());
            }
            Fields::Unnamed(_) => ("a tuple struct", fields),
            Fields::Unit => ("a unit struct", fields),
        },
    };
    bail!(
        name,
        "`{name}` is {found}; {derive} is derived for a struct with named fields. {instead}"
    );
}

pub(crate) fn variants<'a>(input: &'a DeriveInput, instead: &str) -> Result<&'a DataEnum> {
    let name = &input.ident;
    let found = match &input.data {
        Data::Enum(data) if !data.variants.is_empty() => return Ok(data),
        Data::Enum(_) => "an enum without variants",
        Data::Struct(_) => "a struct",
        Data::Union(_) => "a union",
    };
    bail!(
        name,
        "`{name}` is {found}; LabelValue is derived for an enum with at least one variant. {instead}"
    );
}
