//! `#[timed]` and `#[counted]`, on functions.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, Expr, Ident, ItemFn, Result, ReturnType, Token};

/// The arguments of an attribute, which has the form of the example.
pub(crate) fn metric<T: Parse>(arguments: TokenStream, example: &str) -> Result<T> {
    if arguments.is_empty() {
        return Err(Error::new(Span::call_site(), format!("expected a metric: `{example}`")));
    }
    syn::parse2(arguments)
}

/// The expression of `#[timed(…)]`: the metric that a timer is started of.
pub(crate) fn timed(metric: Expr, mut function: ItemFn) -> Result<TokenStream> {
    refuse_const(&function, "timed")?;
    let statements = &function.block.stmts;
    // In the order of declaration, so that it is dropped last.
    let timer = quote_spanned!(metric.span()=> let _talea_timer = (#metric).start_timer(););
    function.block = syn::parse_quote!({ #timer #(#statements)* });
    Ok(function.into_token_stream())
}

/// The arguments of `#[counted(…)]`: `calls` or `calls, error = failures`.
pub(crate) struct Counted {
    calls: Expr,
    errors: Option<Expr>,
}

impl Parse for Counted {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let calls = input.parse()?;
        let mut errors = None;
        if input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
            let key: Ident = input.parse()?;
            if key != "error" {
                bail!(key, "found `{key}`; expected `error = counter`");
            }
            input.parse::<Token![=]>()?;
            errors = Some(input.parse()?);
            input.parse::<Option<Token![,]>>()?;
        }
        match input.is_empty() {
            true => Ok(Self { calls, errors }),
            false => Err(input.error("expected nothing after `error = counter`")),
        }
    }
}

pub(crate) fn counted(arguments: Counted, mut function: ItemFn) -> Result<TokenStream> {
    refuse_const(&function, "counted")?;
    let Counted { calls, errors } = arguments;
    let block = &function.block;
    let calls = quote_spanned!(calls.span()=> (#calls).inc(););
    let Some(errors) = errors else {
        let statements = &block.stmts;
        function.block = syn::parse_quote!({ #calls #(#statements)* });
        return Ok(function.into_token_stream());
    };
    let ReturnType::Type(_, output) = &function.sig.output else {
        let name = &function.sig.ident;
        bail!(
            name,
            "`{name}` returns nothing; `error = …` counts what a function that returns a Result \
             returns as Err: leave it out"
        );
    };
    // So that `?` and `return` in the body end the body alone. Its type is written where it can be.
    let is_named = !names_impl(output.to_token_stream());
    let returned = if is_named { output.to_token_stream() } else { quote!(_) };
    // A closure that is called where it is written is one that may be called again, which cannot return
    // a reference into a `&mut` argument.
    let call_once = quote! {
        fn _talea_call_once<R>(body: impl ::core::ops::FnOnce() -> R) -> R {
            body()
        }
    };
    let outcome = match function.sig.asyncness {
        Some(_) => quote! {
            let outcome: #returned = async move {
                if false {
                    let returned: #returned = ::core::unreachable!();
                    #[allow(unreachable_code)]
                    return returned;
                }
                #block
            }.await;
        },
        None if !is_named => {
            quote!(#call_once let outcome = _talea_call_once(move || #block);)
        }
        None => quote! {
            #call_once
            let outcome: #returned = _talea_call_once(move || -> #returned { #block });
        },
    };
    // A name at the type does not find one made here if a macro brings the type (hygiene).
    let result = Ident::new("outcome", output.span());
    let is_error = quote_spanned!(output.span()=> ::talea::derived::Outcome::is_error(&#result));
    let count = quote_spanned!(errors.span()=> if #is_error { (#errors).inc(); });
    function.block = syn::parse_quote!({
        #calls
        #[allow(
            unreachable_code,
            unused_braces,
            clippy::diverging_sub_expression,
            clippy::redundant_closure_call,
            clippy::let_and_return,
            clippy::redundant_async_block
        )]
        let #result = { #outcome outcome };
        #count
        #result
    });
    Ok(function.into_token_stream())
}

fn refuse_const(function: &ItemFn, attribute: &str) -> Result<()> {
    if let Some(token) = &function.sig.constness {
        let name = &function.sig.ident;
        bail!(
            token,
            "`{name}` is const, and a metric cannot be updated while compiling; remove `const` or \
             #[{attribute}(…)]"
        );
    }
    Ok(())
}

/// Whether `impl Trait` is in a type, which stands in signatures only.
fn names_impl(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == "impl",
        TokenTree::Group(group) => names_impl(group.stream()),
        _ => false,
    })
}
