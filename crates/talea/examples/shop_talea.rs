//! A shop that meters its orders. `shop_prometheus_client.rs` is the same program with
//! prometheus-client; docs/how-to/migrating.md counts the lines of both.

// Part: declare

use talea::{
    Counter, Family, Histogram, Info, LabelValue, Labels, Metrics, Registry, Seconds, UpDownCounter,
};

#[derive(Clone, Copy, LabelValue)]
#[label(rename_all = "PascalCase")]
enum Method {
    Card,
    BankTransfer,
}

#[derive(Labels)]
struct Sale<'a> {
    method: Method,
    country: &'a str,
}

#[derive(Labels)]
struct Build<'a> {
    version: &'a str,
}

#[derive(Metrics)]
#[metrics(prefix = "shop")]
struct Shop {
    /// Orders accepted.
    orders: Family<Sale<'static>, Counter>,
    /// Time to price an order.
    #[metric(buckets = [0.001, 0.01, 0.1, 1.0])]
    pricing: Histogram<Seconds>,
    /// Orders that are being priced.
    in_flight: UpDownCounter,
    /// The build of the program.
    build: Info<Build<'static>>,
}

static SHOP: Shop = Shop::new();

// Part: use

struct Order {
    method: Method,
    country: String,
    items: u64,
}

fn accept(shop: &Shop, order: &Order) -> Result<u64, &'static str> {
    let _in_flight = shop.in_flight.in_flight_guard();
    let cents = {
        let _timer = shop.pricing.start_timer();
        price(order)?
    };
    shop.orders.with(Sale { method: order.method, country: &order.country }).inc();
    Ok(cents)
}

fn price(order: &Order) -> Result<u64, &'static str> {
    if order.items == 0 { Err("an empty basket") } else { Ok(order.items * 1250) }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = Registry::new()?;
    talea::install(&registry, &[&SHOP])?;
    SHOP.build.set(Build { version: env!("CARGO_PKG_VERSION") });
    for (method, country, items) in
        [(Method::Card, "pe", 3), (Method::BankTransfer, "ch", 1), (Method::Card, "pe", 0)]
    {
        let order = Order { method, country: country.to_owned(), items };
        match accept(&SHOP, &order) {
            Ok(cents) => eprintln!("accepted, {cents} cents"),
            Err(reason) => eprintln!("refused: {reason}"),
        }
    }
    print!("{}", registry.snapshot().to_text());
    Ok(())
}

// Part: test

#[cfg(test)]
mod tests {
    use super::*;

    fn order(items: u64) -> Order {
        Order { method: Method::BankTransfer, country: "pe".to_owned(), items }
    }

    #[test]
    fn an_accepted_order_is_counted_by_method_and_country() {
        let (shop, registry) = Shop::for_test();
        assert_eq!(accept(&shop, &order(2)), Ok(2500));
        let snapshot = registry.snapshot();
        let labels = [("method", "BankTransfer"), ("country", "pe")];
        snapshot.assert_value("shop_orders_total", &labels, 1.0);
        assert_eq!(snapshot.expect_histogram("shop_pricing_seconds", &[]).count(), 1);
    }

    #[test]
    fn a_refused_order_is_priced_and_not_counted() {
        let (shop, registry) = Shop::for_test();
        assert_eq!(accept(&shop, &order(0)), Err("an empty basket"));
        let snapshot = registry.snapshot();
        snapshot.assert_no_series("shop_orders_total", &[]);
        snapshot.assert_value("shop_in_flight", &[], 0.0);
        assert_eq!(snapshot.expect_histogram("shop_pricing_seconds", &[]).count(), 1);
    }
}
