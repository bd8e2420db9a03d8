//! A counter with one dynamic label, and millions of distinct values for it,
//! in no order: each adds one to a new series.
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
use crate::randomness::Key;
use crate::work::{Group, Place, Setting, Subject, Work};

/// The default number of inserts.
pub(crate) const INSERTS: u64 = 5_000_000;

pub(super) const GROUP: Group = Group {
    name: "insert-5m",
    threads: &[1],
    subjects: &[
        Subject::new("talea", talea),
        Subject::new("measured", measured),
        Subject::new("prometheus", prometheus),
        Subject::new("prometheus-client", prometheus_client),
        Subject::new("metrics", metrics),
    ],
    place: Place::FromNothing,
    note: "ns: time for one new series, everything included. \
           bytes: memory that the system gave, for one series.",
};

/// A family that is filled.
struct GrowingFamily<S> {
    family: S,
    add: fn(&S, &str),
    /// Counts the series that have the value one, among those of the first keys.
    ones: fn(&S, u64) -> Result<u64>,
    keys: AtomicU64,
}

impl<S: Send + Sync> Work for GrowingFamily<S> {
    fn run(&self, _: usize, n: u64) {
        let first = self.keys.fetch_add(n, Relaxed);
        (first..first + n).for_each(|n| (self.add)(&self.family, Key::of(n).as_str()));
    }

    fn done(&self) -> Result<u64> {
        (self.ones)(&self.family, self.keys.load(Relaxed))
    }
}

fn filled<S: Send + Sync + 'static>(
    family: S,
    add: fn(&S, &str),
    ones: fn(&S, u64) -> Result<u64>,
) -> Result<Box<dyn Work>> {
    Ok(Box::new(GrowingFamily { family, add, ones, keys: AtomicU64::new(0) }))
}

/// Counts the keys whose series has the value one.
fn ones(keys: u64, get: impl Fn(&str) -> u64) -> Result<u64> {
    Ok((0..keys).filter(|&n| get(Key::of(n).as_str()) == 1).count() as u64)
}

/// The region has some room to spare.
fn talea(setting: &Setting) -> Result<Box<dyn Work>> {
    let series = setting.inserts + 1000;
    let len = (series * 224).next_multiple_of(1 << 20) + (16 << 20);
    let registry = Registry::with_config(Config { series, ..Config::with_len(len) })?;
    let opts = Opts::new("inserts", "Users.").limit(setting.inserts);
    let family: Family<User<'static>, Counter> = registry.register(opts)?;
    filled(
        family,
        |family, user| family.with(User { user }).inc(),
        |family, keys| {
            let found = ones(keys, |user| family.with(User { user }).get())?;
            let dropped = family.dropped();
            ensure!(dropped == 0, "{dropped} series found no room in the region");
            Ok(found)
        },
    )
}

fn measured(_: &Setting) -> Result<Box<dyn Work>> {
    filled(
        CounterVec::<UserSet>::new(),
        |family, user| family.inc(MeasuredUser { user }),
        |family, keys| {
            ones(keys, |user| {
                family.get_metric(family.with_labels(MeasuredUser { user })).count.load(Relaxed)
            })
        },
    )
}

fn prometheus(_: &Setting) -> Result<Box<dyn Work>> {
    let opts = prometheus::Opts::new("inserts_total", "Users.");
    let family = prometheus::IntCounterVec::new(opts, &["user"])?;
    prometheus::Registry::new().register(Box::new(family.clone()))?;
    filled(
        family,
        |family, user| family.with_label_values(&[user]).inc(),
        |family, keys| ones(keys, |user| family.with_label_values(&[user]).get()),
    )
}

fn prometheus_client(_: &Setting) -> Result<Box<dyn Work>> {
    let family = ClientFamily::<ClientUser, ClientCounter>::default();
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register("inserts", "Users.", family.clone());
    filled(
        family,
        |family, user| {
            family.get_or_create(&ClientUser::of(user)).inc();
        },
        |family, keys| ones(keys, |user| family.get_or_create(&ClientUser::of(user)).get()),
    )
}

fn metrics(_: &Setting) -> Result<Box<dyn Work>> {
    filled(
        PrometheusBuilder::new().build_recorder(),
        |recorder: &PrometheusRecorder, user| {
            metrics::with_local_recorder(recorder, || {
                metrics::counter!("inserts_total", "user" => user.to_owned()).increment(1);
            });
        },
        // A handle does not expose its value; a scrape does.
        |recorder, _| {
            let text = recorder.handle().render();
            let one = |line: &&str| line.starts_with("inserts_total{") && line.ends_with(" 1");
            Ok(text.lines().filter(one).count() as u64)
        },
    )
}
