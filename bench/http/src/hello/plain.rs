//! No metrics.

use axum::Router;
use axum::routing::get;

use crate::{ROUTE, Service, hello};

pub(crate) fn service() -> Service {
    Service { app: Router::new().route(ROUTE, get(hello)), counted: Box::new(|| None) }
}
