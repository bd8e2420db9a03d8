//! Metered by Talea from its declaration, without quantiles: with classic buckets alone.

use anyhow::Result;
use talea::{Bucketing, Registry};
use talea_http::axum::{Router, get};

use crate::{ROUTE, Service, hello};

pub(crate) fn service() -> Result<Service> {
    serviced(|router| router.bucketing(Bucketing::Classic))
}

/// The service, with what it chose of the metrics.
pub(crate) fn serviced(choose: impl FnOnce(Router) -> Router) -> Result<Service> {
    let registry = Registry::new()?;
    let app = choose(Router::new().route(ROUTE, get(hello))).metered(&registry)?;
    let counted = move || {
        let labels = [("method", "GET"), ("route", ROUTE), ("status", "2xx")];
        registry.snapshot().value("http_requests_total", &labels).map(|count| count as u64)
    };
    Ok(Service { app, counted: Box::new(counted) })
}
