//! The service without its metrics.

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;

pub(crate) const ROUTE: &str = "/hello/{name}";

pub(crate) struct Service {
    pub(crate) app: Router,
    pub(crate) counted: Counted,
}

/// Reads the number of requests in the metrics of a variant, if it has some.
pub(crate) type Counted = Arc<dyn Fn() -> Option<u64> + Send + Sync>;

pub(crate) async fn hello(Path(name): Path<String>) -> String {
    format!("Hello, {name}!")
}
