//! The service without its metrics.

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use talea::Registry;
use talea_http::actix::Meter;

pub(crate) const ROUTE: &str = "/hello/{name}";

pub(crate) struct Service {
    pub(crate) framework: Framework,
    pub(crate) counted: Counted,
}

pub(crate) enum Framework {
    Axum(Router),
    Actix(Option<Meter>),
}

/// Reads the number of requests in the metrics of a variant, if it has some.
pub(crate) type Counted = Arc<dyn Fn() -> Option<u64> + Send + Sync>;

/// Reads it in the metrics of Talea.
pub(crate) fn counted_by(registry: Registry) -> Counted {
    Arc::new(move || {
        let labels = [("method", "GET"), ("route", ROUTE), ("status", "2xx")];
        registry.snapshot().value("http_requests_total", &labels).map(|count| count as u64)
    })
}

pub(crate) async fn hello(Path(name): Path<String>) -> String {
    format!("Hello, {name}!")
}
