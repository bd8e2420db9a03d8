//! The text of 10,000 and of 100,000 counters with one dynamic label, from the registry to
//! the last byte.

use anyhow::Result;
use measured::{CounterVec, MetricGroup};
use metrics_exporter_prometheus::PrometheusBuilder;
use prometheus_client::metrics::counter::Counter as ClientCounter;
use prometheus_client::metrics::family::Family as ClientFamily;
use talea::{Config, Counter, Family, Opts, Registry};

use super::by_user::{ClientUser, MeasuredUser, User, UserSet};
use super::texts;
use crate::randomness::Key;
use crate::work::{Group, Place, Setting, Subject, Work};

pub(super) const SERIES: usize = 100_000;

macro_rules! group {
    ($name:literal, $series:expr) => {
        Group {
            name: $name,
            threads: &[1],
            subjects: &[
                Subject::new("talea", |_| texts::of_talea(filled_talea::<{ $series }>()?, $series)),
                Subject::new("measured", measured::<{ $series }>),
                Subject::new("prometheus", prometheus::<{ $series }>),
                Subject::new("prometheus-client", prometheus_client::<{ $series }>),
                Subject::new("metrics", metrics::<{ $series }>),
            ],
            place: Place::Apart,
            note: texts::NOTE,
        }
    };
}

pub(super) const OF_10K: Group = group!("encode-10k", 10_000);
pub(super) const OF_100K: Group = group!("encode-100k", SERIES);

fn keys(series: usize) -> impl Iterator<Item = Key> {
    (0..series as u64).map(Key::of)
}

pub(super) fn filled_talea<const N: usize>() -> Result<Registry> {
    let registry = Registry::with_config(Config::with_len(128 << 20))?;
    let opts = Opts::new("users", "Users.").limit(N as u64);
    let family: Family<User<'static>, Counter> = registry.register(opts)?;
    keys(N).for_each(|key| family.with(User { user: key.as_str() }).inc());
    Ok(registry)
}

#[derive(MetricGroup)]
#[metric(new())]
struct Measured {
    /// Users.
    #[metric(rename = "users_total")]
    users: CounterVec<UserSet>,
}

fn measured<const N: usize>(_: &Setting) -> Result<Box<dyn Work>> {
    let group = Measured::new();
    keys(N).for_each(|key| group.users.inc(MeasuredUser { user: key.as_str() }));
    texts::of_measured(group, N)
}

fn prometheus<const N: usize>(_: &Setting) -> Result<Box<dyn Work>> {
    let registry = prometheus::Registry::new();
    let opts = prometheus::Opts::new("users_total", "Users.");
    let family = prometheus::IntCounterVec::new(opts, &["user"])?;
    registry.register(Box::new(family.clone()))?;
    keys(N).for_each(|key| family.with_label_values(&[key.as_str()]).inc());
    texts::of_prometheus(registry, N)
}

fn prometheus_client<const N: usize>(_: &Setting) -> Result<Box<dyn Work>> {
    let family = ClientFamily::<ClientUser, ClientCounter>::default();
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register("users", "Users.", family.clone());
    keys(N).for_each(|key| {
        family.get_or_create(&ClientUser::of(key.as_str())).inc();
    });
    texts::of_prometheus_client(registry, N)
}

fn metrics<const N: usize>(_: &Setting) -> Result<Box<dyn Work>> {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        metrics::describe_counter!("users_total", "Users.");
        keys(N).for_each(|key| {
            metrics::counter!("users_total", "user" => key.as_str().to_owned()).increment(1);
        });
    });
    texts::of_metrics(recorder.handle(), N)
}
