//! A faulty item is one error: its uses are no further ones.

use talea::{Counter, Family, LabelValue, Labels, Metrics};

#[derive(LabelValue)]
enum Method {
    Card(u8),
}

#[derive(Labels)]
struct Sale<'a> {
    method: Method,
    le: &'a str,
}

#[derive(Default, Metrics)]
struct Shop {
    orders: Family<Sale<'static>, Counter>,
}

static SHOP: Shop = Shop::new();

fn main() {
    let (shop, registry) = Shop::for_test();
    talea::install(&registry, &[&SHOP]).unwrap();
    shop.orders.with(Sale { method: Method::Card(1), le: "x" }).inc();
}
