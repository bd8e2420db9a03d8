//! The measurements of a load while it runs, in Talea's own metrics.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use talea::{Bucketing, Counter, Histogram, HistogramSnapshot, Opts, Registry, Seconds, Snapshot};

use crate::plan::Plan;
use crate::progress::Progress;
use crate::published::Published;
use crate::times::Times;

/// Each bucket of the times is 2^(2^-5), or 1.022, times as wide as the one before.
const SCHEMA: i8 = 5;
const STEP: &str = "step";
const LATE: &str = "load_late_seconds";
const HEAD: &str = "load_head_seconds";
const HEAD_CENSORED: &str = "load_head_censored_seconds";
const SENT: &str = "load_sent_response_seconds";
const SENT_CENSORED: &str = "load_sent_response_censored_seconds";
const CONNECT: &str = "load_connect_seconds";
const CONNECT_CENSORED: &str = "load_connect_censored_seconds";
const RECEIVED: &str = "load_received_bytes_total";
const DONE: &str = "load_requests_done_total";

/// The metrics of this process's loads, one load at a time; clones share them.
#[derive(Clone)]
pub struct Meters {
    registry: Registry,
    steps: Arc<[StepMeters]>,
    heads: Histogram<Seconds>,
    heads_censored: Histogram<Seconds>,
    /// Response times from when the request was sent, of an open model.
    sent: Histogram<Seconds>,
    sent_censored: Histogram<Seconds>,
    pub(super) connects: Histogram<Seconds>,
    connects_censored: Histogram<Seconds>,
    pub(super) late: Histogram<Seconds>,
    received: Counter,
    pub(super) failed: Counter,
    pub(super) done: Counter,
    /// What others read, if it is published.
    pub(super) published: Option<Published>,
}

