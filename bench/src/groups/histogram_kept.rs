//! A histogram without labels with 14 thresholds in seconds, its handle kept;
//! each observation is another one, and the sum is kept too.

use std::sync::LazyLock;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{Context, Result};
use measured::metric::histogram::{HistogramState, Thresholds};
use prometheus_client::metrics::histogram::Histogram as ClientHistogram;
use prometheus_client::registry::Registry as ClientRegistry;
use talea::{Histogram, Opts, Registry, Seconds};

use super::{counter_kept, recorder};
use crate::randomness::{Random, Sequence};
use crate::work::{Group, Place, Setting, Subject, Work, work};

pub(super) const GROUP: Group = Group {
    name: "histogram-kept",
    threads: &[1, 2],
    subjects: &[
        Subject::new("talea", talea),
        Subject::talea_atomic(talea),
        Subject::new("measured", measured),
        Subject::new("prometheus", prometheus),
        Subject::new("prometheus-client", prometheus_client),
        Subject { loses: 0.01, ..Subject::new("metrics", metrics) },
        Subject::new("atomic-own", counter_kept::atomic_own),
    ],
    place: Place::Here,
    note: "ns: time of a thread for one observation. metrics includes what it \
           puts off until its upkeep. atomic-own is one bare add, as a yardstick.",
};

/// Those of OpenTelemetry's `http.server.request.duration`.
pub(super) const THRESHOLDS: [f64; 14] =
    [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

/// From 1 ms to 20 s, as many in each octave.
pub(super) fn duration(random: &mut Random) -> Duration {
    Duration::from_secs_f64(0.001 * 20_000_f64.powf(random.fraction()))
}

static DURATIONS: LazyLock<Sequence<Duration>> = LazyLock::new(|| Sequence::of(1, duration));

/// The same in seconds, for those who observe floats.
static FLOATS: LazyLock<Sequence<f64>> =
    LazyLock::new(|| DURATIONS.map(|duration| duration.as_secs_f64()));

fn talea(_: &Setting) -> Result<Box<dyn Work>> {
    let registry = Registry::new()?;
    let opts = Opts::new("kept_seconds", "Time.").buckets(&THRESHOLDS);
    let histogram: Histogram<Seconds> = registry.register(opts)?;
    work(
        (registry, histogram),
        |(_, histogram), thread, n| DURATIONS.walk(thread, n, |d| histogram.observe(d)),
        |(registry, _)| {
            let found = registry.snapshot().histogram("kept_seconds", &[]);
            Ok(found.context("there is no such histogram")?.count())
        },
    )
}

fn measured(_: &Setting) -> Result<Box<dyn Work>> {
    work(
        measured::Histogram::with_metadata(Thresholds::with_buckets(THRESHOLDS)),
        |histogram, thread, n| FLOATS.walk(thread, n, |x| histogram.observe(x)),
        |histogram| Ok(measured_count(&histogram.get_metric())),
    )
}

pub(super) fn measured_count<const N: usize>(state: &HistogramState<N>) -> u64 {
    let state = state.inner.read();
    let below: u64 = state.buckets.iter().map(|bucket| bucket.load(Relaxed)).sum();
    below + state.inf.load(Relaxed)
}

fn prometheus(_: &Setting) -> Result<Box<dyn Work>> {
    let opts = prometheus::HistogramOpts::new("kept_seconds", "Time.").buckets(THRESHOLDS.to_vec());
    let histogram = prometheus::Histogram::with_opts(opts)?;
    prometheus::Registry::new().register(Box::new(histogram.clone()))?;
    work(
        histogram,
        |histogram, thread, n| FLOATS.walk(thread, n, |x| histogram.observe(x)),
        |histogram| Ok(histogram.get_sample_count()),
    )
}

fn prometheus_client(_: &Setting) -> Result<Box<dyn Work>> {
    let histogram = ClientHistogram::new(THRESHOLDS);
    let mut registry = ClientRegistry::default();
    registry.register("kept_seconds", "Time.", histogram.clone());
    work(
        (registry, histogram),
        |(_, histogram), thread, n| FLOATS.walk(thread, n, |x| histogram.observe(x)),
        |(registry, _)| client_count(registry, "kept_seconds_count"),
    )
}

/// The sum over all series of a name, as a scrape shows it.
pub(super) fn client_count(registry: &ClientRegistry, name: &str) -> Result<u64> {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry)?;
    recorder::sum_of(&text, name)
}

fn metrics(_: &Setting) -> Result<Box<dyn Work>> {
    recorder::installed();
    work(
        metrics::histogram!("kept_seconds"),
        |histogram, thread, n| {
            let mut left = n;
            FLOATS.walk(thread, n, |x| {
                histogram.record(x);
                left -= 1;
                recorder::keep_up(thread, left);
            });
        },
        |_| recorder::total("kept_seconds_count"),
    )
}
