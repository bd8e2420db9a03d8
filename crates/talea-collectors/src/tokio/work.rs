//! The totals of the workers of a runtime.

use super::series::series;
use std::time::Duration;
use talea::{Counter, Error, FloatCounter, Opts, Registry};
use tokio::runtime::RuntimeMetrics;

use crate::total::Total;

/// Counters, and how far they have followed tokio's.
pub(super) struct Work {
    busy: FloatCounter,
    busy_nanoseconds: Total,
    parks: Counter,
    parked: Total,
    #[cfg(tokio_unstable)]
    spawned: (Counter, Total),
}

impl Work {
    pub(super) fn register(registry: &Registry, name: &str) -> Result<Self, Error> {
        let (busy, parks) = ("tokio_busy_seconds_total", "tokio_worker_parks_total");
        let help = "Time that the workers of the tokio runtime were not parked, in seconds.";
        let busy = series(registry, Opts::new(busy, help), busy, name)?;
        let help = "Times that a worker of the tokio runtime parked.";
        let parks = series(registry, Opts::new(parks, help), parks, name)?;
        #[cfg(tokio_unstable)]
        let spawned = {
            let name_of_it = "tokio_tasks_spawned_total";
            let help = "Tasks spawned on the tokio runtime.";
            series(registry, Opts::new(name_of_it, help), name_of_it, name)?
        };
        Ok(Self {
            busy,
            busy_nanoseconds: Total::default(),
            parks,
            parked: Total::default(),
            #[cfg(tokio_unstable)]
            spawned: (spawned, Total::default()),
        })
    }

    pub(super) fn follow(&self, metrics: &RuntimeMetrics) {
        let workers = 0..metrics.num_workers();
        let busy: Duration =
            workers.clone().map(|worker| metrics.worker_total_busy_duration(worker)).sum();
        let grown = self.busy_nanoseconds.grown(busy.as_nanos() as u64);
        self.busy.add(Duration::from_nanos(grown).as_secs_f64());
        let parked = workers.map(|worker| metrics.worker_park_count(worker)).sum();
        self.parks.add(self.parked.grown(parked));
        #[cfg(tokio_unstable)]
        self.spawned.0.add(self.spawned.1.grown(metrics.spawned_tasks_count()));
    }
}
