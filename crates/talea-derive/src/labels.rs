//! `#[derive(Labels)]`.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, GenericParam, Lifetime, Result};

use crate::attributes::{self, LabelField};
use crate::{item, names};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let fields = item::named_fields(
        input,
        "Labels",
        "An enum of a label's values derives LabelValue",
        "Give each label a field with its name",
    )?;
    attributes::refuse(
        &input.attrs,
        "label",
        "#[label(…)] belongs on a field; a group of labels has no choices of its own",
    )?;
    let statics = static_parameters(input)?;
    let mut seen = HashSet::new();
    let mut parts = Vec::new();
    for (field, ident) in &fields {
        let said = LabelField::of(&field.attrs, &ident.to_string())?;
        let name = names::label(ident, &said)?;
        if !seen.insert(name.clone()) {
            bail!(
                ident,
                "`{ident}`: the label name `{name}` is there twice; use #[label(rename = \"…\")]"
            );
        }
        parts.push((name, *ident, &field.ty, said.display));
    }

    // A value that displays itself is a dynamic label, whatever its type.
    let radices: Vec<_> = parts
        .iter()
        .map(|(_, _, ty, display)| match display {
            true => quote!(::core::option::Option::None),
            false => quote!(<#ty as ::talea::LabelValue>::cardinality()),
        })
        .collect();
    let fixed: Vec<_> = parts.iter().filter(|part| !part.3).collect();
    let fixed_types: Vec<_> = fixed.iter().map(|part| part.2).collect();
    let fixed_idents: Vec<_> = fixed.iter().map(|part| part.1).collect();
    let digits: Vec<_> = (0..fixed.len()).map(|n| format_ident!("digit_{n}")).collect();
    let (last_digits, last_types) = (digits.iter().rev(), fixed_types.iter().rev());

    // The text before each value: the end of the value before, and the name.
    let openings: Vec<_> = parts
        .iter()
        .enumerate()
        .map(|(n, (name, ..))| match n {
            0 => format!("{name}=\""),
            _ => format!("\",{name}=\""),
        })
        .collect();
    let closing = (!parts.is_empty()).then(|| quote!(out.push_raw("\"");));
    let writes = parts.iter().map(|(_, ident, ty, display)| match display {
        true => {
            // A name at the type does not find one made here if a macro brings the type (hygiene).
            let (out, value) = (quote!(out), quote!(&self.#ident));
            quote_spanned! {ty.span()=> #out.push_displayed::<#ty>(#value); }
        }
        false => quote!(<#ty as ::talea::LabelValue>::write(&self.#ident, out);),
    });
    let additions = parts.iter().map(|(_, ident, ty, display)| match display {
        true => quote!(key.other();),
        false => quote!(<#ty as ::talea::LabelValue>::add_to_key(&self.#ident, key);),
    });
    let mut of_digits = digits.iter();
    let writes_nth: Vec<_> = parts
        .iter()
        .map(|(_, _, ty, display)| match (display, of_digits.as_slice().first()) {
            (false, Some(digit)) => {
                of_digits.next();
                quote!(<#ty as ::talea::LabelValue>::write_nth(#digit, out);)
            }
            _ => quote!(),
        })
        .collect();

    let label_names = parts.iter().map(|part| &part.0);
    let name = &input.ident;
    let (impl_generics, type_generics, wheres) = input.generics.split_for_impl();
    Ok(quote! {
        impl #impl_generics ::talea::Labels for #name #type_generics #wheres {
            type Static = #name #statics;
            const NAMES: &'static [&'static str] = &[#(#label_names),*];
            #[inline]
            fn cardinality() -> ::core::option::Option<usize> {
                ::talea::derived::product(&[#(#radices),*])
            }
            #[inline]
            fn is_known_early() -> bool {
                true #(&& <#fixed_types as ::talea::LabelValue>::is_known_early())*
            }
            fn fault() -> ::core::option::Option<::std::string::String> {
                #(
                    if let ::core::option::Option::Some(fault) =
                        <#fixed_types as ::talea::LabelValue>::fault()
                    {
                        return ::core::option::Option::Some(fault);
                    }
                )*
                ::core::option::Option::None
            }
            #[inline]
            fn index(&self) -> usize {
                let index = 0usize;
                #(
                    let index = ::talea::derived::push(
                        index,
                        <#fixed_types as ::talea::LabelValue>::cardinality(),
                        <#fixed_types as ::talea::LabelValue>::index(&self.#fixed_idents),
                    );
                )*
                index
            }
            #[inline]
            fn write(&self, out: &mut ::talea::LabelText) {
                #(
                    out.push_raw(#openings);
                    #writes
                )*
                #closing
            }
            #[inline]
            fn add_to_key<K: ::talea::derived::KeyWriter>(&self, key: &mut K) {
                #(#additions)*
            }
            fn write_nth(n: usize, out: &mut ::talea::LabelText) {
                #[allow(unused_mut, unused_variables)]
                let mut number = n;
                #(
                    let #last_digits = ::talea::derived::pop(
                        &mut number,
                        <#last_types as ::talea::LabelValue>::cardinality(),
                    );
                )*
                #(
                    out.push_raw(#openings);
                    #writes_nth
                )*
                #closing
            }
        }
    })
}

/// Labels without names.
pub(crate) fn fallback(input: &DeriveInput) -> TokenStream {
    let Ok(statics) = static_parameters(input) else { return TokenStream::new() };
    let name = &input.ident;
    let (impl_generics, type_generics, wheres) = input.generics.split_for_impl();
    quote! {
        impl #impl_generics ::talea::Labels for #name #type_generics #wheres {
            type Static = #name #statics;
            const NAMES: &'static [&'static str] = &[];
            fn write(&self, _: &mut ::talea::LabelText) {}
        }
    }
}

/// The parameters of the same group with `'static` values.
fn static_parameters(input: &DeriveInput) -> Result<TokenStream> {
    let mut statics = Vec::new();
    for param in &input.generics.params {
        match param {
            GenericParam::Lifetime(l) => statics.push(Lifetime::new("'static", l.lifetime.span())),
            other => bail!(
                other,
                "`{}`: Labels takes no type or const parameters; give the field a type of its own",
                input.ident
            ),
        }
    }
    Ok(if statics.is_empty() { quote!() } else { quote!(<#(#statics),*>) })
}
