//! Claims about differences that are sent instead of cumulative values.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use flate2::read::GzDecoder;
use proptest::prelude::*;
use prost::Message;
use talea::{Bucketing, Count, Counter, DynamicLabels, Family, Histogram, Registry};

use super::registry::opts;
use crate::otlp::message::{Buckets, ExportMetricsServiceRequest, Metric};
use crate::otlp::{Collector, Deltas};

const DAY: u64 = 24 * 3600 * 1_000_000_000;

/// What happens between two collections, or to them.
#[derive(Clone, Copy, Debug)]
enum Step {
    Count(u64),
    Observe(u64),
    Collect,
    /// A collection, after which the series ends.
    Remove,
    /// A collection without the series, as where a region cannot be read for once.
    Miss,
    /// A collection, and then another pusher goes on.
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0_u64..1_000).prop_map(Step::Count),
        // From one octave to many: the buckets become coarser meanwhile. Sums stay under 2^64.
        6 => (0_u32..46, 0_u64..1_000).prop_map(|(octave, n)| Step::Observe(n << octave)),
        4 => Just(Step::Collect),
        1 => Just(Step::Remove),
        1 => Just(Step::Miss),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 0..60)
}

/// Two series, the collector of a pusher, and what its requests add up to.
struct Stage {
    registry: Registry,
    calls: Family<DynamicLabels, Counter>,
    sizes: Family<DynamicLabels, Histogram<Count>>,
    folder: tempfile::TempDir,
    collector: Collector,
    /// Milliseconds. Long after the series were made.
    time: i64,
    received: Received,
    /// How often the series began.
    lives: u64,
}

/// The sums of all that a receiver got.
#[derive(Clone, Debug, Default, PartialEq)]
struct Received {
    calls: f64,
    sizes: u64,
    sum: f64,
    zeros: u64,
    /// By the finest buckets that are in all requests.
    buckets: BTreeMap<i32, u64>,
    scale: i32,
    /// The end of the last period of each.
    ends: [u64; 2],
}

impl Stage {
    fn new() -> Self {
        let registry = Registry::for_test().unwrap();
        let native = opts("sizes").bucketing(Bucketing::Native).max_buckets(9_999).schema(8);
        let folder = tempfile::tempdir().unwrap();
        let mut stage = Self {
            calls: registry.family(opts("calls"), &["of"]).unwrap(),
            sizes: registry.family(native, &["of"]).unwrap(),
            collector: collector(folder.path()),
            registry,
            folder,
            time: 4_000_000_000_000,
            received: Received { scale: 8, ..Received::default() },
            lives: 1,
        };
        assert!(stage.collector.deltas.as_ref().unwrap().is_empty());
        stage.collect();
        stage
    }

    fn collect(&mut self) {
        let mut families = self.registry.snapshot().to_families();
        // The clock by which series begin has steps of several milliseconds, longer than such a life.
        for series in families.iter_mut().flat_map(|family| &mut family.series) {
            series.created = Some(UNIX_EPOCH + Duration::from_secs(self.lives));
        }
        self.collect_of(&families);
    }

    fn collect_of(&mut self, families: &[talea::model::Family]) {
        self.time += 1_000;
        let end = self.time as u64 * 1_000_000;
        for record in self.collector.collect(families, self.time) {
            let mut message = Vec::new();
            GzDecoder::new(&*record.body).read_to_end(&mut message).unwrap();
            let request = ExportMetricsServiceRequest::decode(&*message).unwrap();
            let scopes = request.resource_metrics.into_iter().flat_map(|it| it.scope_metrics);
            scopes.flat_map(|it| it.metrics).for_each(|metric| self.received.add(metric, end));
        }
    }

    fn restart(&mut self) {
        self.collector.deltas.as_ref().unwrap().save().unwrap();
        self.collector = collector(self.folder.path());
        assert!(!self.collector.deltas.as_ref().unwrap().is_empty());
    }
}

fn collector(folder: &Path) -> Collector {
    let (deltas, error) = Deltas::open(Some(folder), DAY);
    assert!(error.is_none(), "{error:?}");
    Collector::new(&[], true, 1_000, Some(deltas))
}

