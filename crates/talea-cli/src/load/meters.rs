//! What a load measures while it runs, in Talea's own metrics.

use std::time::Duration;

use anyhow::{Context, Result};
use talea::{Bucketing, Counter, Histogram, HistogramSnapshot, Opts, Registry, Seconds};

const RESPONSE_TIME: &str = "load_response_seconds";
const DONE: &str = "load_requests_done_total";

/// The metrics of this process's loads, one load at a time; clones share them.
#[derive(Clone)]
pub struct Meters {
    registry: Registry,
    response_time: Histogram<Seconds>,
    done: Counter,
}

/// What the meters have counted since one load began; clones share it.
#[derive(Clone)]
pub struct Window {
    meters: Meters,
    response_times_before: HistogramSnapshot,
    done_before: u64,
}

impl Meters {
    /// Metrics in a region of their own. The region stays until the process ends: make them once.
    ///
    /// # Errors
    /// When the region cannot be made.
    pub fn new() -> Result<Self> {
        let registry = Registry::new().context("no memory for the load's own metrics")?;
        let response_time = registry.register(
            // Quantiles within 1.08 %, from a microsecond to a minute and beyond.
            Opts::new(RESPONSE_TIME, "Time from the start of a request to the end of the answer.")
                .bucketing(Bucketing::Native)
                .schema(5)
                .max_buckets(1024),
        )?;
        let done = registry
            .register(Opts::new(DONE, "Requests answered, failed, or not possible to send."))?;
        Ok(Self { registry, response_time, done })
    }

    /// Begins a window. Observations only ever add, so a load's own are the difference.
    pub fn window(&self) -> Window {
        Window {
            response_times_before: self.response_times(),
            done_before: self.done.get(),
            meters: self.clone(),
        }
    }

    pub(super) fn observe(&self, took: Duration) {
        self.response_time.observe(took);
    }

    pub(super) fn done(&self) {
        self.done.inc();
    }

    fn response_times(&self) -> HistogramSnapshot {
        let snapshot = self.registry.snapshot();
        snapshot.histogram(RESPONSE_TIME, &[]).expect("the histogram was registered by new()")
    }
}

impl Window {
    /// How many requests are done with, for showing progress.
    pub fn requests_done(&self) -> u64 {
        self.meters.done.get() - self.done_before
    }

    /// The response times so far.
    pub fn response_times(&self) -> HistogramSnapshot {
        self.meters.response_times().diff(&self.response_times_before)
    }

    pub(super) fn meters(&self) -> &Meters {
        &self.meters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_come_close_to_the_times_of_the_window() {
        let meters = Meters::new().unwrap();
        meters.observe(Duration::from_secs(9));
        let window = meters.window();
        for micros in 1..=1000 {
            meters.observe(Duration::from_micros(micros * 100));
        }
        let times = window.response_times();
        assert_eq!(times.count(), 1000);
        for (quantile, expected) in [(0.5, 0.050), (0.99, 0.099)] {
            let found = times.quantile(quantile).unwrap();
            assert!((found / expected - 1.0).abs() < 0.0109, "{quantile}: {found}");
        }
    }
}
