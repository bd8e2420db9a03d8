//! `#[register]`, on statics.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Attribute, ItemStatic, Result, StaticMutability, parse_quote};

use crate::attributes::{MetricField, refuse};
use crate::metrics::{help, options};
use crate::names;

pub(crate) fn register(arguments: TokenStream, item: ItemStatic) -> Result<TokenStream> {
    let ident = &item.ident;
    if let StaticMutability::Mut(token) = &item.mutability {
        bail!(token, "`{ident}` is mutable; metrics change without that: remove `mut`");
    }
    let elsewhere = "give the options to #[register(…)] itself";
    refuse(&item.attrs, "metric", elsewhere)?;
    let options_of: Attribute = parse_quote!(#[register(#arguments)]);
    let said = MetricField::of_static(&options_of, &ident.to_string())?;
    let field = ident.unraw().to_string();
    let name = names::metric(ident, &said, "", field.to_lowercase())?;
    let (help, opts) = (help(&item.attrs, ident)?, options(&said));
    let ty = &item.ty;
    Ok(quote! {
        #item

        const _: () = {
            fn register(
                registry: &::talea::Registry,
            ) -> ::core::result::Result<(), ::talea::Error> {
                <#ty as ::talea::Registrable>::register(
                    &#ident,
                    registry,
                    &::talea::Opts::new(#name, #help)#opts,
                )
            }
            ::talea::derived::inventory::submit! {
                ::talea::derived::DeclaredStatic {
                    path: ::core::concat!(::core::module_path!(), "::", #field),
                    register,
                }
            }
        };
    })
}
