//! A registry with many series.

use talea::{Config, Counter, Opts, Registry};

/// So many series of some 80 bytes each; the value of the n-th is n.
pub(crate) fn orders(series: u64) -> Registry {
    let config = Config { series: series * 2, ..Config::with_len(series * 512) };
    let registry = Registry::with_config(config).unwrap();
    let opts = Opts::new("orders", "Orders accepted.").limit(series);
    let orders = registry.family::<Counter>(opts, &["customer"]).unwrap();
    for n in 0..series {
        orders.with_values(&[format!("a-customer-with-quite-a-long-name-{n:030}")]).add(n);
    }
    registry
}
