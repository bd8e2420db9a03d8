//! A shop that meters its orders with prometheus-client. `shop_talea.rs` is the same
//! program with Talea; docs/how-to/migrating.md counts the lines of both.

// Part: declare

use std::time::Instant;

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
enum Method {
    Card,
    BankTransfer,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Sale {
    method: Method,
    country: String,
}

struct Shop {
    orders: Family<Sale, Counter>,
    pricing: Histogram,
    in_flight: Gauge,
}

impl Shop {
    fn register(registry: &mut Registry) -> Self {
        let shop = Self {
            orders: Family::default(),
            pricing: Histogram::new([0.001, 0.01, 0.1, 1.0]),
            in_flight: Gauge::default(),
        };
        let registry = registry.sub_registry_with_prefix("shop");
        registry.register("orders", "Orders accepted", shop.orders.clone());
        registry.register_with_unit(
            "pricing",
            "Time to price an order",
            Unit::Seconds,
            shop.pricing.clone(),
        );
        registry.register("in_flight", "Orders that are being priced", shop.in_flight.clone());
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The source and the compiler of the program", build);
        shop
    }
}

// Part: use

struct Order {
    method: Method,
    country: String,
    items: u64,
}

fn accept(shop: &Shop, order: &Order) -> Result<u64, &'static str> {
    shop.in_flight.inc();
    let start = Instant::now();
    let priced = price(order);
    shop.pricing.observe(start.elapsed().as_secs_f64());
    shop.in_flight.dec();
    let cents = priced?;
    let sale = Sale { method: order.method, country: order.country.clone() };
    shop.orders.get_or_create(&sale).inc();
    Ok(cents)
}

fn price(order: &Order) -> Result<u64, &'static str> {
    if order.items == 0 { Err("an empty basket") } else { Ok(order.items * 1250) }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut registry = Registry::default();
    let shop = Shop::register(&mut registry);
    for (method, country, items) in
        [(Method::Card, "pe", 3), (Method::BankTransfer, "ch", 1), (Method::Card, "pe", 0)]
    {
        let order = Order { method, country: country.to_owned(), items };
        match accept(&shop, &order) {
            Ok(cents) => eprintln!("accepted, {cents} cents"),
            Err(reason) => eprintln!("refused: {reason}"),
        }
    }
    let mut text = String::new();
    encode(&mut text, &registry)?;
    print!("{text}");
    Ok(())
}

// Part: test

#[cfg(test)]
mod tests {
    use super::*;

    fn order(items: u64) -> Order {
        Order { method: Method::BankTransfer, country: "pe".to_owned(), items }
    }

    fn scraped(registry: &Registry) -> String {
        let mut text = String::new();
        encode(&mut text, registry).unwrap();
        text
    }

    #[test]
    fn an_accepted_order_is_counted_by_method_and_country() {
        let mut registry = Registry::default();
        let shop = Shop::register(&mut registry);
        assert_eq!(accept(&shop, &order(2)), Ok(2500));
        let text = scraped(&registry);
        let line = "shop_orders_total{method=\"BankTransfer\",country=\"pe\"} 1\n";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("shop_pricing_seconds_count 1\n"), "{text}");
    }

    #[test]
    fn a_refused_order_is_priced_and_not_counted() {
        let mut registry = Registry::default();
        let shop = Shop::register(&mut registry);
        assert_eq!(accept(&shop, &order(0)), Err("an empty basket"));
        let text = scraped(&registry);
        assert!(!text.contains("shop_orders_total"), "{text}");
        assert!(text.contains("shop_in_flight 0\n"), "{text}");
        assert!(text.contains("shop_pricing_seconds_count 1\n"), "{text}");
    }
}
