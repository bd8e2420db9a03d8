//! Everything that the derives take.

use std::net::IpAddr;
use std::time::Duration;

use talea::{
    Counter, Family, Gauge, Histogram, HttpMethod, LabelValue, Labels, Metrics, Seconds,
    StatusClass,
};

#[derive(LabelValue)]
#[label(rename_all = "kebab-case")]
enum Method {
    Card,
    BankTransfer,
    #[label(rename = "I.O.U.")]
    Iou,
    r#Else,
}

talea::label_set! {
    /// The shops.
    pub struct Branch;
}

#[derive(Labels)]
struct Sale<'a> {
    method: Method,
    #[label(rename = "country")]
    land: &'a str,
    #[label(display)]
    from: &'a IpAddr,
    branch: Option<Branch>,
    r#type: HttpMethod,
}

#[derive(Labels)]
struct Fixed {
    class: StatusClass,
}

#[derive(Labels)]
struct None {}

#[derive(Metrics)]
#[metrics(prefix = "shop")]
struct Shop {
    /// Orders.
    #[metric(name = "sales", limit = 10, striped = false)]
    orders: Family<Sale<'static>, Counter>,
    /// Time to answer.
    #[metric(buckets = [0.1, 1.0], expires_after = Some(Duration::from_secs(60)))]
    answers: Family<Fixed, Histogram<Seconds>>,
    /// One.
    one: Family<None, Gauge>,
    #[metric(nested)]
    stock: Stock,
}

#[derive(Metrics)]
struct Stock {
    /// Things in store.
    stock: Gauge,
}

static SHOP: Shop = Shop::new();

fn main() {
    let registry = talea::Registry::for_test().unwrap();
    let message = talea::install(&registry, &[&SHOP]).unwrap_err().to_string();
    assert!(message.contains("call `Branch::fix(…)`"), "{message}");
    Branch::fix(["Lima"]).unwrap();
    talea::install(&registry, &[&SHOP]).unwrap();
    let (method, from) = (Method::BankTransfer, IpAddr::from([127, 0, 0, 1]));
    let branch = Branch::find("Lima");
    let sale = Sale { method, land: "pe", from: &from, branch, r#type: HttpMethod::Get };
    SHOP.orders.with(&sale).inc();
    let labels = [
        ("method", "bank-transfer"),
        ("country", "pe"),
        ("from", "127.0.0.1"),
        ("branch", "Lima"),
        ("type", "GET"),
    ];
    assert_eq!(registry.snapshot().value("shop_sales_total", &labels), Some(1.0));
    let _ = (Method::Card, Method::Iou, Method::Else);
}
