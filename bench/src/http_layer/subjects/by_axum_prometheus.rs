//! axum-prometheus, as its documentation begins.

use anyhow::Result;
use axum_prometheus::PrometheusMetricLayer;
use tokio::runtime;

use crate::http_layer::case::Case;
use crate::http_layer::service::{requests, router};
use crate::recorder::sum_of;
use crate::work::Work;

pub(super) fn metered(case: Case) -> Result<Box<dyn Work>> {
    // It does its upkeep in a task of its own, every 5 seconds.
    let upkeep = runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build()?;
    let (layer, handle) = upkeep.block_on(async { PrometheusMetricLayer::pair() });
    requests(router(case).layer(layer).with_state(()), case, move || {
        // The runtime lives as long as the metrics.
        let _ = &upkeep;
        sum_of(&handle.render(), "axum_http_requests_total")
    })
}
