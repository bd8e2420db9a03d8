//! The subjects that meter the service.

mod by_axum_prometheus;
mod by_measured;
mod by_opentelemetry;
mod by_prometheus_client;
mod by_talea;
mod clock;

use anyhow::Result;

use super::service::{router, uncounted};
use super::{CLOCK, Case};
use crate::work::Work;

/// A way to meter requests.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) make: fn(Case) -> Result<Box<dyn Work>>,
}

/// The baseline of all comparisons.
pub(super) const NOTHING: Subject = Subject { name: "nothing", make: nothing };

pub(super) const ALL: &[Subject] = &[
    NOTHING,
    Subject { name: super::TALEA, make: by_talea::declared },
    Subject { name: super::UNMETERED, make: by_talea::unmetered },
    Subject { name: super::EXISTING, make: by_talea::existing },
    Subject { name: "talea-router-layer", make: by_talea::router_layer },
    Subject { name: super::PER_LAYER, make: by_talea::per_layer },
    Subject { name: "axum-prometheus", make: by_axum_prometheus::metered },
    Subject { name: "axum-otel-metrics", make: by_opentelemetry::metered },
    Subject { name: "measured", make: by_measured::metered },
    Subject { name: "prometheus-client", make: by_prometheus_client::metered },
    Subject { name: CLOCK, make: clock::two_reads },
];

fn nothing(case: Case) -> Result<Box<dyn Work>> {
    uncounted(router(case).with_state(()), case)
}
