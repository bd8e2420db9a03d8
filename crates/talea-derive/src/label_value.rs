//! `#[derive(LabelValue)]`.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{DeriveInput, Fields, Result};

use crate::{attributes, item};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let data = item::variants(
        input,
        "A struct of several labels derives Labels; any other type that implements Display can be a field with #[label(display)]",
    )?;
    if let Some(param) = input.generics.params.first() {
        bail!(param, "`{name}` has parameters; LabelValue takes none: remove them");
    }
    let case = attributes::case(&input.attrs, &name.to_string())?;
    let mut seen = HashSet::new();
    let (mut variants, mut texts) = (Vec::new(), Vec::new());
    for variant in &data.variants {
        let ident = variant.ident.unraw().to_string();
        if !matches!(variant.fields, Fields::Unit) {
            bail!(
                variant.ident,
                "`{ident}` has fields; a label's value has none. Make them labels of their own, or use \
                 a dynamic label"
            );
        }
        let text = match attributes::renamed(&variant.attrs, &ident)? {
            Some(text) => text.value(),
            None => case(&ident),
        };
        if !seen.insert(text.clone()) {
            bail!(
                variant.ident,
                "`{ident}`: the value {text:?} is there twice; use #[label(rename = \"…\")]"
            );
        }
        variants.push(&variant.ident);
        // Escaped here, once, as label values are in a scrape.
        texts.push(text.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n"));
    }
    let count = variants.len();
    let (indices, numbers) = (0..count, 0..count);
    Ok(quote! {
        impl ::talea::LabelValue for #name {
            #[inline]
            fn cardinality() -> ::core::option::Option<usize> {
                ::core::option::Option::Some(#count)
            }
            #[inline]
            fn is_known_early() -> bool {
                true
            }
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
            fn write_nth(n: usize, out: &mut ::talea::LabelText) {
                out.push_raw(match n {
                    #(#numbers => #texts,)*
                    _ => "",
                });
            }
        }
    })
}

/// A value that writes nothing.
pub(crate) fn fallback(input: &DeriveInput) -> TokenStream {
    let name = &input.ident;
    let (impl_generics, type_generics, wheres) = input.generics.split_for_impl();
    quote! {
        impl #impl_generics ::talea::LabelValue for #name #type_generics #wheres {
            fn write(&self, _: &mut ::talea::LabelText) {}
        }
    }
}