/// The response times of a step: of its answers, and how long those were waited for that had no response in time.
struct StepMeters {
    answered: Histogram<Seconds>,
    censored: Histogram<Seconds>,
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
    /// The histogram of how long requests were waited for that timed out, or were under way when the load was
    /// stopped: lower bounds of their response times.
    pub const CENSORED: &str = "load_response_censored_seconds";
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
        let response_times = |name, help| {
            let opts = times(name, help).limit(steps.max(1) as u64);
            registry.family::<Histogram<_>>(opts, &[STEP])
        };
        let help = "Time from the start of a request to the end of the response.";
        let answered = response_times(Self::RESPONSE_TIME, help)?;
        let help = "Time waited for requests without a response: they took at least that long.";
        let censored = response_times(Self::CENSORED, help)?;
        let by_step = (0..steps.max(1))
            .map(|step| {
                let step = step.to_string();
                let [answered, censored] =
                    [&answered, &censored].map(|family| family.with_values(&[&step]).keep());
                StepMeters { answered, censored }
            })
            .collect();
        let last = steps.saturating_sub(1).to_string();
        let made = registry.snapshot();
        let is_made = |name| made.histogram(name, &[(STEP, &last)]).is_some();
        if !is_made(Self::RESPONSE_TIME) || !is_made(Self::CENSORED) {
            bail!("no memory for the times of {steps} steps");
        }
        let heads = registry.register(times(
            HEAD,
            "Time from the start of a request to the head of the response.",
        ))?;
        let help = "Time waited for heads of responses that did not arrive.";
        let heads_censored = registry.register(times(HEAD_CENSORED, help))?;
        let help =
            "Time from when a request was sent to the end of the response, of an open model.";
        let sent = registry.register(times(SENT, help))?;
        let help = "Time waited for such responses that did not arrive.";
        let sent_censored = registry.register(times(SENT_CENSORED, help))?;
        let connects = registry.register(times(CONNECT, "Time to open a connection."))?;
        let help = "Time waited for connections that did not open.";
        let connects_censored = registry.register(times(CONNECT_CENSORED, help))?;
        let received =
            registry.register(Opts::new(RECEIVED, "Bytes in the bodies of responses."))?;
        let failed = registry.register(Opts::new(Self::FAILED, "Requests that failed."))?;
        let help = "Time from when a request was due to when a client took it.";
        let late = registry.register(times(LATE, help))?;
        let done =
            registry.register(Opts::new(DONE, "Requests with a response, failed, or not sent."))?;
        Ok(Self {
            registry,
            steps: by_step,
            heads,
            heads_censored,
            sent,
            sent_censored,
            connects,
            connects_censored,
            late,
            received,
            failed,
            done,
            published: None,
        })
    }

    /// Also counts a plan's requests in the region of a file, which is created if it is missing, so that an agent
    /// shows them while they are made. Fails when the file cannot be one of a region.
    pub fn published_in(self, path: &Path, plan: &Plan) -> Result<Self> {
        Ok(Self { published: Some(Published::open(path, plan)?), ..self })
    }

    /// Begins a window. Observations only ever add, so a load's own are the difference.
    pub fn window(&self) -> Window {
        Window { before: Arc::new(self.registry.snapshot()), meters: self.clone() }
    }

    /// An answer that was read to its end: when its head and its end came, and how long it was.
    pub(super) fn answered(&self, step: usize, head: Duration, took: Duration, bytes: u64) {
        self.heads.observe(head);
        self.steps[step].answered.observe(took);
        self.received.add(bytes);
    }

    /// An answer of an open model: how long after the request was sent.
    pub(super) fn answered_since_sent(&self, took: Duration) {
        self.sent.observe(took);
    }

    /// A request of an open model that has no answer so long after it was sent.
    pub(super) fn censored_since_sent(&self, waited: Duration) {
        self.sent_censored.observe(waited);
    }

    /// A request that timed out, or was under way when the load was stopped: how far it had come, since when its
    /// client had it, and how long it was waited for.
    pub(super) fn censored(
        &self,
        step: usize,
        progress: Progress,
        begun: Instant,
        waited: Duration,
    ) {
        if let Some(since) = progress.connecting_since {
            self.connects_censored.observe(since.elapsed());
        }
        match progress.head {
            Some(head) => self.heads.observe(head),
            None => self.heads_censored.observe(progress.sent_at.unwrap_or(begun).elapsed()),
        }
        self.waited_in_vain(step, waited);
    }

    /// A request that has no answer after so long.
    pub(super) fn waited_in_vain(&self, step: usize, waited: Duration) {
        self.steps[step].censored.observe(waited);
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
    pub fn response_times(&self) -> Times {
        self.times(Meters::RESPONSE_TIME, Meters::CENSORED, &[])
    }

    pub(super) fn step_times(&self) -> Vec<Times> {
        let now = self.meters.snapshot();
        (0..self.meters.steps.len())
            .map(|step| {
                let labels = [(STEP, &*step.to_string())];
                self.times_until(&now, Meters::RESPONSE_TIME, Meters::CENSORED, &labels)
            })
            .collect()
    }

    pub(super) fn head_times(&self) -> Times {
        self.times(HEAD, HEAD_CENSORED, &[])
    }

    pub(super) fn sent_times(&self) -> Times {
        self.times(SENT, SENT_CENSORED, &[])
    }

    pub(super) fn connect_times(&self) -> Times {
        self.times(CONNECT, CONNECT_CENSORED, &[])
    }

    /// How late clients took what arrived, in an open model.
    pub fn late(&self) -> HistogramSnapshot {
        self.histogram_until(&self.meters.snapshot(), LATE, &[])
    }

    fn count(&self, name: &str, counter: &Counter) -> u64 {
        let before = self.before.value(name, &[]).expect("the counter was registered by new()");
        counter.get() - before as u64
    }

    fn times(&self, known: &str, censored: &str, labels: &[(&str, &str)]) -> Times {
        self.times_until(&self.meters.snapshot(), known, censored, labels)
    }

    fn times_until(
        &self,
        now: &Snapshot,
        known: &str,
        censored: &str,
        labels: &[(&str, &str)],
    ) -> Times {
        let [known, censored] =
            [known, censored].map(|name| self.histogram_until(now, name, labels));
        Times { known, censored }
    }

    fn histogram_until(
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
        let times =
            |step| window.times(Meters::RESPONSE_TIME, Meters::CENSORED, &[(STEP, step)]).known();
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
        assert_eq!((times.known(), window.bytes_received()), (1000, 3000));
        assert!(window.head_times().quantile(1.0).is_some_and(|head| head.ms < 51.0));
        let [first, second] = &window.step_times()[..] else { panic!("two steps") };
        assert_eq!((first.known(), second.known()), (500, 500));
        let ms = |times: &Times, quantile| times.quantile(quantile).unwrap().ms;
        assert!(ms(first, 1.0) < ms(second, 0.0) * 1.03);
        for (quantile, expected) in [(0.5, 50.0), (0.99, 99.0)] {
            let found = ms(&times, quantile);
            assert!((found / expected - 1.0).abs() < 0.0109, "{quantile}: {found}");
        }
    }

    /// Times in milliseconds, and lower bounds of others.
    fn times(known: &[u64], censored: &[u64]) -> Times {
        let meters = Meters::new(1).unwrap();
        let window = meters.window();
        let ms = Duration::from_millis;
        known.iter().for_each(|time| meters.answered(0, ms(*time), ms(*time), 0));
        censored.iter().for_each(|time| meters.waited_in_vain(0, ms(*time)));
        window.response_times()
    }

    #[test]
    fn a_quantile_that_lies_among_unknown_times_is_a_lower_bound() {
        let quick = [10; 90];
        for (known, censored, quantile, expected, at_least) in [
            (&quick[..], &[][..], 0.99, 10.0, false),
            // A tenth timed out after a second.
            (&quick, &[1_000; 10], 0.5, 10.0, false),
            (&quick, &[1_000; 10], 0.9, 10.0, false),
            (&quick, &[1_000; 10], 0.91, 1_000.0, true),
            (&quick, &[1_000; 10], 0.99, 1_000.0, true),
            (&quick, &[1_000; 10], 1.0, 1_000.0, true),
            // Cut off early, they may have taken as long or longer: the 95th of 100 is among those.
            (&quick, &[1; 10], 0.5, 10.0, false),
            (&quick, &[1; 10], 0.95, 10.0, true),
            // The 50th of 100 is 10 ms if the ten had ended at once, and 20 ms if never.
            (&[[10; 45], [20; 45]].concat(), &[1; 10], 0.5, 10.0, true),
            (&[], &[1_000; 3], 0.01, 1_000.0, true),
        ] {
            let times = times(known, censored);
            let found = times.quantile(quantile).unwrap();
            assert_eq!(found.at_least, at_least, "{quantile} of {censored:?}: {found:?}");
            let error = found.ms / expected - 1.0;
            assert!(error.abs() < 0.022, "{quantile} of {censored:?}: {found:?}");
            assert!(!at_least || error < 1e-9, "more than is known: {found:?}");
            assert_eq!(times.known() + times.censored(), (known.len() + censored.len()) as u64);
        }
        assert_eq!(times(&[], &[]).quantile(0.5), None);
        assert_eq!(times(&[], &[]).mean(), None);
        let mean = times(&[10; 9], &[110]).mean().unwrap();
        assert!((mean.ms - 20.0).abs() < 1e-6 && mean.at_least, "{mean:?}");
        assert_eq!(mean.to_string(), "≥ 20.0");
    }
}
