//! OpenTelemetry, by the layer axum-otel-metrics: its SDK, and a reader that collects once
//! a minute, as by default.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::Result;
use axum_otel_metrics::HttpMetricsLayerBuilder;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics};
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider, Temporality};

use crate::http_layer::case::Case;
use crate::http_layer::service::{requests, router};
use crate::work::Work;

pub(super) fn metered(case: Case) -> Result<Box<dyn Work>> {
    let exporter = CountingExporter::default();
    let count = Arc::clone(&exporter.requests);
    let reader = PeriodicReader::builder(exporter).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    let layer = HttpMetricsLayerBuilder::new().with_provider(provider.clone()).build();
    requests(router(case).layer(layer).with_state(()), case, move || {
        provider.force_flush()?;
        Ok(count.load(Relaxed))
    })
}

/// An exporter that keeps the number of requests in the metrics that it receives.
#[derive(Default)]
struct CountingExporter {
    requests: Arc<AtomicU64>,
}

impl PushMetricExporter for CountingExporter {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let all = metrics.scope_metrics().flat_map(|scope| scope.metrics());
        for metric in all.filter(|metric| metric.name() == "http.server.request.duration") {
            if let AggregatedMetrics::F64(MetricData::Histogram(durations)) = metric.data() {
                let count = durations.data_points().map(|point| point.count()).sum();
                self.requests.store(count, Relaxed);
            }
        }
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}
