//! The subjects that meter the service.

mod by_axum_prometheus;
mod by_measured;
mod by_opentelemetry;
mod by_prometheus_client;
mod by_talea;

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::Result;
use fastant::Instant;

use super::case::Case;
use super::service::{router, uncounted};
use crate::work::{Work, work};

#[derive(Debug)]
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) make: fn(Case) -> Result<Box<dyn Work>>,
}

/// The subject of the budgets.
pub(super) const TALEA: &str = "talea";
/// Talea's router without metering: its difference from `talea` is the cost of metering itself.
pub(super) const UNMETERED: &str = "talea-unmetered";
/// axum's own router, metered from outside.
pub(super) const EXISTING: &str = "talea-existing";
pub(super) const CLOCK: &str = "two-clock-reads";

/// The baseline of all comparisons.
pub(super) const NOTHING: Subject = Subject { name: "nothing", make: nothing };

pub(super) const ALL: &[Subject] = &[
    NOTHING,
    Subject { name: TALEA, make: by_talea::declared },
    Subject { name: UNMETERED, make: by_talea::unmetered },
    Subject { name: EXISTING, make: by_talea::existing },
    Subject { name: "talea-router-layer", make: by_talea::router_layer },
    Subject { name: "talea-per-layer", make: by_talea::per_layer },
    Subject { name: "axum-prometheus", make: by_axum_prometheus::metered },
    Subject { name: "axum-otel-metrics", make: by_opentelemetry::metered },
    Subject { name: "measured", make: by_measured::metered },
    Subject { name: "prometheus-client", make: by_prometheus_client::metered },
    Subject { name: CLOCK, make: two_clock_reads },
];

fn nothing(case: Case) -> Result<Box<dyn Work>> {
    uncounted(router(case).with_state(()), case)
}

/// The least cost of a duration: the clock read when it begins and when it ends.
fn two_clock_reads(_: Case) -> Result<Box<dyn Work>> {
    work(
        AtomicU64::new(0),
        |count, _, n| {
            for _ in 0..n {
                black_box(black_box(Instant::now()).elapsed());
            }
            count.fetch_add(n, Relaxed);
        },
        |count| Ok(count.load(Relaxed)),
    )
}
