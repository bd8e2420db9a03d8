//! `#[derive(Metrics)]`.

use std::collections::{HashMap, HashSet};

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Attribute, DeriveInput, Expr, ExprLit, Field, Ident, Lit, LitStr, Meta, Result};

use crate::attributes::{self, MetricField};
use crate::{item, names};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    if let Some(param) = input.generics.params.first() {
        bail!(param, "`{name}` has parameters; Metrics takes none: a set can be a static");
    }
    attributes::refuse(
        &input.attrs,
        "metric",
        "#[metric(…)] belongs on a field; a set takes #[metrics(prefix = \"…\")]",
    )?;
    let prefix = attributes::prefix(&input.attrs, &name.to_string())?;
    if let Some(prefix) = &prefix {
        names::check_prefix(prefix)?;
    }
    let before = prefix.map_or_else(String::new, |prefix| prefix.value() + "_");
    let fields = item::named_fields(
        input,
        "Metrics",
        "Give each metric a field",
        "Give each metric a field with its name",
    )?;
    let mut seen = HashSet::new();
    let mut sets = HashMap::new();
    let mut registrations = Vec::new();
    for (field, ident) in &fields {
        let said = MetricField::of(&field.attrs, &ident.to_string())?;
        let ty = &field.ty;
        let of_field = ident.unraw().to_string();
        if said.nested {
            if let Some(prefix) = &said.prefix {
                names::check_prefix(prefix)?;
            }
            let prefix = said.prefix.as_ref().map_or_else(String::new, LitStr::value);
            let same = (ty.to_token_stream().to_string(), prefix.clone());
            if let Some(other) = sets.insert(same, ident) {
                bail!(
                    ident,
                    "`{ident}`: it would have the same names as `{other}`, a set of the same type; \
                     give each a prefix by #[metrics(prefix = \"…\")]"
                );
            }
            registrations.push(quote! {
                <#ty as ::talea::Metrics>::register(&self.#ident, &set.field(#of_field, #prefix))?;
            });
            continue;
        }
        let name = names::metric(ident, &said, &before, of_field.clone())?;
        if !seen.insert(name.clone()) {
            bail!(
                ident,
                "`{ident}`: the metric name `{name}` is there twice; use #[metric(name = \"…\")]"
            );
        }
        let (help, opts) = (help(&field.attrs, ident)?, options(&said));
        registrations.push(quote! {
            <#ty as ::talea::Registrable>::register(
                &self.#ident,
                &set.field(#of_field, ""),
                &::talea::Opts::new(#name, #help)#opts,
            )?;
        });
    }
    let new = new(input, &fields);
    let of_set = name.unraw().to_string();
    Ok(quote! {
        #new

        impl ::talea::Metrics for #name {
            fn register(&self, registry: &::talea::Registry) -> ::core::result::Result<(), ::talea::Error> {
                let set = ::talea::derived::SetFields::new(registry, #of_set);
                #(#registrations)*
                ::core::result::Result::Ok(())
            }

            fn set_type(&self) -> ::core::option::Option<(::core::any::TypeId, &'static str)> {
                ::core::option::Option::Some((
                    ::core::any::TypeId::of::<Self>(),
                    ::core::any::type_name::<Self>(),
                ))
            }
        }
    })
}

/// The functions that make a set.
fn new(input: &DeriveInput, fields: &[(&Field, &Ident)]) -> TokenStream {
    let (name, vis) = (&input.ident, &input.vis);
    let values = fields.iter().map(|(field, ident)| {
        let ty = &field.ty;
        // A metric says that it was made here.
        let made = quote_spanned!(ident.span()=> <#ty>::new());
        quote!(#ident: #made)
    });
    quote! {
        // `Default` is left to its own derive.
        #[allow(clippy::new_without_default)]
        impl #name {
            /// A set that is not installed yet: until then, updates of its metrics are
            /// discarded.
            #vis const fn new() -> Self {
                Self { #(#values,)* }
            }

            /// A set of its own in a registry of its own, for a test.
            ///
            /// # Panics
            ///
            /// A metric cannot be registered, or there is no memory.
            #[allow(dead_code)]
            #vis fn for_test() -> (Self, ::talea::Registry) {
                let registry = ::talea::Registry::for_test().expect("memory for a test's registry");
                let metrics = Self::new();
                if let Err(error) = ::talea::install(&registry, &[&metrics]) {
                    panic!("{error}");
                }
                (metrics, registry)
            }
        }
    }
}

/// A set that registers nothing.
pub(crate) fn fallback(input: &DeriveInput) -> TokenStream {
    let fields = item::named_fields(input, "", "", "").ok();
    let Some(fields) = fields.filter(|_| input.generics.params.is_empty()) else {
        return TokenStream::new();
    };
    let (name, new) = (&input.ident, new(input, &fields));
    quote! {
        #new

        impl ::talea::Metrics for #name {
            fn register(&self, _: &::talea::Registry) -> ::core::result::Result<(), ::talea::Error> {
                ::core::result::Result::Ok(())
            }
        }
    }
}

/// The options, as calls of the methods of `Opts`.
pub(crate) fn options(said: &MetricField) -> TokenStream {
    let calls = said.opts.iter().map(|(opt, expr)| {
        let method = Ident::new(opt, Span::call_site());
        match *opt {
            // A reference, so that arrays of any length fit.
            "buckets" | "quantiles" => quote!(.#method(&#expr)),
            _ => quote!(.#method(#expr)),
        }
    });
    quote!(#(#calls)*)
}

/// The doc comment in one line.
pub(crate) fn help(attributes: &[Attribute], ident: &Ident) -> Result<String> {
    let texts = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => match &meta.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    let mut help = String::new();
    for text in texts {
        for (n, line) in text.lines().enumerate() {
            // A line of a block comment may begin with a star.
            let line = if n == 0 { line } else { line.trim_start().trim_start_matches('*') }.trim();
            if !help.is_empty() && !line.is_empty() {
                help.push(' ');
            }
            help.push_str(line);
        }
    }
    if help.is_empty() {
        bail!(ident, "`{ident}` needs a doc comment: it is the help that a scrape shows");
    }
    Ok(help)
}

#[cfg(test)]
mod tests {
    use super::derive;

    #[test]
    fn a_doc_comment_of_any_form_is_a_help_of_one_line() {
        for comment in [
            "/// Orders that\n/// were accepted.",
            "/** Orders that\n * were accepted.\n */",
            "/**\n    Orders that\n\n    were accepted.\n*/",
            "#[doc = \"Orders that\"] /** were accepted. */",
        ] {
            let input =
                syn::parse_str(&format!("struct X {{ {comment}\norders: Counter }}")).unwrap();
            let derived = derive(&input).unwrap().to_string();
            assert!(derived.contains("\"Orders that were accepted.\""), "{comment}: {derived}");
        }
    }
}
