//! Registries, and what a receiver has of them.

use std::collections::BTreeMap;
use std::time::Duration;

use talea::{
    Bucketing, Count, Counter, FloatGauge, Histogram, Opts, Registry, Seconds, StateSet, Summary,
};

use crate::Config;
use crate::remote_write::message::{Exemplar, Histogram as Native, Metadata, Request};

#[derive(talea::LabelValue)]
#[allow(dead_code)]
enum Door {
    Open,
    Closed,
}

pub(crate) fn opts(name: &str) -> Opts<'_> {
    Opts::new(name, "Some.")
}

/// A registry with a metric of each kind.
pub(crate) fn one_of_each() -> Registry {
    let registry = Registry::for_test().unwrap();
    let calls = registry.family::<Counter>(opts("calls"), &["user"]).unwrap();
    calls.with_values(&["ann"]).add_with_exemplar(3, &[("trace_id", "beef")]).unwrap();
    calls.with_values(&["a\"b\\c\n"]).inc();
    registry.register::<FloatGauge>(opts("fill_ratio")).unwrap().set(0.25);
    let classic = opts("wait").bucketing(Bucketing::Classic).buckets(&[0.1, 1.0]);
    let wait = registry.register::<Histogram<Seconds>>(classic).unwrap();
    wait.observe_with_exemplar(Duration::from_millis(500), &[("trace_id", "cafe")]).unwrap();
    let dual = opts("size").bucketing(Bucketing::Dual).buckets(&[10.0, 1e7]).schema(0);
    let size = registry.register::<Histogram<Count>>(dual).unwrap();
    [0, 3, 3, 1_000].iter().for_each(|n| size.observe(*n));
    let native = opts("depth").bucketing(Bucketing::Native).schema(1);
    registry.register::<Histogram<Count>>(native).unwrap().observe(7);
    let quantiles = opts("age").quantiles(&[0.5, 1.0]);
    registry.register::<Summary<Count>>(quantiles).unwrap().observe(9);
    registry.register::<StateSet<Door>>(opts("door")).unwrap().set(Door::Open);
    registry
}

/// A configuration by which tests do not wait.
pub(crate) fn config(url: &str) -> Config {
    let millis = Duration::from_millis;
    Config::remote_write(url)
        .unwrap()
        .label("job", "test")
        .interval(Duration::from_secs(3_600))
        .timeout(super::receiver::LONGEST)
        .backoff(millis(1), millis(5))
}

/// What a request says of one series.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    /// Each with its time and its start timestamp.
    pub(crate) samples: Vec<(f64, i64, i64)>,
    pub(crate) histograms: Vec<Native>,
    pub(crate) exemplars: Vec<(String, Exemplar)>,
    pub(crate) metadata: Option<Metadata>,
    pub(crate) help: String,
}

/// The series of requests, by their labels as text.
pub(crate) fn series(requests: &[Request]) -> BTreeMap<String, Series> {
    let mut all: BTreeMap<String, Series> = BTreeMap::new();
    for request in requests {
        assert_eq!(request.symbols[0], "");
        let mut texts = request.symbols.clone();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), request.symbols.len(), "each symbol is there once");
        for series in &request.timeseries {
            let labels = labels(request, &series.labels_refs);
            assert!(labels.is_sorted_by(|one, next| one.0 < next.0), "{labels:?}");
            assert!(labels.iter().all(|(name, value)| !name.is_empty() && !value.is_empty()));
            assert_eq!(labels[0].0, "__name__");
            let has_samples = !series.samples.is_empty();
            assert_eq!(has_samples, series.histograms.is_empty(), "one of both: {labels:?}");
            let found = all.entry(text(&labels)).or_default();
            let samples = series.samples.iter();
            found.samples.extend(
                samples.map(|it| (it.value.unwrap_or_default(), it.timestamp, it.start_timestamp)),
            );
            found.histograms.extend(series.histograms.iter().cloned());
            let metadata = series.metadata.unwrap();
            found.help = request.symbols[metadata.help_ref as usize].clone();
            found.metadata = Some(metadata);
            let exemplars = series.exemplars.iter();
            found.exemplars.extend(exemplars.map(|exemplar| {
                (text(&self::labels(request, &exemplar.labels_refs)), exemplar.clone())
            }));
        }
    }
    all
}

fn labels<'a>(request: &'a Request, places: &[u32]) -> Vec<(&'a str, &'a str)> {
    let symbol = |place: u32| &*request.symbols[place as usize];
    places.chunks(2).map(|pair| (symbol(pair[0]), symbol(pair[1]))).collect()
}

fn text(labels: &[(&str, &str)]) -> String {
    labels.iter().map(|(name, value)| format!("{name}={value};")).collect()
}
