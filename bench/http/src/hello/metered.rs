//! Metered by Talea from its declaration.

use std::sync::Arc;

use anyhow::Result;
use talea::Registry;
use talea_http::Opts;
use talea_http::axum::{Router, get};

use crate::service::{ROUTE, Service, hello};

pub(crate) fn service(opts: Opts) -> Result<Service> {
    let registry = Registry::new()?;
    let app = Router::new().route(ROUTE, get(hello)).metered_by(&opts.register(&registry)?);
    Ok(Service {
        app,
        counted: Arc::new(move || {
            let labels = [("method", "GET"), ("route", ROUTE), ("status", "2xx")];
            registry.snapshot().value("http_requests_total", &labels).map(|count| count as u64)
        }),
    })
}
