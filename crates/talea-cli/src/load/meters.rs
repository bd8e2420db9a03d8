//! The measurements of a load while it runs, in Talea's own metrics.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use talea::{Bucketing, Counter, Histogram, HistogramSnapshot, Opts, Registry, Seconds};

const RESPONSE_TIME: &str = "load_response_seconds";
const STEP: &str = "step";
const LATE: &str = "load_late_seconds";
const DONE: &str = "load_requests_done_total";

/// The metrics of this process's loads, one load at a time; clones share them.
#[derive(Clone)]
pub(crate) struct Meters {
    registry: Registry,
    /// By step.
    response_times: Arc<[Histogram<Seconds>]>,
    late: Histogram<Seconds>,
    done: Counter,
}

/// The counts of the meters since one load began; clones share them.
#[derive(Clone)]
pub(crate) struct Window {
    meters: Meters,
    response_times_before: HistogramSnapshot,
    step_times_before: Vec<HistogramSnapshot>,
    late_before: HistogramSnapshot,
    done_before: u64,
}

impl Meters {
    /// Metrics in a region of their own, for scenarios of so many steps. The region stays until the
    /// process ends: make them once. Fails when the region cannot be made.
    pub(crate) fn new(steps: usize) -> Result<Self> {
        let registry = Registry::new().context("no memory for the load's own metrics")?;
        // Quantiles within 1.08 %, from a microsecond to a minute and beyond.
        let times = |name, help| {
            let opts = Opts::new(name, help).bucketing(Bucketing::Native);
            opts.schema(5).max_buckets(1024)
        };
        let response_time =
            times(RESPONSE_TIME, "Time from the start of a request to the end of the answer.");
        let by_step = registry.family::<Histogram<Seconds>>(response_time, &[STEP])?;
        let of_step = |step: usize| by_step.with_values(&[step.to_string()]).keep();
        let response_times = (0..steps.max(1)).map(of_step).collect();
        let late = registry.register(times(
            LATE,
            "Time from when a request was to be made to when a client took it.",
        ))?;
        let done = registry
            .register(Opts::new(DONE, "Requests answered, failed, or not possible to send."))?;
        Ok(Self { registry, response_times, late, done })
    }

    /// Begins a window. Observations only ever add, so a load's own are the difference.
    pub(crate) fn window(&self) -> Window {
        Window {
            response_times_before: self.times(RESPONSE_TIME),
            step_times_before: self.step_times(),
            late_before: self.times(LATE),
            done_before: self.done.get(),
            meters: self.clone(),
        }
    }

    pub(super) fn observe(&self, step: usize, took: Duration) {
        self.response_times[step].observe(took);
    }

    pub(super) fn late(&self, by: Duration) {
        self.late.observe(by);
    }

    pub(super) fn done(&self) {
        self.done.inc();
    }

    fn step_times(&self) -> Vec<HistogramSnapshot> {
        let snapshot = self.registry.snapshot();
        let of_step = |step: usize| {
            let found = snapshot.histogram(RESPONSE_TIME, &[(STEP, &step.to_string())]);
            found.expect("the histogram was made by new()")
        };
        (0..self.response_times.len()).map(of_step).collect()
    }

    fn times(&self, name: &str) -> HistogramSnapshot {
        let snapshot = self.registry.snapshot();
        snapshot.histogram(name, &[]).expect("the histogram was registered by new()")
    }
}

impl Window {
    /// How many requests are done with, for showing progress.
    pub(crate) fn requests_done(&self) -> u64 {
        self.meters.done.get() - self.done_before
    }

    pub(crate) fn response_times(&self) -> HistogramSnapshot {
        self.meters.times(RESPONSE_TIME).diff(&self.response_times_before)
    }

    /// The response times of each step of the scenario.
    pub(super) fn step_times(&self) -> Vec<HistogramSnapshot> {
        let now = self.meters.step_times();
        now.iter().zip(&self.step_times_before).map(|(now, before)| now.diff(before)).collect()
    }

    /// How late clients took what arrived, in an open model.
    pub(crate) fn late(&self) -> HistogramSnapshot {
        self.meters.times(LATE).diff(&self.late_before)
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
        let meters = Meters::new(2).unwrap();
        meters.observe(0, Duration::from_secs(9));
        let window = meters.window();
        for micros in 1..=1000 {
            meters.observe(usize::from(micros > 500), Duration::from_micros(micros * 100));
        }
        let times = window.response_times();
        assert_eq!(times.count(), 1000);
        let [first, second] = &window.step_times()[..] else { panic!("two steps") };
        assert_eq!((first.count(), second.count()), (500, 500));
        assert!(first.quantile(1.0) < second.quantile(0.0).map(|least| least * 1.03));
        for (quantile, expected) in [(0.5, 0.050), (0.99, 0.099)] {
            let found = times.quantile(quantile).unwrap();
            assert!((found / expected - 1.0).abs() < 0.0109, "{quantile}: {found}");
        }
    }
}
