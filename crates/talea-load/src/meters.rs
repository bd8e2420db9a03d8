//! The measurements of a load while it runs, in Talea's own metrics.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use talea::{Bucketing, Counter, Histogram, HistogramSnapshot, Opts, Registry, Seconds, Snapshot};

/// Each bucket of the times is 2^(2^-5), or 1.022, times as wide as the one before.
const SCHEMA: i8 = 5;
const STEP: &str = "step";
const LATE: &str = "load_late_seconds";
const HEAD: &str = "load_head_seconds";
const CONNECT: &str = "load_connect_seconds";
const RECEIVED: &str = "load_received_bytes_total";
const DONE: &str = "load_requests_done_total";

/// The metrics of this process's loads, one load at a time; clones share them.
#[derive(Clone)]
pub struct Meters {
    registry: Registry,
    response_times: Arc<[Histogram<Seconds>]>,
    heads: Histogram<Seconds>,
    pub(super) connects: Histogram<Seconds>,
    pub(super) late: Histogram<Seconds>,
    received: Counter,
    pub(super) failed: Counter,
    pub(super) done: Counter,
}

/// The counts of the meters since one load began; clones share them.
#[derive(Clone)]
pub struct Window {
    pub(super) meters: Meters,
    before: Arc<Snapshot>,
}

impl Meters {
    /// The histogram of response times.
    pub const RESPONSE_TIME: &str = "load_response_seconds";
    /// The share of itself by which a quantile of the times may be wrong, at most: half of a bucket
    /// of theirs, rounded up.
    pub const QUANTILE_ERROR: f64 = 0.010_84;
    /// The counter of failed requests.
    pub const FAILED: &str = "load_requests_failed_total";

    /// Metrics in a region of their own, for scenarios of so many steps. The region stays until the
    /// process ends: make them once. Fails when the region cannot be made,
    /// or has no room for so many.
    pub fn new(steps: usize) -> Result<Self> {
        let registry = Registry::new().context("no memory for the load's own metrics")?;
        // Quantiles within 1.08 %, from a microsecond to a minute and beyond.
        let times = |name, help| {
            let opts = Opts::new(name, help).bucketing(Bucketing::Native);
            opts.schema(SCHEMA).max_buckets(1024)
        };
        let help = "Time from the start of a request to the end of the answer.";
        let by_step = times(Self::RESPONSE_TIME, help).limit(steps.max(1) as u64);
        let by_step = registry.family::<Histogram<_>>(by_step, &[STEP])?;
        let of_step = |step: usize| by_step.with_values(&[step.to_string()]).keep();
        let response_times = (0..steps.max(1)).map(of_step).collect();
        let last = steps.saturating_sub(1).to_string();
        if registry.snapshot().histogram(Self::RESPONSE_TIME, &[(STEP, &last)]).is_none() {
            bail!("no memory for the times of {steps} steps");
        }
        let heads = registry
            .register(times(HEAD, "Time from the start of a request to the answer's head."))?;
        let connects = registry.register(times(CONNECT, "Time to open a connection."))?;
        let received = registry.register(Opts::new(RECEIVED, "Bytes of the answers' bodies."))?;
        let failed = registry.register(Opts::new(Self::FAILED, "Requests that failed."))?;
        let help = "Time from when a request was to be made to when a client took it.";
        let late = registry.register(times(LATE, help))?;
        let done = registry
            .register(Opts::new(DONE, "Requests answered, failed, or not possible to send."))?;
        Ok(Self { registry, response_times, heads, connects, late, received, failed, done })
    }

    /// Begins a window. Observations only ever add, so a load's own are the difference.
    pub fn window(&self) -> Window {
        Window { before: Arc::new(self.registry.snapshot()), meters: self.clone() }
    }

    /// An answer that was read to its end: when its head and its end came, and how long it was.
    pub(super) fn answered(&self, step: usize, head: Duration, took: Duration, bytes: u64) {
        self.heads.observe(head);
        self.response_times[step].observe(took);
        self.received.add(bytes);
    }

