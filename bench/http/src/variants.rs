//! The variants of the service that take turns.

/// A variant, as `talea-hello` knows it and as tables call it.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    /// The argument of `talea-hello`.
    pub(crate) argument: &'static str,
}

pub(crate) const PLAIN: usize = 0;
pub(crate) const CONTROL: usize = 1;
pub(crate) const METERED: usize = 2;
pub(crate) const QUANTILES: usize = 3;

pub(crate) const ALL: [Variant; 6] = [
    Variant { name: "(a) no metrics", argument: "plain" },
    Variant { name: "(a) again", argument: "plain" },
    Variant { name: "(b) talea", argument: "metered" },
    Variant { name: "(c) talea, quantiles", argument: "quantiles" },
    Variant { name: "prometheus-client", argument: "prometheus-client" },
    Variant { name: "axum-prometheus", argument: "axum-prometheus" },
];
