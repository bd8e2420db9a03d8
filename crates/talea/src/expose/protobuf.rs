//! Prometheus' protobuf format: `io.prometheus.client.MetricFamily` messages, each
//! behind its length. Source: `metrics.proto` of Prometheus' client model.
//!
//! Written by hand: a generated encoder needs a tree of messages, with an allocation for each label
//! of each series, and the format has only five messages.

use talea_region::Exemplar;

use super::native_spans::NativeSpans;
use super::pages::Family;
use super::shown_names::{LabelNames, ShownNames};
use super::writer::Writer;
use crate::definition::kind::Kind;
use crate::histogram::native_buckets::NativeBuckets;
use crate::labels::{RawLabel, raw_labels};
use crate::snapshot::{FamilySnapshot, SeriesSnapshot, Shown};

/// The numbers of fields, by the message that has them.
macro_rules! fields {
    ($($message:ident { $($field:ident = $number:literal),* })*) => {
        $($(const $field: u32 = $number;)*)*
    };
}

fields! {
    MetricFamily { NAME = 1, HELP = 2, TYPE = 3, METRIC = 4 }
    Metric { LABEL = 1, GAUGE = 2, COUNTER = 3, SUMMARY = 4, HISTOGRAM = 7 }
    // The value of a gauge has this number too.
    Counter { VALUE = 1, COUNTER_EXEMPLAR = 2, COUNTER_CREATED = 3 }
    // Beside its count and sum, which are numbered as in `Histogram`.
    Summary { SUMMARY_QUANTILE = 3, SUMMARY_CREATED = 4 }
    Quantile { QUANTILE = 1, QUANTILE_VALUE = 2 }
    Histogram { COUNT = 1, SUM = 2, BUCKET = 3, HISTOGRAM_CREATED = 15 }
    NativeHistogram { SCHEMA = 5, ZERO_THRESHOLD = 6, ZERO_COUNT = 7, NATIVE_EXEMPLARS = 16 }
    NativeSides { NEGATIVE_SPAN = 9, NEGATIVE_DELTA = 10, POSITIVE_SPAN = 12, POSITIVE_DELTA = 13 }
    BucketSpan { OFFSET = 1, LENGTH = 2 }
    Bucket { CUMULATIVE = 1, UPPER_BOUND = 2, BUCKET_EXEMPLAR = 3 }
    // Beside its labels, which are numbered as in `Metric`.
    Exemplar { EXEMPLAR_VALUE = 2, EXEMPLAR_TIME = 3 }
    LabelPair { LABEL_NAME = 1, LABEL_VALUE = 2 }
    Timestamp { SECONDS = 1, NANOS = 2 }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Protobuf {
    names: LabelNames,
    /// Label text that each series begins with.
    label: String,
    bounds: Vec<f64>,
    buckets: Vec<u64>,
    /// A message of each of the inner levels, before its length is known.
    metric: Vec<u8>,
    inner: Vec<u8>,
    bucket: Vec<u8>,
}

impl Protobuf {
    fn fill_metric(&mut self, series: &SeriesSnapshot<'_>) {
        let Self { names, label: part, bounds, buckets, metric, inner, bucket } = self;
        metric.clear();
        for RawLabel { name, value } in raw_labels(part.as_bytes()) {
            label(metric, name, &value);
        }
        for RawLabel { name, value } in raw_labels(series.label_bytes()) {
            let name = String::from_utf8_lossy(name);
            label(metric, names.of(&name).as_bytes(), &value);
        }
        inner.clear();
        let created = series.created_nanos();
        let kind = series.family().kind();
        let field = match (series.shown(), kind) {
            (Shown::Histogram, _) => {
                varint_field(inner, COUNT, series.cumulative(buckets));
                double(inner, SUM, series.sum());
                for (n, (bound, count)) in bounds.iter().zip(&*buckets).enumerate() {
                    let exemplar = series.exemplar(n);
                    // The count of +Inf is the total count, so it is there for its exemplar.
                    if bound.is_infinite() && exemplar.is_none() {
                        continue;
                    }
                    bucket.clear();
                    varint_field(bucket, CUMULATIVE, *count);
                    double(bucket, UPPER_BOUND, *bound);
                    write_exemplar(bucket, BUCKET_EXEMPLAR, exemplar);
                    bytes(inner, BUCKET, bucket);
                }
                if let Some(native) = series.native() {
                    native_buckets(inner, &native);
                    for exemplar in series.raw_exemplars() {
                        write_exemplar(inner, NATIVE_EXEMPLARS, Some(exemplar));
                    }
                }
                timestamp(inner, HISTOGRAM_CREATED, created);
                HISTOGRAM
            }
            (Shown::Summary, _) => {
                varint_field(inner, COUNT, series.count());
                double(inner, SUM, series.sum());
                for (q, value) in series.quantiles() {
                    bucket.clear();
                    double(bucket, QUANTILE, q);
                    double(bucket, QUANTILE_VALUE, value);
                    bytes(inner, SUMMARY_QUANTILE, bucket);
                }
                timestamp(inner, SUMMARY_CREATED, created);
                SUMMARY
            }
            (number, Kind::Counter) => {
                double(inner, VALUE, number.as_f64());
                write_exemplar(inner, COUNTER_EXEMPLAR, series.exemplar(0));
                timestamp(inner, COUNTER_CREATED, created);
                COUNTER
            }
            (number, _) => {
                double(inner, VALUE, number.as_f64());
                GAUGE
            }
        };
        bytes(metric, field, inner);
    }
}

impl Writer for Protobuf {
    fn family(&mut self, out: &mut Vec<u8>, all: &Family<'_>, names: &ShownNames) {
        let family = all.first();
        self.names = names.labels(all);
        let mut head = Vec::new();
        bytes(&mut head, NAME, names.family(family.name()).as_bytes());
        bytes(&mut head, HELP, family.help().as_bytes());
        // A type that this format does not have is shown as a gauge.
        let kind = match family.kind() {
            Kind::Counter => 0,
            Kind::Gauge | Kind::Info | Kind::StateSet => 1,
            Kind::Summary => 2,
            Kind::Histogram => 4,
        };
        varint_field(&mut head, TYPE, kind);
        // The length of the whole comes first, so that it can leave in pieces.
        let mut len = head.len();
        for (label, part) in all.parts() {
            self.part(label, &part);
            for series in part.series() {
                self.fill_metric(&series);
                len += field_len(METRIC, self.metric.len());
            }
        }
        varint(out, len as u64);
        out.extend_from_slice(&head);
    }

    fn part(&mut self, label: &str, family: &FamilySnapshot<'_>) {
        self.label.clear();
        self.label.push_str(label);
        self.bounds.clear();
        self.bounds.extend(family.bounds());
    }

    fn series(&mut self, out: &mut Vec<u8>, series: &SeriesSnapshot<'_>) {
        self.fill_metric(series);
        bytes(out, METRIC, &self.metric);
    }

    fn end(&mut self, _: &mut Vec<u8>) {}
}

/// Wire types: the form of the value after a field's number.
const VARINT: u32 = 0;
const DOUBLE: u32 = 1;
const BYTES: u32 = 2;

fn varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn varint_len(n: u64) -> usize {
    (64 - (n | 1).leading_zeros() as usize).div_ceil(7)
}

fn key(field: u32, wire: u32) -> u64 {
    u64::from(field << 3 | wire)
}

fn field_len(field: u32, len: usize) -> usize {
    varint_len(key(field, BYTES)) + varint_len(len as u64) + len
}

fn varint_field(out: &mut Vec<u8>, field: u32, n: u64) {
    varint(out, key(field, VARINT));
    varint(out, n);
}

fn double(out: &mut Vec<u8>, field: u32, x: f64) {
    varint(out, key(field, DOUBLE));
    out.extend_from_slice(&x.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, field: u32, content: &[u8]) {
    varint(out, key(field, BYTES));
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

/// A label of a series or an exemplar.
fn label(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    let len = field_len(LABEL_NAME, name.len()) + field_len(LABEL_VALUE, value.len());
    varint(out, key(LABEL, BYTES));
    varint(out, len as u64);
    bytes(out, LABEL_NAME, name);
    bytes(out, LABEL_VALUE, value);
}

#[inline]
fn write_exemplar(out: &mut Vec<u8>, field: u32, exemplar: Option<&Exemplar>) {
    let Some(exemplar) = exemplar else { return };
    // There are few, so this may allocate.
    let mut message = Vec::new();
    for RawLabel { name, value } in raw_labels(&exemplar.text) {
        label(&mut message, name, &value);
    }
    double(&mut message, EXEMPLAR_VALUE, exemplar.value);
    timestamp(&mut message, EXEMPLAR_TIME, Some(exemplar.unix_nanos));
    bytes(out, field, &message);
}

fn native_buckets(out: &mut Vec<u8>, native: &NativeBuckets) {
    varint_field(out, SCHEMA, zigzag(i64::from(native.schema())));
    double(out, ZERO_THRESHOLD, native.zero_threshold());
    varint_field(out, ZERO_COUNT, native.zero_count());
    side(out, NEGATIVE_SPAN, NEGATIVE_DELTA, native.negative());
    side(out, POSITIVE_SPAN, POSITIVE_DELTA, native.positive());
    if native.positive().is_empty() && native.negative().is_empty() {
        // An empty span lets a reader know that there are native buckets.
        span(out, POSITIVE_SPAN, 0, 0);
    }
}

/// The buckets of one side.
fn side(out: &mut Vec<u8>, spans: u32, deltas: u32, buckets: &[(i32, u64)]) {
    let mut side = NativeSpans::default();
    side.fill(buckets);
    if buckets.is_empty() {
        return;
    }
    for (offset, len) in side.spans {
        span(out, spans, offset, len);
    }
    let mut differences = Vec::new();
    let mut before = 0_i64;
    for count in side.counts {
        varint(&mut differences, zigzag((count as i64).wrapping_sub(before)));
        before = count as i64;
    }
    bytes(out, deltas, &differences);
}

fn span(out: &mut Vec<u8>, field: u32, offset: i32, len: u32) {
    let mut message = Vec::new();
    varint_field(&mut message, OFFSET, zigzag(i64::from(offset)));
    varint_field(&mut message, LENGTH, u64::from(len));
    bytes(out, field, &message);
}

/// A signed number as the format's `sint32` and `sint64` have it.
fn zigzag(n: i64) -> u64 {
    (n << 1 ^ n >> 63) as u64
}

fn timestamp(out: &mut Vec<u8>, field: u32, nanos: Option<u64>) {
    let Some(nanos) = nanos else { return };
    let (seconds, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let len = 2 + varint_len(seconds) + varint_len(nanos);
    varint(out, key(field, BYTES));
    varint(out, len as u64);
    varint_field(out, SECONDS, seconds);
    varint_field(out, NANOS, nanos);
}
