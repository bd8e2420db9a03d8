//! The parts of Prometheus' protobuf format that are read. Source: `metrics.proto` of Prometheus' client
//! model.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MetricFamily {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) help: String,
    #[prost(enumeration = "Kind", tag = "3")]
    pub(crate) kind: i32,
    #[prost(message, repeated, tag = "4")]
    pub(crate) metric: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Metric {
    #[prost(message, repeated, tag = "1")]
    pub(crate) label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    pub(crate) gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    pub(crate) counter: Option<Number>,
    #[prost(message, optional, tag = "4")]
    pub(crate) summary: Option<Summary>,
    #[prost(message, optional, tag = "5")]
    pub(crate) untyped: Option<Number>,
    #[prost(message, optional, tag = "7")]
    pub(crate) histogram: Option<Histogram>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum Kind {
    Counter = 0,
    Gauge = 1,
    Summary = 2,
    Untyped = 3,
    Histogram = 4,
    GaugeHistogram = 5,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Number {
    #[prost(double, tag = "1")]
    pub(crate) value: f64,
    /// Of a counter.
    #[prost(message, optional, tag = "2")]
    pub(crate) exemplar: Option<Exemplar>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Exemplar {
    #[prost(message, repeated, tag = "1")]
    pub(crate) label: Vec<LabelPair>,
    #[prost(double, tag = "2")]
    pub(crate) value: f64,
    #[prost(message, optional, tag = "3")]
    pub(crate) timestamp: Option<Timestamp>,
}

/// Since 1970.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Message)]
pub(crate) struct Timestamp {
    #[prost(int64, tag = "1")]
    pub(crate) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(crate) nanos: i32,
}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(crate) struct LabelPair {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Histogram {
    #[prost(uint64, tag = "1")]
    pub(crate) sample_count: u64,
    #[prost(double, tag = "2")]
    pub(crate) sample_sum: f64,
    #[prost(message, repeated, tag = "3")]
    pub(crate) bucket: Vec<Bucket>,
    #[prost(sint32, optional, tag = "5")]
    pub(crate) schema: Option<i32>,
    #[prost(double, tag = "6")]
    pub(crate) zero_threshold: f64,
    #[prost(uint64, tag = "7")]
    pub(crate) zero_count: u64,
    #[prost(message, repeated, tag = "12")]
    pub(crate) positive_span: Vec<BucketSpan>,
    #[prost(sint64, repeated, tag = "13")]
    pub(crate) positive_delta: Vec<i64>,
    /// Of the native buckets.
    #[prost(message, repeated, tag = "16")]
    pub(crate) exemplars: Vec<Exemplar>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Summary {
    #[prost(uint64, tag = "1")]
    pub(crate) sample_count: u64,
    #[prost(double, tag = "2")]
    pub(crate) sample_sum: f64,
    #[prost(message, repeated, tag = "3")]
    pub(crate) quantile: Vec<Quantile>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Quantile {
    #[prost(double, tag = "1")]
    pub(crate) quantile: f64,
    #[prost(double, tag = "2")]
    pub(crate) value: f64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Bucket {
    #[prost(uint64, tag = "1")]
    pub(crate) cumulative_count: u64,
    #[prost(double, tag = "2")]
    pub(crate) upper_bound: f64,
    #[prost(message, optional, tag = "3")]
    pub(crate) exemplar: Option<Exemplar>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct BucketSpan {
    #[prost(sint32, tag = "1")]
    pub(crate) offset: i32,
    #[prost(uint32, tag = "2")]
    pub(crate) length: u32,
}

impl Metric {
    /// The value of a counter, a gauge or an untyped metric.
    pub(crate) fn value(&self) -> Option<f64> {
        let number = self.counter.as_ref().or(self.gauge.as_ref()).or(self.untyped.as_ref())?;
        Some(number.value)
    }

    pub(crate) fn exemplars(&self) -> impl Iterator<Item = &Exemplar> {
        let histogram = self.histogram.as_ref();
        let buckets = histogram.into_iter().flat_map(|it| &it.bucket);
        let classic = buckets.filter_map(|bucket| bucket.exemplar.as_ref());
        let native = histogram.into_iter().flat_map(|it| &it.exemplars);
        let counter = self.counter.as_ref().and_then(|counter| counter.exemplar.as_ref());
        classic.chain(native).chain(counter)
    }
}

/// Whether series of a kind only grow, but for a new beginning.
pub(crate) fn only_grows(kind: i32) -> bool {
    matches!(Kind::try_from(kind), Ok(Kind::Counter | Kind::Histogram))
}

/// The families of a page; `None` if it is no such page. Messages of one name and one type are one
/// family: a page has several if only some of its histograms have native buckets.
pub(crate) fn families(mut page: &[u8]) -> Option<Vec<MetricFamily>> {
    let mut families: Vec<MetricFamily> = Vec::new();
    while !page.is_empty() {
        let mut next = MetricFamily::decode_length_delimited(&mut page).ok()?;
        let last = families.last_mut();
        match last.filter(|last| (&last.name, last.kind) == (&next.name, next.kind)) {
            Some(last) => last.metric.append(&mut next.metric),
            None => families.push(next),
        }
    }
    Some(families)
}
