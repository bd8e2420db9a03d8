//! A shop on axum: a metered router, metrics of its own, and a port that shows them.
//!
//! ```sh
//! cargo run -p shop-axum
//! curl -X POST http://127.0.0.1:3000/orders/pe/card
//! curl http://127.0.0.1:9464/metrics
//! ```

use std::time::Duration;

use axum::extract::Path;
use axum::http::StatusCode;
use talea::{Counter, Family, Histogram, LabelValue, Labels, Seconds, UpDownCounter};
use talea_http::axum::{Router, get, post};

#[derive(Clone, Copy, LabelValue)]
enum Method {
    Card,
    Transfer,
}

#[derive(Labels)]
struct Sale<'a> {
    method: Method,
    country: &'a str,
}

#[derive(Labels)]
struct By {
    method: Method,
}

/// Orders accepted.
#[talea::register(name = "shop_orders")]
static ORDERS: Family<Sale<'static>, Counter> = Family::new();

/// Time to pay.
#[talea::register(name = "shop_payment", buckets = [0.01, 0.1, 1.0, 10.0])]
static PAYMENT: Family<By, Histogram<Seconds>> = Family::new();

/// Payments begun.
#[talea::register(name = "shop_payments")]
static PAYMENTS: Counter = Counter::new();

/// Payments that failed.
#[talea::register(name = "shop_payments_failed")]
static PAYMENTS_FAILED: Counter = Counter::new();

/// Payments that are under way.
#[talea::register(name = "shop_payments_open")]
static PAYMENTS_OPEN: Family<By, UpDownCounter> = Family::new();

async fn order(Path((country, method)): Path<(String, String)>) -> StatusCode {
    let method = match method.as_str() {
        "card" => Method::Card,
        _ => Method::Transfer,
    };
    match pay(method).await {
        Ok(()) => {
            ORDERS.with(Sale { method, country: &country }).inc();
            StatusCode::CREATED
        }
        Err(()) => StatusCode::PAYMENT_REQUIRED,
    }
}

#[talea::timed(PAYMENT.with(By { method }))]
#[talea::counted(PAYMENTS, error = PAYMENTS_FAILED)]
async fn pay(method: Method) -> Result<(), ()> {
    let _open = PAYMENTS_OPEN.with(By { method }).in_flight_guard();
    tokio::time::sleep(Duration::from_millis(1)).await;
    match method {
        Method::Card => Ok(()),
        Method::Transfer => Err(()),
    }
}

fn shop() -> Result<axum::Router, talea::Error> {
    Router::new()
        .route("/", get(async || "a shop"))
        .route("/orders/{country}/{method}", post(order))
        .metered(talea::default_registry()?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let metrics = talea_http::serve(([127, 0, 0, 1], 9464))?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("http://{}/, metrics at http://{}/", listener.local_addr()?, metrics.local_addr());
    Ok(axum::serve(listener, shop()?).await?)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn the_page_shows_what_the_shop_did() -> Result<(), talea::Error> {
        let shop = shop()?;
        for (method, status) in [("card", 201), ("card", 201), ("transfer", 402)] {
            let request = Request::post(format!("/orders/pe/{method}")).body(Body::empty());
            let response = shop.clone().oneshot(request.unwrap()).await.unwrap();
            assert_eq!(response.status(), status);
        }
        let snapshot = talea::default_registry()?.snapshot();
        let asked = [("method", "POST"), ("route", "/orders/{country}/{method}")];
        let answered = |status| [asked[0], asked[1], ("status", status)];
        snapshot.assert_value("shop_orders_total", &[("method", "card"), ("country", "pe")], 2.0);
        snapshot.assert_value("shop_payments_total", &[], 3.0);
        snapshot.assert_value("shop_payments_failed_total", &[], 1.0);
        snapshot.assert_value("shop_payments_open", &[("method", "card")], 0.0);
        let payment = snapshot.expect_histogram("shop_payment_seconds", &[("method", "card")]);
        assert_eq!(payment.count(), 2);
        snapshot.assert_value("http_requests_total", &answered("2xx"), 2.0);
        snapshot.assert_value("http_requests_total", &answered("4xx"), 1.0);
        let text = snapshot.to_text();
        assert!(text.lines().count() < 90, "{text}");
        Ok(())
    }
}
