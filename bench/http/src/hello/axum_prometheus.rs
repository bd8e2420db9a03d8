//! Metered by axum-prometheus, as its documentation begins.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use axum_prometheus::PrometheusMetricLayer;

use crate::service::{Framework, ROUTE, Service, hello};

pub(crate) fn service() -> Service {
    let (layer, handle) = PrometheusMetricLayer::pair();
    let app = Router::new().route(ROUTE, get(hello)).layer(layer);
    Service {
        framework: Framework::Axum(app),
        counted: Arc::new(move || {
            let text = handle.render();
            let line = text.lines().find(|line| line.starts_with("axum_http_requests_total{"));
            // It has no line before the first request.
            line.map_or(Some(0), |line| line.rsplit(' ').next()?.parse().ok())
        }),
    }
}
