//! Claims about metrics, as a user writes them.

use std::thread;
use std::time::Duration;

use crate::support::metrics::{register, registry};
use talea::{
    Counter, Family, FloatCounter, FloatGauge, Gauge, Histogram, LabelValue, Labels, Metrics, Opts,
    Registry, Seconds, UpDownCounter,
};

#[derive(LabelValue)]
enum Method {
    Card,
    BankTransfer,
    #[label(rename = "I.O.U.")]
    Iou,
}

#[derive(Labels)]
struct Sale<'a> {
    method: Method,
    country: &'a str,
}

#[derive(Labels)]
struct Fixed {
    method: Method,
    gift: bool,
}

#[derive(Metrics)]
#[metrics(prefix = "shop")]
struct Shop {
    /// Orders
    /// accepted.
    orders: Family<Sale<'static>, Counter>,
    /// Time to price a basket.
    #[metric(buckets = [0.001, 0.01])]
    pricing: Histogram<Seconds>,
    /// Baskets open.
    open: UpDownCounter,
    /// Gifts.
    #[metric(name = "presents")]
    gifts: Family<Fixed, Counter>,
    #[metric(nested)]
    stock: Stock,
}

#[derive(Metrics)]
#[metrics(prefix = "stock")]
struct Stock {
    /// Things in store.
    things: Gauge,
}

#[test]
fn a_test_has_a_set_and_a_registry_of_its_own() {
    let (shop, registry) = Shop::for_test();
    let (other, empty) = Shop::for_test();
    shop.gifts.with(Fixed { method: Method::BankTransfer, gift: true }).add(5);
    shop.gifts.with(Fixed { method: Method::Iou, gift: false }).inc();
    let value = |registry: &Registry, method, gift| {
        registry.snapshot().value("shop_presents_total", &[("method", method), ("gift", gift)])
    };
    assert_eq!(value(&registry, "bank_transfer", "true"), Some(5.0));
    assert_eq!(value(&registry, "I.O.U.", "false"), Some(1.0));
    assert_eq!(value(&empty, "bank_transfer", "true"), None);
    other.open.inc();
    assert_eq!(empty.snapshot().value("shop_open", &[]), Some(1.0));
}

#[test]
fn the_text_is_what_a_scraper_reads() {
    let (shop, registry) = Shop::for_test();
    shop.orders.with(Sale { method: Method::Card, country: "a\"b\\c\nd" }).inc();
    shop.pricing.observe(Duration::from_micros(500));
    shop.pricing.observe(Duration::from_millis(1));
    shop.pricing.observe(Duration::from_secs(2));
    shop.open.inc();
    let opts = Opts::new("busy_seconds", "Time \\ busy,\nin all.");
    let seconds: FloatCounter = registry.register(opts).unwrap();
    seconds.add(0.25);
    seconds.add(-7.0);
    seconds.add(f64::NAN);
    let ratio: FloatGauge = register(&registry, "fill_ratio");
    ratio.set(f64::INFINITY);
    let expected = r##"# HELP busy_seconds_total Time \\ busy,\nin all.
# TYPE busy_seconds_total counter
busy_seconds_total 0.25
# HELP fill_ratio Some.
# TYPE fill_ratio gauge
fill_ratio +Inf
# HELP shop_open Baskets open.
# TYPE shop_open gauge
shop_open 1
# HELP shop_orders_total Orders accepted.
# TYPE shop_orders_total counter
shop_orders_total{method="card",country="a\"b\\c\nd"} 1
# HELP shop_pricing_seconds Time to price a basket.
# TYPE shop_pricing_seconds histogram
shop_pricing_seconds_bucket{le="0.001"} 2
shop_pricing_seconds_bucket{le="0.01"} 2
shop_pricing_seconds_bucket{le="+Inf"} 3
shop_pricing_seconds_sum 2.0015
shop_pricing_seconds_count 3
# HELP stock_things Things in store.
# TYPE stock_things gauge
stock_things 0
"##;
    let text = registry.snapshot().to_text();
    assert_eq!(text, expected);
    let samples = talea_parse::text(&text).unwrap();
    assert_eq!(samples.len(), 10);
    assert_eq!(samples[3].labels[1], ("country".to_owned(), "a\"b\\c\nd".to_owned()));
}

#[test]
fn values_are_refreshed_before_each_snapshot() {
    let registry = registry();
    let gauge: Gauge = register(&registry, "snapshots");
    registry.on_snapshot(move || gauge.inc());
    registry.snapshot();
    assert_eq!(registry.snapshot().value("snapshots", &[]), Some(2.0));
}

#[test]
fn eight_threads_lose_nothing_in_any_type() {
    const EACH: u64 = if cfg!(miri) { 10 } else { 50_000 };
    let (shop, registry) = Shop::for_test();
    thread::scope(|scope| {
        for thread in 0..8u64 {
            let shop = &shop;
            scope.spawn(move || {
                for n in 0..EACH {
                    let country = if (n + thread) % 2 == 0 { "pe" } else { "ch" };
                    shop.orders.with(Sale { method: Method::Card, country }).inc();
                    shop.pricing.observe(Duration::from_nanos(n));
                    shop.open.inc();
                    shop.open.dec();
                }
            });
        }
    });
    let snapshot = registry.snapshot();
    let orders =
        |country| snapshot.value("shop_orders_total", &[("method", "card"), ("country", country)]);
    assert_eq!(orders("pe").unwrap() + orders("ch").unwrap(), (8 * EACH) as f64);
    let pricing = snapshot.histogram("shop_pricing_seconds", &[]).unwrap();
    assert_eq!(pricing.count(), 8 * EACH);
    assert_eq!(pricing.sum(), (8 * EACH * (EACH - 1) / 2) as f64 / 1e9);
    assert_eq!(snapshot.value("shop_open", &[]), Some(0.0));
}
