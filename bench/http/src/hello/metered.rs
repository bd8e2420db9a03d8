//! Metered by Talea from its declaration, without quantiles.

use anyhow::Result;
use talea::Registry;
use talea_http::axum::{Router, get};

use crate::{ROUTE, Service, hello};

pub(crate) fn service() -> Result<Service> {
    serviced(&Registry::new()?)
}

/// The service, with its metrics in this registry.
pub(crate) fn serviced(registry: &Registry) -> Result<Service> {
    let app = Router::new().route(ROUTE, get(hello)).metered(registry)?;
    let registry = registry.clone();
    let counted = move || {
        let labels = [("method", "GET"), ("route", ROUTE), ("status", "2xx")];
        registry.snapshot().value("http_requests_total", &labels).map(|count| count as u64)
    };
    Ok(Service { app, counted: Box::new(counted) })
}
