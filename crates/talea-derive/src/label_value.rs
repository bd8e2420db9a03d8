//! `#[derive(LabelValue)]`.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Error, Fields, Result};

use crate::names;

pub(crate) fn derive(input: DeriveInput) -> Result<TokenStream> {
    let Data::Enum(data) = &input.data else {
        return Err(Error::new(input.ident.span(), "LabelValue is derived for an enum"));
    };
    if data.variants.is_empty() {
        return Err(Error::new(input.ident.span(), "a label needs at least one value"));
    }
    let mut seen = HashSet::new();
    let (mut variants, mut texts) = (Vec::new(), Vec::new());
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new_spanned(
                variant,
                "a label's value has no fields; make them labels of their own, or use a dynamic label",
            ));
        }
        let text = match names::renamed(&variant.attrs)? {
            Some(text) => text.value(),
            None => snake_case(&variant.ident.unraw().to_string()),
        };
        if !seen.insert(text.clone()) {
            return Err(Error::new_spanned(variant, format!("the value {text:?} is there twice")));
        }
        variants.push(&variant.ident);
        // Escaped here, once, as label values are in a scrape.
        texts.push(text.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n"));
    }
    let name = &input.ident;
    let count = variants.len();
    let indices = 0..count;
    let (impl_generics, type_generics, wheres) = input.generics.split_for_impl();
    Ok(quote! {
        impl #impl_generics ::talea::LabelValue for #name #type_generics #wheres {
            const CARDINALITY: ::core::option::Option<usize> = ::core::option::Option::Some(#count);
            #[inline]
            fn index(&self) -> usize {
                match self {
                    #(Self::#variants => #indices,)*
                }
            }
            #[inline]
            fn write(&self, out: &mut ::talea::LabelText) {
                out.push_raw(match self {
                    #(Self::#variants => #texts,)*
                });
            }
        }
    })
}

fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}
