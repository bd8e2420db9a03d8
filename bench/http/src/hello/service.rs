//! The service without its metrics.

use axum::Router;
use axum::extract::Path;

pub(crate) const ROUTE: &str = "/hello/{name}";

/// A router, and a reader of the number of requests in its metrics.
pub(crate) struct Service {
    pub(crate) app: Router,
    pub(crate) counted: Box<dyn Fn() -> Option<u64>>,
}

pub(crate) async fn hello(Path(name): Path<String>) -> String {
    format!("Hello, {name}!")
}
