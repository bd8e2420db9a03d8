//! A histogram with the labels of `counter-fixed18`, looked up by them each time,
//! and the thresholds and observations of `observe-kept`.

use std::sync::LazyLock;
use std::time::Duration;

use anyhow::Result;
use measured::HistogramVec;
use measured::metric::histogram::Thresholds;
use prometheus_client::metrics::family::Family as ClientFamily;
use prometheus_client::metrics::histogram::Histogram as ClientHistogram;
use talea::{Bucketing, Family, Histogram, Opts, Registry, Seconds, Value};

use super::failures::{
    self, ClientFailure, Failure, FailureSet, Kind, MeasuredFailure, ROUTES, all,
};
use super::observe_kept;
use crate::histograms::{count_in_text, count_of_measured};
use crate::randomness::Sequence;
use crate::recorder;
use crate::thresholds::THRESHOLDS;
use crate::work::{Group, Place, Setting, Subject, Work, work};

pub(super) const GROUP: Group = Group {
    name: "observe-fixed18",
    threads: &[1, 2],
    subjects: &[
        Subject::new("talea-dual", |_| talea(Bucketing::Dual)),
        Subject::new("talea-classic", |_| talea(Bucketing::Classic)),
        Subject::new("talea-native", |_| talea(Bucketing::Native)),
        Subject::talea_atomic(|_| talea(Bucketing::Dual)),
        Subject::new("measured", measured),
        Subject::new("prometheus", prometheus),
        Subject::new("prometheus-client", prometheus_client),
        Subject { loses: 0.01, ..Subject::new("metrics", metrics) },
    ],
    place: Place::Here,
    note: "ns: time of a thread for one observation; ratios are to talea-dual. talea-atomic is \
           dual. metrics includes its deferred work, the upkeep. The budget of talea-dual with 2 \
           threads is 0.4 of measured, so `to talea` of measured should be at least 2.50.",
};

type Failed<T> = (Kind, &'static str, T);

static FAILURES: LazyLock<Sequence<Failed<Duration>>> = LazyLock::new(|| {
    Sequence::of(3, |random| {
        (random.pick(&Kind::ALL), random.pick(&ROUTES), observe_kept::duration(random))
    })
});

/// These durations in seconds, for subjects that observe floats.
static FLOATS: LazyLock<Sequence<Failed<f64>>> =
    LazyLock::new(|| FAILURES.map(|(kind, route, duration)| (kind, route, duration.as_secs_f64())));

fn talea(bucketing: Bucketing) -> Result<Box<dyn Work>> {
    failures::fix_routes()?;
    let registry = Registry::new()?;
    let opts = Opts::new("failures_seconds", "Time to fail.").bucketing(bucketing);
    let opts = if bucketing == Bucketing::Native { opts } else { opts.buckets(&THRESHOLDS) };
    let family: Family<Failure, Histogram<Seconds>> = registry.register(opts)?;
    work(
        (registry, family),
        |(_, family), thread, n| {
            FAILURES.walk(thread, n, |(kind, route, duration)| {
                if let Some(failure) = Failure::of(kind, route) {
                    family.with(failure).observe(duration);
                }
            });
        },
        |(registry, _)| {
            let snapshot = registry.snapshot();
            let counts =
                snapshot.select("failures_seconds", &[]).map(|series| match series.value() {
                    Value::Histogram(histogram) => histogram.count(),
                    _ => 0,
                });
            Ok(counts.sum())
        },
    )
}

fn measured(_: &Setting) -> Result<Box<dyn Work>> {
    let thresholds = Thresholds::with_buckets(THRESHOLDS);
    work(
        HistogramVec::<FailureSet, 14>::with_label_set_and_metadata(
            failures::measured_set(),
            thresholds,
        ),
        |family, thread, n| {
            FLOATS.walk(thread, n, |(kind, route, x)| {
                family.observe(MeasuredFailure { kind, route }, x);
            });
        },
        |family| {
            Ok(all()
                .map(|(kind, route)| {
                    let id = family.with_labels(MeasuredFailure { kind, route });
                    count_of_measured(&family.get_metric(id))
                })
                .sum())
        },
    )
}

fn prometheus(_: &Setting) -> Result<Box<dyn Work>> {
    let opts = prometheus::HistogramOpts::new("failures_seconds", "Time to fail.")
        .buckets(THRESHOLDS.to_vec());
    let family = prometheus::HistogramVec::new(opts, &["kind", "route"])?;
    prometheus::Registry::new().register(Box::new(family.clone()))?;
    work(
        family,
        |family, thread, n| {
            FLOATS.walk(thread, n, |(kind, route, x)| {
                family.with_label_values(&[kind.as_str(), route]).observe(x);
            });
        },
        |family| {
            let each = all().map(|(kind, route)| family.with_label_values(&[kind.as_str(), route]));
            Ok(each.map(|histogram| histogram.get_sample_count()).sum())
        },
    )
}

fn prometheus_client(_: &Setting) -> Result<Box<dyn Work>> {
    let family = ClientFamily::<ClientFailure, ClientHistogram>::new_with_constructor(|| {
        ClientHistogram::new(THRESHOLDS)
    });
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register("failures_seconds", "Time to fail.", family.clone());
    work(
        (registry, family),
        |(_, family), thread, n| {
            FLOATS.walk(thread, n, |(kind, route, x)| {
                family.get_or_create(&ClientFailure { kind, route }).observe(x);
            });
        },
        |(registry, _)| count_in_text(registry, "failures_seconds_count"),
    )
}

fn metrics(_: &Setting) -> Result<Box<dyn Work>> {
    recorder::installed();
    work(
        (),
        |(), thread, n| {
            let mut left = n;
            FLOATS.walk(thread, n, |(kind, route, x)| {
                metrics::histogram!("failures_seconds", "kind" => kind.as_str(), "route" => route)
                    .record(x);
                left -= 1;
                recorder::keep_up(thread, left);
            });
        },
        |()| recorder::total("failures_seconds_count"),
    )
}
