//! The one recorder that the macros of `metrics` write to, as in a service.

use std::sync::LazyLock;

use anyhow::Result;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use super::histogram_kept::THRESHOLDS;

static RECORDER: LazyLock<PrometheusHandle> = LazyLock::new(|| {
    PrometheusBuilder::new()
        .set_buckets(&THRESHOLDS)
        .expect("there are thresholds")
        .install_recorder()
        .expect("no other recorder is installed anywhere")
});

/// Installs the recorder, the first time.
pub(super) fn installed() -> &'static PrometheusHandle {
    &RECORDER
}

/// The sum over all series of a name, as a scrape shows it.
pub(super) fn total(name: &str) -> Result<u64> {
    let samples = talea::parse::text(&installed().render())?;
    Ok(samples.iter().filter(|sample| sample.name == name).map(|sample| sample.value as u64).sum())
}
