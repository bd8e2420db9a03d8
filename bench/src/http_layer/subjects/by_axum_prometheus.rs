//! axum-prometheus, as its documentation begins, with the process's one recorder.

use std::time::Duration;

use anyhow::Result;
use axum_prometheus::PrometheusMetricLayerBuilder;
use tokio::{runtime, time};

use crate::http_layer::case::Case;
use crate::http_layer::service::{requests, router};
use crate::recorder::{self, sum_of};
use crate::work::Work;

/// As often as the recorder that axum-prometheus installs itself.
const UPKEEP: Duration = Duration::from_secs(5);

pub(super) fn metered(case: Case) -> Result<Box<dyn Work>> {
    let upkeep = runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build()?;
    upkeep.spawn(async {
        loop {
            time::sleep(UPKEEP).await;
            recorder::installed().run_upkeep();
        }
    });
    let (layer, handle) = PrometheusMetricLayerBuilder::new()
        .with_metrics_from_fn(|| recorder::installed().clone())
        .build_pair();
    requests(router(case).layer(layer).with_state(()), case, move || {
        // The runtime lives as long as the metrics.
        let _ = &upkeep;
        sum_of(&handle.render(), "axum_http_requests_total")
    })
}
