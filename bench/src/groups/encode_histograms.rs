//! The text of 1,000 histograms of 14 thresholds with one dynamic label, from the registry
//! to the last byte.

use std::time::Duration;

use anyhow::Result;
use measured::metric::histogram::Thresholds;
use measured::{HistogramVec, MetricGroup};
use metrics_exporter_prometheus::PrometheusBuilder;
use prometheus_client::metrics::family::Family as ClientFamily;
use prometheus_client::metrics::histogram::Histogram as ClientHistogram;
use talea::{Family, Histogram, Opts, Registry, Seconds};

use super::by_user::{ClientUser, MeasuredUser, User, UserSet};
use super::texts;
use crate::randomness::Key;
use crate::thresholds::THRESHOLDS;
use crate::work::{Group, Place, Setting, Subject, Work};

const SERIES: usize = 1_000;

pub(super) const GROUP: Group = Group {
    name: "encode-histograms",
    threads: &[1],
    subjects: &[
        Subject::new("talea", |_| texts::of_talea(filled_talea()?, SAMPLES)),
        Subject::new("measured", measured),
        Subject::new("prometheus", prometheus),
        Subject::new("prometheus-client", prometheus_client),
        Subject::new("metrics", metrics),
    ],
    place: Place::Apart,
    note: texts::NOTE,
};

/// Samples in the text. Each series has its buckets, that of +Inf, its sum and its count.
const SAMPLES: usize = SERIES * (THRESHOLDS.len() + 3);

fn keys() -> impl Iterator<Item = Key> {
    (0..SERIES as u64).map(Key::of)
}

/// The observations of each histogram: one in each bucket.
fn observations() -> impl Iterator<Item = f64> {
    THRESHOLDS.into_iter().chain([20.0])
}

fn filled_talea() -> Result<Registry> {
    let registry = Registry::new()?;
    let opts = Opts::new("wait", "Time to wait.").buckets(&THRESHOLDS);
    let family: Family<User<'static>, Histogram<Seconds>> = registry.register(opts)?;
    for key in keys() {
        let histogram = family.with(User { user: key.as_str() });
        observations().for_each(|x| histogram.observe(Duration::from_secs_f64(x)));
    }
    Ok(registry)
}

#[derive(MetricGroup)]
#[metric(new())]
struct Measured {
    /// Time to wait.
    #[metric(metadata = Thresholds::with_buckets(THRESHOLDS))]
    wait_seconds: HistogramVec<UserSet, { THRESHOLDS.len() }>,
}

fn measured(_: &Setting) -> Result<Box<dyn Work>> {
    let group = Measured::new();
    for key in keys() {
        observations()
            .for_each(|x| group.wait_seconds.observe(MeasuredUser { user: key.as_str() }, x));
    }
    texts::of_measured(group, SAMPLES)
}

fn prometheus(_: &Setting) -> Result<Box<dyn Work>> {
    let registry = prometheus::Registry::new();
    let opts = prometheus::HistogramOpts::new("wait_seconds", "Time to wait.");
    let opts = opts.buckets(THRESHOLDS.to_vec());
    let family = prometheus::HistogramVec::new(opts, &["user"])?;
    registry.register(Box::new(family.clone()))?;
    for key in keys() {
        let histogram = family.with_label_values(&[key.as_str()]);
        observations().for_each(|x| histogram.observe(x));
    }
    texts::of_prometheus(registry, SAMPLES)
}

fn prometheus_client(_: &Setting) -> Result<Box<dyn Work>> {
    let family: ClientFamily<ClientUser, ClientHistogram> =
        ClientFamily::new_with_constructor(|| ClientHistogram::new(THRESHOLDS));
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register("wait_seconds", "Time to wait.", family.clone());
    for key in keys() {
        let histogram = family.get_or_create(&ClientUser::of(key.as_str()));
        observations().for_each(|x| histogram.observe(x));
    }
    texts::of_prometheus_client(registry, SAMPLES)
}

fn metrics(_: &Setting) -> Result<Box<dyn Work>> {
    let recorder = PrometheusBuilder::new().set_buckets(&THRESHOLDS)?.build_recorder();
    metrics::with_local_recorder(&recorder, || {
        metrics::describe_histogram!("wait_seconds", "Time to wait.");
        for key in keys() {
            let user = key.as_str().to_owned();
            let histogram = metrics::histogram!("wait_seconds", "user" => user);
            observations().for_each(|x| histogram.record(x));
        }
    });
    texts::of_metrics(recorder.handle(), SAMPLES)
}
