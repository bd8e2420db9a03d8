//! Statics that are metrics, in a program that forbids unsafe code.
#![forbid(unsafe_code)]

use talea::{Counter, Family, Gauge, Histogram, LabelValue, Labels, Metrics, Registry, Seconds};

/// Requests that were answered.
#[talea::register]
static HITS: Counter = Counter::new();

mod prices {
    use super::*;

    /// Time to price a basket.
    #[talea::register(name = "shop_pricing", buckets = [0.001, 0.01, 0.1])]
    pub(crate) static PRICING: Histogram<Seconds> = Histogram::new();
}

#[derive(LabelValue)]
enum Method {
    Card,
    Transfer,
}

#[derive(Labels)]
struct Sale<'a> {
    method: Method,
    country: &'a str,
}

fn orders() -> &'static Family<Sale<'static>, Counter> {
    /// Orders accepted.
    #[talea::register(limit = 10)]
    static ORDERS: Family<Sale<'static>, Counter> = Family::new();
    &ORDERS
}

/// Another kind of metric beside it.
#[derive(Default, Metrics)]
struct Pool {
    /// Connections.
    conns: Gauge,
}

fn main() {
    HITS.inc();
    let registry = talea::default_registry().unwrap();
    assert!(std::ptr::eq(registry, talea::default_registry().unwrap()));
    HITS.inc();
    let text = registry.snapshot().to_text();
    // Discarded before; there before its first observation.
    registry.snapshot().assert_value("hits_total", &[], 1.0);
    assert!(text.contains("# TYPE shop_pricing_seconds histogram"), "{text}");
    prices::PRICING.observe(std::time::Duration::from_millis(1));
    orders().with(Sale { method: Method::Card, country: "pe" }).inc();
    orders().with(Sale { method: Method::Transfer, country: "pe" }).inc();
    assert_eq!(registry.snapshot().total("orders_total", &[]), Some(2.0));
    let pool = Pool::default();
    talea::install(registry, &[&pool]).unwrap();
    pool.conns.set(3);
    registry.snapshot().assert_value("conns", &[], 3.0);
    registry.install_statics().unwrap();
    let error = Registry::for_test().unwrap().install_statics().unwrap_err().to_string();
    assert!(error.contains("installed in another registry"), "{error}");
}
