//! `#[derive(Labels)]`.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Error, GenericParam, Lifetime, Result};

use crate::names;

pub(crate) fn derive(input: DeriveInput) -> Result<TokenStream> {
    let fields = names::named_fields(&input, "Labels")?;
    let mut statics = Vec::new();
    for param in &input.generics.params {
        match param {
            GenericParam::Lifetime(l) => statics.push(Lifetime::new("'static", l.lifetime.span())),
            other => {
                return Err(Error::new_spanned(
                    other,
                    "Labels takes no type or const parameters; give the field a type of its own",
                ));
            }
        }
    }
    let mut seen = HashSet::new();
    let mut label_names = Vec::new();
    for (field, ident) in &fields {
        let name = names::label_name(field, ident)?;
        if !seen.insert(name.clone()) {
            return Err(Error::new(
                ident.span(),
                format!("the label name `{name}` is there twice"),
            ));
        }
        label_names.push(name);
    }
    let idents = fields.iter().map(|(_, ident)| ident);
    let types: Vec<_> = fields.iter().map(|(field, _)| &field.ty).collect();
    let indexed = idents.clone();
    // What stands before each value: the end of the one before, and the name.
    let openings = label_names.iter().enumerate().map(|(n, name)| match n {
        0 => format!("{name}=\""),
        _ => format!("\",{name}=\""),
    });
    let closing = (!label_names.is_empty()).then(|| quote!(out.push_raw("\"");));
    let name = &input.ident;
    let (impl_generics, type_generics, wheres) = input.generics.split_for_impl();
    let statics = if statics.is_empty() { quote!() } else { quote!(<#(#statics),*>) };
    Ok(quote! {
        impl #impl_generics ::talea::Labels for #name #type_generics #wheres {
            type Static = #name #statics;
            const NAMES: &'static [&'static str] = &[#(#label_names),*];
            const CARDINALITY: ::core::option::Option<usize> = ::talea::derived::product(&[
                #(<#types as ::talea::LabelValue>::CARDINALITY),*
            ]);
            #[inline]
            fn index(&self) -> usize {
                // A number whose digits are the values' own; it overflows where
                // the values are not fixed, and means nothing there.
                let index = 0usize;
                #(
                    let index = match <#types as ::talea::LabelValue>::CARDINALITY {
                        ::core::option::Option::Some(n) => index
                            .wrapping_mul(n)
                            .wrapping_add(::talea::LabelValue::index(&self.#indexed)),
                        ::core::option::Option::None => index,
                    };
                )*
                index
            }
            #[inline]
            fn write(&self, out: &mut ::talea::LabelText) {
                #(
                    out.push_raw(#openings);
                    ::talea::LabelValue::write(&self.#idents, out);
                )*
                #closing
            }
        }
    })
}
