//! A counter with one dynamic label, and millions of values for it: each operation adds one to the
//! series of a value, which is made if it does not exist. `insert_plan.rs` chooses the values.
//!
//! The measured time includes all making. Each measurement is a process of its own, so that its
//! memory is the subject's.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::{Result, ensure};
use measured::CounterVec;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use prometheus_client::metrics::counter::Counter as ClientCounter;
use prometheus_client::metrics::family::Family as ClientFamily;
use talea::{Config, Counter, Family, Opts, Registry};

use super::by_user::{ClientUser, MeasuredUser, User, UserSet};
use super::insert_plan::{Expected, Plan};
use crate::work::{Group, Place, Setting, Subject, Work};

/// The default number of inserts.
pub(crate) const INSERTS: u64 = 5_000_000;

/// Each key is new, and all have one length.
pub(super) const NEW: Group = Group {
    name: "insert-5m",
    threads: &[1],
    subjects: &[
        Subject::new("talea", |setting| talea(setting, Plan::new(setting))),
        Subject::new("measured", |setting| measured(Plan::new(setting))),
        Subject::new("prometheus", |setting| prometheus(Plan::new(setting))),
        Subject::new("prometheus-client", |setting| prometheus_client(Plan::new(setting))),
        Subject::new("metrics", |setting| metrics(Plan::new(setting))),
    ],
    place: Place::FromNothing,
    note: NOTE,
};

/// Keys of many lengths are drawn at random, with repeats.
pub(super) const DRAWN: Group = Group {
    name: "insert-5m-drawn",
    subjects: &[
        Subject::new("talea", |setting| talea(setting, Plan::drawn(setting))),
        Subject::new("measured", |setting| measured(Plan::drawn(setting))),
        Subject::new("prometheus", |setting| prometheus(Plan::drawn(setting))),
        Subject::new("prometheus-client", |setting| prometheus_client(Plan::drawn(setting))),
        Subject::new("metrics", |setting| metrics(Plan::drawn(setting))),
    ],
    ..NEW
};

/// As [`DRAWN`], after half of the series were removed in random order. The exporter of `metrics`
/// cannot remove a series.
pub(super) const REFILLED: Group = Group {
    name: "insert-5m-refilled",
    subjects: &[
        Subject::new("talea", |setting| talea(setting, Plan::refilled(setting))),
        Subject::new("measured", |setting| measured(Plan::refilled(setting))),
        Subject::new("prometheus", |setting| prometheus(Plan::refilled(setting))),
        Subject::new("prometheus-client", |setting| prometheus_client(Plan::refilled(setting))),
    ],
    ..NEW
};

const NOTE: &str = "ns: time for one insert, everything included. last/first: time of the last \
    tenth of the inserts, to that of the first. bytes: memory that the system gave, for one series.";

struct GrowingFamily<S> {
    family: S,
    plan: Plan,
    operations: Operations<S>,
    inserts: AtomicU64,
}

struct Operations<S> {
    add: fn(&S, &str),
    /// False if there is no such series.
    remove: fn(&S, &str) -> bool,
    /// Counts the increments that were found in series of the expected values.
    count: fn(&S, Plan, &[Expected]) -> Result<u64>,
}

impl<S: Send + Sync> Work for GrowingFamily<S> {
    fn prepare(&self) -> Result<()> {
        let Self { family, plan, operations, .. } = self;
        plan.before().for_each(|key| (operations.add)(family, plan.text(key).as_str()));
        for key in plan.removed() {
            let removed = (operations.remove)(family, plan.text(u64::from(key)).as_str());
            ensure!(removed, "a series that exists could not be removed");
        }
        Ok(())
    }

    fn run(&self, _: usize, n: u64) {
        let Self { family, plan, operations, inserts } = self;
        let first = inserts.fetch_add(n, Relaxed);
        for n in first..first + n {
            (operations.add)(family, plan.text(plan.insert(n)).as_str());
        }
    }

    fn done(&self) -> Result<u64> {
        let inserts = self.inserts.load(Relaxed);
        let expected = self.plan.series(inserts);
        let found = (self.operations.count)(&self.family, self.plan, &expected)?;
        let before: u64 = expected.iter().map(|series| series.value).sum::<u64>() - inserts;
        Ok(found.saturating_sub(before))
    }