impl Received {
    fn add(&mut self, metric: Metric, end: u64) {
        for point in metric.sum.iter().flat_map(|sum| &sum.data_points) {
            self.calls += point.as_double.unwrap();
            self.period(0, point.start_time_unix_nano, point.time_unix_nano, end);
        }
        for point in metric.exponential_histogram.iter().flat_map(|it| &it.data_points) {
            self.period(1, point.start_time_unix_nano, point.time_unix_nano, end);
            let total = point.zero_count + of(&point.positive).map(|it| it.1).sum::<u64>();
            assert_eq!(total, point.count, "the buckets hold all");
            self.sizes += point.count;
            self.sum += point.sum.unwrap();
            self.zeros += point.zero_count;
            let scale = self.scale.min(point.scale);
            let old = std::mem::take(&mut self.buckets).into_iter();
            let old = old.map(|(index, count)| (index >> (self.scale - scale), count));
            let new = of(&point.positive).map(|(index, n)| (index >> (point.scale - scale), n));
            for (index, count) in old.chain(new).filter(|(_, count)| *count > 0) {
                *self.buckets.entry(index).or_default() += count;
            }
            self.scale = scale;
        }
        let temporality = metric.sum.map(|it| it.aggregation_temporality);
        let histogram = metric.exponential_histogram.map(|it| it.aggregation_temporality);
        assert_eq!(temporality.or(histogram), Some(1), "delta");
    }

    /// No two periods have an instant in common.
    fn period(&mut self, of: usize, start: u64, time: u64, end: u64) {
        assert_eq!(time, end);
        assert!(self.ends[of] <= start && start < time, "{start} to {time}");
        self.ends[of] = time;
    }
}

fn of(buckets: &Option<Buckets>) -> impl Iterator<Item = (i32, u64)> {
    let buckets = buckets.clone().unwrap_or_default();
    let counts = buckets.bucket_counts.into_iter().zip(buckets.offset..);
    counts.map(|(count, index)| (index, count))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn differences_add_up_to_all_that_was_counted(steps in steps()) {
        let mut stage = Stage::new();
        let (mut calls, mut sizes) = (0, Vec::new());
        for step in steps {
            match step {
                Step::Count(n) => {
                    stage.calls.with_values(&["a"]).add(n);
                    calls += n;
                }
                Step::Observe(n) => {
                    stage.sizes.with_values(&["a"]).observe(n);
                    sizes.push(n);
                }
                Step::Collect => stage.collect(),
                Step::Remove => {
                    stage.collect();
                    stage.calls.remove_values(&["a"]);
                    stage.sizes.remove_values(&["a"]);
                    stage.lives += 1;
                }
                Step::Miss => stage.collect_of(&[]),
                Step::Restart => {
                    stage.collect();
                    stage.restart();
                }
            }
        }
        stage.collect();
        let received = &stage.received;
        prop_assert_eq!(received.calls, calls as f64);
        prop_assert_eq!(received.sizes, sizes.len() as u64);
        prop_assert_eq!(received.zeros, sizes.iter().filter(|n| **n == 0).count() as u64);
        let sum: f64 = sizes.iter().map(|n| *n as f64).sum();
        prop_assert!((received.sum - sum).abs() <= sum * 1e-9, "{} for {sum}", received.sum);
        // (b^i, b^(i + 1)] has the number i.
        let base = 2_f64.powf(2_f64.powi(-received.scale));
        let mut expected = BTreeMap::new();
        for size in sizes.iter().filter(|n| **n > 0) {
            let index = ((*size as f64).ln() / base.ln() - 1e-9).ceil() as i32 - 1;
            *expected.entry(index).or_insert(0_u64) += 1;
        }
        prop_assert_eq!(&received.buckets, &expected);
    }
}

#[test]
fn a_damaged_file_is_an_error_and_deltas_begin_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deltas");
    let mut whole = collector(folder.path());
    whole.collect(super::registry::one_of_each().snapshot().to_families(), 4_000_000_000_000);
    whole.deltas.as_ref().unwrap().save().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let flipped = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        bytes
    };
    let damaged = (0..bytes.len()).map(flipped).chain((0..12).map(|len| bytes[..len].to_vec()));
    for bytes in damaged.chain([bytes[..bytes.len() - 1].to_vec(), vec![0; bytes.len()]]) {
        std::fs::write(&path, &bytes).unwrap();
        let (deltas, error) = Deltas::open(Some(folder.path()), DAY);
        assert!(error.is_some() && deltas.is_empty(), "{bytes:?}");
    }
}
