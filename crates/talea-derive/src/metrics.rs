//! `#[derive(Metrics)]`.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Attribute, DeriveInput, Error, Expr, ExprLit, Field, Ident, Lit, LitStr, Meta, Result};

use crate::names;

pub(crate) fn derive(input: DeriveInput) -> Result<TokenStream> {
    if let Some(param) = input.generics.params.first() {
        return Err(Error::new_spanned(
            param,
            "Metrics takes no parameters: a set can be a static",
        ));
    }
    let prefix = prefix(&input.attrs)?;
    let fields = names::named_fields(&input, "Metrics")?;
    let mut seen = HashSet::new();
    let mut registrations = Vec::new();
    for (field, ident) in &fields {
        let choices = Choices::of(field)?;
        if choices.nested {
            registrations.push(quote!(::talea::Metrics::register(&self.#ident, registry)?;));
            continue;
        }
        let name = choices.name(ident, prefix.as_ref())?;
        if !seen.insert(name.clone()) {
            return Err(Error::new(
                ident.span(),
                format!("the metric name `{name}` is there twice"),
            ));
        }
        let help = help(field, ident)?;
        let Choices { buckets, striped, limit, expires_after, .. } = &choices;
        let buckets = buckets.iter().map(|expr| quote!(.buckets(&#expr)));
        let striped = striped.iter().map(|expr| quote!(.striped(#expr)));
        let limit = limit.iter().map(|expr| quote!(.limit(#expr)));
        let expires = expires_after.iter().map(|expr| quote!(.expires_after(#expr)));
        registrations.push(quote! {
            ::talea::Registrable::register(
                &self.#ident,
                registry,
                &::talea::Opts::new(#name, #help)#(#buckets)*#(#striped)*#(#limit)*#(#expires)*,
            )?;
        });
    }
    let idents = fields.iter().map(|(_, ident)| ident);
    let types = fields.iter().map(|(field, _)| &field.ty);
    let (name, vis) = (&input.ident, &input.vis);
    Ok(quote! {
        impl #name {
            /// A set that is not installed yet: what its metrics are told goes
            /// nowhere.
            #vis const fn new() -> Self {
                Self { #(#idents: <#types>::new(),)* }
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

        impl ::core::default::Default for #name {
            fn default() -> Self {
                Self::new()
            }
        }

        impl ::talea::Metrics for #name {
            fn register(&self, registry: &::talea::Registry) -> ::core::result::Result<(), ::talea::Error> {
                #(#registrations)*
                ::core::result::Result::Ok(())
            }
        }
    })
}

fn prefix(attributes: &[Attribute]) -> Result<Option<LitStr>> {
    let mut prefix = None;
    for attribute in attributes.iter().filter(|a| a.path().is_ident("metrics")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("prefix") {
                return Err(meta.error("expected `prefix = \"…\"`"));
            }
            let text: LitStr = meta.value()?.parse()?;
            names::check_metric(&text.value(), text.span())?;
            prefix = Some(text);
            Ok(())
        })?;
    }
    Ok(prefix)
}

/// What `#[metric(…)]` says of a field.
#[derive(Default)]
struct Choices {
    name: Option<LitStr>,
    buckets: Option<Expr>,
    striped: Option<Expr>,
    limit: Option<Expr>,
    expires_after: Option<Expr>,
    nested: bool,
}

impl Choices {
    fn of(field: &Field) -> Result<Self> {
        let mut choices = Self::default();
        for attribute in field.attrs.iter().filter(|a| a.path().is_ident("metric")) {
            attribute.parse_nested_meta(|meta| {
                let Some(ident) = meta.path.get_ident() else {
                    return Err(meta.error("expected a single word"));
                };
                match ident.to_string().as_str() {
                    "name" => choices.name = Some(meta.value()?.parse()?),
                    "buckets" => choices.buckets = Some(meta.value()?.parse()?),
                    "striped" => choices.striped = Some(meta.value()?.parse()?),
                    "limit" => choices.limit = Some(meta.value()?.parse()?),
                    "expires_after" => choices.expires_after = Some(meta.value()?.parse()?),
                    "nested" => choices.nested = true,
                    _ => {
                        return Err(meta
                            .error("expected `name`, `buckets`, `striped`, `limit`, `expires_after` or `nested`"));
                    }
                }
                Ok(())
            })?;
        }
        Ok(choices)
    }

    fn name(&self, ident: &Ident, prefix: Option<&LitStr>) -> Result<String> {
        let (own, span) = match &self.name {
            Some(text) => (text.value(), text.span()),
            None => (ident.unraw().to_string(), ident.span()),
        };
        let name = match prefix {
            Some(prefix) => format!("{}_{own}", prefix.value()),
            None => own,
        };
        names::check_metric(&name, span)?;
        Ok(name)
    }
}

/// The doc comment in one line.
fn help(field: &Field, ident: &Ident) -> Result<String> {
    let lines = field.attrs.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => match &meta.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value().trim().to_owned()),
            _ => None,
        },
        _ => None,
    });
    let help = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    if help.is_empty() {
        return Err(Error::new(
            ident.span(),
            format!("the metric `{ident}` needs a doc comment: it is the help that a scrape shows"),
        ));
    }
    Ok(help)
}
