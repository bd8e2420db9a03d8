//! The recorder that the macros of `metrics` write to: one in a process, as in a service.

use std::sync::LazyLock;

use anyhow::Result;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::thresholds::THRESHOLDS;

static RECORDER: LazyLock<PrometheusHandle> = LazyLock::new(|| {
    PrometheusBuilder::new()
        .set_buckets(&THRESHOLDS)
        .expect("there are thresholds")
        .install_recorder()
        .expect("no other recorder is installed anywhere")
});

/// Installs the recorder, the first time.
pub(crate) fn installed() -> &'static PrometheusHandle {
    &RECORDER
}

/// Observations are kept in lists that an upkeep must empty from time to time. The first thread
/// does it, each time that it has a multiple of `UPKEEP` observations left. Observations of others
/// at that moment can be lost: metrics-util 0.20.4 publishes a new block of a list before it links
/// the older ones to it.
#[inline]
pub(crate) fn keep_up(thread: usize, left: u64) {
    const UPKEEP: u64 = 65_536;
    if thread == 0 && left.is_multiple_of(UPKEEP) {
        installed().run_upkeep();
    }
}

/// The sum over all series of a name, as a scrape shows it.
pub(crate) fn total(name: &str) -> Result<u64> {
    sum_of(&installed().render(), name)
}

/// The sum over all series of a name in a text.
pub(crate) fn sum_of(text: &str, name: &str) -> Result<u64> {
    let samples = talea_parse::text(text)?;
    Ok(samples.iter().filter(|sample| sample.name == name).map(|sample| sample.value as u64).sum())
}
