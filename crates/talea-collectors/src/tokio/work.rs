//! What the workers of a runtime did, all together.

use super::series::series;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use talea::{Counter, Error, FloatCounter, Opts, Registry};
use tokio::runtime::RuntimeMetrics;

/// Counters, and how far they have followed tokio's.
pub(super) struct Work {
    busy: FloatCounter,
    busy_nanoseconds: Total,
    parks: Counter,
    parked: Total,
}

impl Work {
    pub(super) fn register(registry: &Registry, name: &str) -> Result<Self, Error> {
        let (busy, parks) = ("tokio_busy_seconds_total", "tokio_worker_parks_total");
        let help = "Time that the workers of the tokio runtime were not parked, in seconds.";
        let busy = series(registry, Opts::new(busy, help), busy, name)?;
        let help = "Times that a worker of the tokio runtime parked.";
        let parks = series(registry, Opts::new(parks, help), parks, name)?;
        Ok(Self { busy, busy_nanoseconds: Total::default(), parks, parked: Total::default() })
    }

    pub(super) fn follow(&self, metrics: &RuntimeMetrics) {
        let workers = 0..metrics.num_workers();
        let busy: Duration =
            workers.clone().map(|worker| metrics.worker_total_busy_duration(worker)).sum();
        let grown = self.busy_nanoseconds.grown(busy.as_nanos() as u64);
        self.busy.add(Duration::from_nanos(grown).as_secs_f64());
        let parked = workers.map(|worker| metrics.worker_park_count(worker)).sum();
        self.parks.add(self.parked.grown(parked));
    }
}

/// How far a total has been followed that only grows.
#[derive(Default)]
struct Total(AtomicU64);

impl Total {
    /// By how much it has grown since. Snapshots may be taken side by side: all that it
    /// grew by is told once, to one of them.
    fn grown(&self, total: u64) -> u64 {
        total.saturating_sub(self.0.fetch_max(total, Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn what_a_total_grew_by_is_told_once_however_many_ask() {
        let (followed, total) = (Total::default(), AtomicU64::new(0));
        let told = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        // What another thread read may be more by now.
                        let seen = total.fetch_add(3, Relaxed) + 3;
                        told.fetch_add(followed.grown(seen), Relaxed);
                    }
                });
            }
        });
        assert_eq!(told.into_inner(), 120_000);
    }
}