    fn series(&self) -> Option<u64> {
        Some(self.plan.series(self.inserts.load(Relaxed)).len() as u64)
    }
}

fn filled<S: Send + Sync + 'static>(
    plan: Plan,
    family: S,
    operations: Operations<S>,
) -> Result<Box<dyn Work>> {
    Ok(Box::new(GrowingFamily { family, plan, operations, inserts: AtomicU64::new(0) }))
}

/// Adds up the values of the series that have their expected value.
fn sum(expected: &[Expected], plan: Plan, get: impl Fn(&str) -> u64) -> u64 {
    expected
        .iter()
        .filter(|series| get(plan.text(series.key).as_str()) == series.value)
        .map(|series| series.value)
        .sum()
}

/// The region has some room to spare.
fn talea(setting: &Setting, plan: Plan) -> Result<Box<dyn Work>> {
    let series = setting.inserts + 1000;
    let len = (series * 256).next_multiple_of(1 << 20) + (16 << 20);
    let registry = Registry::with_config(Config { series, ..Config::with_len(len) })?;
    let opts = Opts::new("inserts", "Users.").limit(series);
    let family: Family<User<'static>, Counter> = registry.register(opts)?;
    filled(
        plan,
        family,
        Operations {
            add: |family, user| family.with(User { user }).inc(),
            remove: |family, user| family.remove(User { user }),
            count: |family, plan, expected| {
                let found = sum(expected, plan, |user| family.with(User { user }).get());
                let dropped = family.dropped();
                ensure!(dropped == 0, "{dropped} series found no room in the region");
                Ok(found)
            },
        },
    )
}

fn measured(plan: Plan) -> Result<Box<dyn Work>> {
    filled(
        plan,
        CounterVec::<UserSet>::new(),
        Operations {
            add: |family, user| family.inc(MeasuredUser { user }),
            remove: |family, user| {
                family.remove_metric(family.with_labels(MeasuredUser { user })).is_some()
            },
            count: |family, plan, expected| {
                Ok(sum(expected, plan, |user| {
                    let id = family.with_labels(MeasuredUser { user });
                    family.get_metric(id).count.load(Relaxed)
                }))
            },
        },
    )
}

fn prometheus(plan: Plan) -> Result<Box<dyn Work>> {
    let opts = prometheus::Opts::new("inserts_total", "Users.");
    let family = prometheus::IntCounterVec::new(opts, &["user"])?;
    prometheus::Registry::new().register(Box::new(family.clone()))?;
    filled(
        plan,
        family,
        Operations {
            add: |family, user| family.with_label_values(&[user]).inc(),
            remove: |family, user| family.remove_label_values(&[user]).is_ok(),
            count: |family, plan, expected| {
                Ok(sum(expected, plan, |user| family.with_label_values(&[user]).get()))
            },
        },
    )
}

fn prometheus_client(plan: Plan) -> Result<Box<dyn Work>> {
    let family = ClientFamily::<ClientUser, ClientCounter>::default();
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register("inserts", "Users.", family.clone());
    filled(
        plan,
        family,
        Operations {
            add: |family, user| {
                family.get_or_create(&ClientUser::of(user)).inc();
            },
            remove: |family, user| family.remove(&ClientUser::of(user)),
            count: |family, plan, expected| {
                Ok(sum(expected, plan, |user| family.get_or_create(&ClientUser::of(user)).get()))
            },
        },
    )
}

fn metrics(plan: Plan) -> Result<Box<dyn Work>> {
    filled(
        plan,
        PrometheusBuilder::new().build_recorder(),
        Operations {
            add: |recorder: &PrometheusRecorder, user| {
                metrics::with_local_recorder(recorder, || {
                    metrics::counter!("inserts_total", "user" => user.to_owned()).increment(1);
                });
            },
            remove: |_, _| false,
            // A handle does not expose its value; a scrape does.
            count: |recorder, _, expected| {
                let text = recorder.handle().render();
                let samples = text.lines().filter(|line| line.starts_with("inserts_total{"));
                let values =
                    samples.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
                let values: Vec<u64> = values.collect();
                let (found, series) = (values.len(), expected.len());
                ensure!(found == series, "{found} series in the text, {series} were expected");
                Ok(values.iter().sum())
            },
        },
    )
}
