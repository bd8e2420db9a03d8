//! A counter with two labels of 3 and 6 values, looked up by its labels each
//! time. The 3 are an enum; the 6 are routes, fixed at run time and given as
//! text.

use std::sync::LazyLock;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::Result;
use measured::CounterVec;
use prometheus_client::metrics::counter::Counter as ClientCounter;
use prometheus_client::metrics::family::Family as ClientFamily;
use talea::{Counter, Family, Opts, Registry};

use super::failures::{
    self, ClientFailure, Failure, FailureSet, Kind, MeasuredFailure, ROUTES, all,
};
use crate::randomness::Sequence;
use crate::recorder;
use crate::work::{Group, Place, Setting, Subject, TIME, Work, work};

pub(super) const GROUP: Group = Group {
    name: "counter-fixed18",
    threads: &[1, 2],
    subjects: &[
        Subject::new("talea", talea),
        Subject::talea_atomic(talea),
        Subject::new("measured", measured),
        Subject::new("prometheus", prometheus),
        Subject::new("prometheus-client", prometheus_client),
        Subject::new("metrics", metrics),
    ],
    place: Place::Here,
    note: TIME,
};

/// The failures to count.
static FAILURES: LazyLock<Sequence<(Kind, &str)>> =
    LazyLock::new(|| Sequence::of(2, |random| (random.pick(&Kind::ALL), random.pick(&ROUTES))));

fn talea(_: &Setting) -> Result<Box<dyn Work>> {
    failures::fix_routes()?;
    let opts = Opts::new("failures", "Failed requests.");
    let family: Family<Failure, Counter> = Registry::new()?.register(opts)?;
    work(
        family,
        |family, thread, n| {
            FAILURES.walk(thread, n, |(kind, route)| {
                if let Some(failure) = Failure::of(kind, route) {
                    family.with(failure).inc();
                }
            });
        },
        |family| {
            let known = all().filter_map(|(kind, route)| Failure::of(kind, route));
            Ok(known.map(|failure| family.with(failure).get()).sum())
        },
    )
}

fn measured(_: &Setting) -> Result<Box<dyn Work>> {
    work(
        CounterVec::<FailureSet>::with_label_set(failures::measured_set()),
        |family, thread, n| {
            FAILURES.walk(thread, n, |(kind, route)| family.inc(MeasuredFailure { kind, route }));
        },
        |family| {
            let get = |(kind, route)| {
                let id = family.with_labels(MeasuredFailure { kind, route });
                family.get_metric(id).count.load(Relaxed)
            };
            Ok(all().map(get).sum())
        },
    )
}

fn prometheus(_: &Setting) -> Result<Box<dyn Work>> {
    let opts = prometheus::Opts::new("failures_total", "Failed requests.");
    let family = prometheus::IntCounterVec::new(opts, &["kind", "route"])?;
    prometheus::Registry::new().register(Box::new(family.clone()))?;
    work(
        family,
        |family, thread, n| {
            FAILURES.walk(thread, n, |(kind, route)| {
                family.with_label_values(&[kind.as_str(), route]).inc();
            });
        },
        |family| {
            let get = |(kind, route): (Kind, _)| family.with_label_values(&[kind.as_str(), route]);
            Ok(all().map(|combination| get(combination).get()).sum())
        },
    )
}

fn prometheus_client(_: &Setting) -> Result<Box<dyn Work>> {
    let family = ClientFamily::<ClientFailure, ClientCounter>::default();
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register("failures", "Failed requests.", family.clone());
    work(
        family,
        |family, thread, n| {
            FAILURES.walk(thread, n, |(kind, route)| {
                family.get_or_create(&ClientFailure { kind, route }).inc();
            });
        },
        |family| {
            let get = |(kind, route)| family.get_or_create(&ClientFailure { kind, route }).get();
            Ok(all().map(get).sum())
        },
    )
}

fn metrics(_: &Setting) -> Result<Box<dyn Work>> {
    recorder::installed();
    work(
        (),
        |(), thread, n| {
            FAILURES.walk(thread, n, |(kind, route)| {
                metrics::counter!("failures_total", "kind" => kind.as_str(), "route" => route)
                    .increment(1);
            });
        },
        |()| recorder::total("failures_total"),
    )
}