    /// All that has been measured until now.
    pub fn snapshot(&self) -> Snapshot {
        self.registry.snapshot()
    }
}

impl Window {
    /// How many requests are done with, for showing progress.
    pub fn requests_done(&self) -> u64 {
        self.count(DONE, &self.meters.done)
    }

    /// How many requests have failed.
    pub fn requests_failed(&self) -> u64 {
        self.count(Meters::FAILED, &self.meters.failed)
    }

    pub(super) fn bytes_received(&self) -> u64 {
        self.count(RECEIVED, &self.meters.received)
    }

    /// The response times of all steps.
    pub fn response_times(&self) -> HistogramSnapshot {
        self.times(Meters::RESPONSE_TIME)
    }

    pub(super) fn step_times(&self) -> Vec<HistogramSnapshot> {
        let now = self.meters.snapshot();
        let of_step = |step: usize| {
            self.times_until(&now, Meters::RESPONSE_TIME, &[(STEP, &step.to_string())])
        };
        (0..self.meters.response_times.len()).map(of_step).collect()
    }

    pub(super) fn head_times(&self) -> HistogramSnapshot {
        self.times(HEAD)
    }

    pub(super) fn connect_times(&self) -> HistogramSnapshot {
        self.times(CONNECT)
    }

    /// How late clients took what arrived, in an open model.
    pub fn late(&self) -> HistogramSnapshot {
        self.times(LATE)
    }

    fn count(&self, name: &str, counter: &Counter) -> u64 {
        let before = self.before.value(name, &[]).expect("the counter was registered by new()");
        counter.get() - before as u64
    }

    fn times(&self, name: &str) -> HistogramSnapshot {
        self.times_until(&self.meters.snapshot(), name, &[])
    }

    fn times_until(
        &self,
        now: &Snapshot,
        name: &str,
        labels: &[(&str, &str)],
    ) -> HistogramSnapshot {
        let of = |snapshot: &Snapshot| {
            snapshot.histogram(name, labels).expect("the histogram was registered by new()")
        };
        of(now).diff(&of(&self.before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_many_steps_has_times_of_its_own_or_there_is_no_load() {
        let meters = Meters::new(2_001).unwrap();
        let window = meters.window();
        meters.answered(2_000, Duration::ZERO, Duration::from_millis(7), 0);
        let times = |step| {
            window.times_until(&meters.snapshot(), Meters::RESPONSE_TIME, &[(STEP, step)]).count()
        };
        assert_eq!((times("1999"), times("2000")), (0, 1));
        let error = Meters::new(300_000).err().unwrap();
        assert!(error.to_string().contains("300000 steps"), "{error}");
    }

    #[test]
    fn quantiles_come_close_to_the_times_of_the_window() {
        let meters = Meters::new(2).unwrap();
        meters.answered(0, Duration::ZERO, Duration::from_secs(9), 7);
        meters.failed.inc();
        meters.done.add(3);
        let window = meters.window();
        meters.done.inc();
        assert_eq!((window.requests_failed(), window.requests_done()), (0, 1));
        for micros in 1..=1000 {
            let took = Duration::from_micros(micros * 100);
            meters.answered(usize::from(micros > 500), took / 2, took, 3);
        }
        let times = window.response_times();
        assert_eq!((times.count(), window.bytes_received()), (1000, 3000));
        assert!(window.head_times().quantile(1.0).is_some_and(|head| head < 0.051));
        let [first, second] = &window.step_times()[..] else { panic!("two steps") };
        assert_eq!((first.count(), second.count()), (500, 500));
        assert!(first.quantile(1.0) < second.quantile(0.0).map(|least| least * 1.03));
        for (quantile, expected) in [(0.5, 0.050), (0.99, 0.099)] {
            let found = times.quantile(quantile).unwrap();
            assert!((found / expected - 1.0).abs() < 0.0109, "{quantile}: {found}");
        }
    }
}
