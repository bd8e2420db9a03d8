//! The parts of Prometheus' protobuf format that are read. Source: `metrics.proto` of Prometheus' client
//! model.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub struct MetricFamily {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub help: String,
    #[prost(enumeration = "Kind", tag = "3")]
    pub kind: i32,
    #[prost(message, repeated, tag = "4")]
    pub metric: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Metric {
    #[prost(message, repeated, tag = "1")]
    pub label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    pub gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    pub counter: Option<Number>,
    #[prost(message, optional, tag = "4")]
    pub summary: Option<Summary>,
    #[prost(message, optional, tag = "5")]
    pub untyped: Option<Number>,
    #[prost(message, optional, tag = "7")]
    pub histogram: Option<Histogram>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum Kind {
    Counter = 0,
    Gauge = 1,
    Summary = 2,
    Untyped = 3,
    Histogram = 4,
    GaugeHistogram = 5,
}

#[derive(Clone, PartialEq, Message)]
pub struct Number {
    #[prost(double, tag = "1")]
    pub value: f64,
    /// Of a counter.
    #[prost(message, optional, tag = "2")]
    pub exemplar: Option<Exemplar>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Exemplar {
    #[prost(message, repeated, tag = "1")]
    pub label: Vec<LabelPair>,
    #[prost(double, tag = "2")]
    pub value: f64,
    #[prost(message, optional, tag = "3")]
    pub timestamp: Option<Timestamp>,
}

/// Since 1970.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Message)]
pub struct Timestamp {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct LabelPair {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub value: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Histogram {
    #[prost(uint64, tag = "1")]
    pub sample_count: u64,
    #[prost(double, tag = "2")]
    pub sample_sum: f64,
    #[prost(message, repeated, tag = "3")]
    pub bucket: Vec<Bucket>,
    #[prost(sint32, optional, tag = "5")]
    pub schema: Option<i32>,
    #[prost(double, tag = "6")]
    pub zero_threshold: f64,
    #[prost(uint64, tag = "7")]
    pub zero_count: u64,
    #[prost(message, repeated, tag = "12")]
    pub positive_span: Vec<BucketSpan>,
    #[prost(sint64, repeated, tag = "13")]
    pub positive_delta: Vec<i64>,
    /// Of the native buckets.
    #[prost(message, repeated, tag = "16")]
    pub exemplars: Vec<Exemplar>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Summary {
    #[prost(uint64, tag = "1")]
    pub sample_count: u64,
    #[prost(double, tag = "2")]
    pub sample_sum: f64,
    #[prost(message, repeated, tag = "3")]
    pub quantile: Vec<Quantile>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Quantile {
    #[prost(double, tag = "1")]
    pub quantile: f64,
    #[prost(double, tag = "2")]
    pub value: f64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Bucket {
    #[prost(uint64, tag = "1")]
    pub cumulative_count: u64,
    #[prost(double, tag = "2")]
    pub upper_bound: f64,
    #[prost(message, optional, tag = "3")]
    pub exemplar: Option<Exemplar>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct BucketSpan {
    #[prost(sint32, tag = "1")]
    pub offset: i32,
    #[prost(uint32, tag = "2")]
    pub length: u32,
}

impl Metric {
    /// The value of a counter, a gauge or an untyped metric.
    pub fn value(&self) -> Option<f64> {
        let number = self.counter.as_ref().or(self.gauge.as_ref()).or(self.untyped.as_ref())?;
        Some(number.value)
    }

    pub fn exemplars(&self) -> impl Iterator<Item = &Exemplar> {
        let histogram = self.histogram.as_ref();
        let buckets = histogram.into_iter().flat_map(|it| &it.bucket);
        let classic = buckets.filter_map(|bucket| bucket.exemplar.as_ref());
        let native = histogram.into_iter().flat_map(|it| &it.exemplars);
        let counter = self.counter.as_ref().and_then(|counter| counter.exemplar.as_ref());
        classic.chain(native).chain(counter)
    }
}

/// Whether series of a kind only grow, but for a new beginning.
pub fn only_grows(kind: i32) -> bool {
    matches!(Kind::try_from(kind), Ok(Kind::Counter | Kind::Histogram))
}

/// The families of a page; `None` if it is no such page. Messages of one name and one type are one
/// family: a page has several if only some of its histograms have native buckets.
pub fn families(mut page: &[u8]) -> Option<Vec<MetricFamily>> {
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
