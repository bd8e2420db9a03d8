//! The variants of the service that take turns.

/// The names in tables, and the arguments of `talea-hello`.
pub(super) const VARIANTS: [(&str, &str); 6] = [
    ("(a) no metrics", "plain"),
    ("(a) again", "plain"),
    ("(b) talea", "metered"),
    ("(c) talea, quantiles", "quantiles"),
    ("prometheus-client", "prometheus-client"),
    ("axum-prometheus", "axum-prometheus"),
];

pub(super) const PLAIN: usize = 0;
pub(super) const CONTROL: usize = 1;
pub(super) const METERED: usize = 2;
pub(super) const QUANTILES: usize = 3;
