//! A counter with the labels of `counter-fixed18` and a dynamic one: 18,000 series,
//! all of which exist, each found by its labels each time.

use std::sync::atomic::Ordering::Relaxed;

use anyhow::Result;

use super::failures_by_user::{
    self as by_user, ClientFailure, Failure, MeasuredFailure, TextFailure, all, walk,
};
use crate::recorder;
use crate::work::{Group, Place, Setting, Subject, Work, work};

pub(super) const GROUP: Group = Group {
    name: "counter-18000",
    threads: &[1, 2],
    subjects: &[
        Subject::new("talea", talea),
        Subject::talea_atomic(talea),
        Subject::new("talea-text", talea_text),
        Subject::new("measured", measured),
        Subject::new("prometheus", prometheus),
        Subject::new("prometheus-client", prometheus_client),
        Subject::new("metrics", metrics),
    ],
    place: Place::Here,
    note: "ns: time of a thread for one operation. talea-text takes the routes as any text, \
           where talea has them fixed.",
};

fn talea(_: &Setting) -> Result<Box<dyn Work>> {
    work(
        by_user::filled_talea()?,
        |(_, family), thread, n| {
            walk(thread, n, |kind, route, user| {
                if let Some(failure) = Failure::of(kind, route, user) {
                    family.with(failure).inc();
                }
            });
        },
        |(_, family)| {
            let known = all().filter_map(|(kind, route, user)| Failure::of(kind, route, user));
            Ok(known.map(|failure| family.with(failure).get()).sum())
        },
    )
}

fn talea_text(_: &Setting) -> Result<Box<dyn Work>> {
    work(
        by_user::filled_talea_text()?,
        |family, thread, n| {
            walk(thread, n, |kind, route, user| {
                family.with(TextFailure { kind, route, user }).inc();
            });
        },
        |family| {
            let get = |(kind, route, user)| family.with(TextFailure { kind, route, user }).get();
            Ok(all().map(get).sum())
        },
    )
}

fn measured(_: &Setting) -> Result<Box<dyn Work>> {
    work(
        by_user::filled_measured(),
        |group, thread, n| {
            walk(thread, n, |kind, route, user| {
                group.failures.inc(MeasuredFailure { kind, route, user });
            });
        },
        |group| {
            let get = |(kind, route, user)| {
                let id = group.failures.with_labels(MeasuredFailure { kind, route, user });
                group.failures.get_metric(id).count.load(Relaxed)
            };
            Ok(all().map(get).sum())
        },
    )
}

fn prometheus(_: &Setting) -> Result<Box<dyn Work>> {
    work(
        by_user::filled_prometheus()?,
        |(_, family), thread, n| {
            walk(thread, n, |kind, route, user| {
                family.with_label_values(&[kind.as_str(), route, user]).inc();
            });
        },
        |(_, family)| {
            let series = all().map(|(kind, route, user)| [kind.as_str(), route, user]);
            Ok(series.map(|labels| family.with_label_values(&labels).get()).sum())
        },
    )
}

fn prometheus_client(_: &Setting) -> Result<Box<dyn Work>> {
    work(
        by_user::filled_prometheus_client(),
        |(_, family), thread, n| {
            walk(thread, n, |kind, route, user| {
                family.get_or_create(&ClientFailure::of(kind, route, user)).inc();
            });
        },
        |(_, family)| {
            let series = all().map(|(kind, route, user)| ClientFailure::of(kind, route, user));
            Ok(series.map(|labels| family.get_or_create(&labels).get()).sum())
        },
    )
}

fn metrics(_: &Setting) -> Result<Box<dyn Work>> {
    recorder::installed();
    by_user::fill_metrics();
    work(
        (),
        |(), thread, n| walk(thread, n, by_user::count_by_metrics),
        |()| recorder::total("failures_by_user_total"),
    )
}
