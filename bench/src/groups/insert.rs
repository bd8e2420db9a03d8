//! A counter with one dynamic label, and millions of distinct values for it,
//! in no order: each adds one to a series that is not there yet.
//!
//! All is made in the time that is measured, and each measurement is a process
//! of its own, so that the memory that it holds is the subject's.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::{Result, ensure};
use measured::{CounterVec, LabelGroup};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use paracord::ParaCord;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter as ClientCounter;
use prometheus_client::metrics::family::Family as ClientFamily;
use talea::{Config, Counter, Family, Labels, Opts, Registry};

use crate::randomness::Key;
use crate::work::{Group, Place, Setting, Subject, Work};

/// How many, unless the command line says otherwise.
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
struct Filled<S> {
    family: S,
    add: fn(&S, &str),
    /// How many series count one, of those with the first so many keys.
    ones: fn(&S, u64) -> Result<u64>,
    keys: AtomicU64,
}

impl<S: Send + Sync> Work for Filled<S> {
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
    Ok(Box::new(Filled { family, add, ones, keys: AtomicU64::new(0) }))
}

/// Counts the keys whose series counts one.
fn ones(keys: u64, get: impl Fn(&str) -> u64) -> Result<u64> {
    Ok((0..keys).filter(|&n| get(Key::of(n).as_str()) == 1).count() as u64)
}

#[derive(Labels)]
struct By<'a> {
    user: &'a str,
}

/// The size of the region, with some room to spare.
fn talea(setting: &Setting) -> Result<Box<dyn Work>> {
    let series = setting.inserts + 1000;
    let len = (series * 224).next_multiple_of(1 << 20) + (16 << 20);
    let registry = Registry::with_config(Config { series, ..Config::with_len(len) })?;
    let opts = Opts::new("inserts", "Users.").limit(setting.inserts);
    let family: Family<By<'static>, Counter> = registry.register(opts)?;
    filled(
        family,
        |family, user| family.with(By { user }).inc(),
        |family, keys| {
            let found = ones(keys, |user| family.with(By { user }).get())?;
            let dropped = family.dropped();
            ensure!(dropped == 0, "{dropped} series found no room in the region");
            Ok(found)
        },
    )
}

#[derive(Clone, Copy, LabelGroup)]
#[label(set = BySet)]
struct MeasuredBy<'a> {
    #[label(dynamic_with = ParaCord, default)]
    user: &'a str,
}

fn measured(_: &Setting) -> Result<Box<dyn Work>> {
    filled(
        CounterVec::<BySet>::new(),
        |family, user| family.inc(MeasuredBy { user }),
        |family, keys| {
            ones(keys, |user| {
                family.get_metric(family.with_labels(MeasuredBy { user })).count.load(Relaxed)
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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClientBy {
    user: String,
}

fn prometheus_client(_: &Setting) -> Result<Box<dyn Work>> {
    let family = ClientFamily::<ClientBy, ClientCounter>::default();
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register("inserts", "Users.", family.clone());
    filled(
        family,
        |family, user| {
            family.get_or_create(&ClientBy { user: user.to_owned() }).inc();
        },
        |family, keys| {
            ones(keys, |user| family.get_or_create(&ClientBy { user: user.to_owned() }).get())
        },
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
        // A handle does not tell its value, but a scrape does.
        |recorder, _| {
            let text = recorder.handle().render();
            let one = |line: &&str| line.starts_with("inserts_total{") && line.ends_with(" 1");
            Ok(text.lines().filter(one).count() as u64)
        },
    )
}
