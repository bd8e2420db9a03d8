//! Metered by Talea from its declaration.

use anyhow::Result;
use talea::Registry;
use talea_http::Opts;
use talea_http::axum::{Router, get};

use crate::service::{Framework, ROUTE, Service, counted_by, hello};

pub(crate) fn service(opts: Opts) -> Result<Service> {
    let registry = Registry::new()?;
    let app = Router::new().route(ROUTE, get(hello)).metered_by(&opts.register(&registry)?);
    Ok(Service { framework: Framework::Axum(app), counted: counted_by(registry) })
}
