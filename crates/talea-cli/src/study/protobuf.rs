//! The parts of Prometheus' protobuf format that a study reads: histograms with their labels. Source:
//! `metrics.proto` of Prometheus' client model.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct MetricFamily {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "4")]
    pub(super) metric: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Metric {
    #[prost(message, repeated, tag = "1")]
    pub(super) label: Vec<LabelPair>,
    #[prost(message, optional, tag = "7")]
    pub(super) histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LabelPair {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Histogram {
    #[prost(uint64, tag = "1")]
    pub(super) sample_count: u64,
    #[prost(double, tag = "2")]
    pub(super) sample_sum: f64,
    #[prost(message, repeated, tag = "3")]
    pub(super) bucket: Vec<Bucket>,
    #[prost(sint32, optional, tag = "5")]
    pub(super) schema: Option<i32>,
    #[prost(double, tag = "6")]
    pub(super) zero_threshold: f64,
    #[prost(uint64, tag = "7")]
    pub(super) zero_count: u64,
    #[prost(message, repeated, tag = "12")]
    pub(super) positive_span: Vec<BucketSpan>,
    #[prost(sint64, repeated, tag = "13")]
    pub(super) positive_delta: Vec<i64>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Bucket {
    #[prost(uint64, tag = "1")]
    pub(super) cumulative_count: u64,
    #[prost(double, tag = "2")]
    pub(super) upper_bound: f64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct BucketSpan {
    #[prost(sint32, tag = "1")]
    pub(super) offset: i32,
    #[prost(uint32, tag = "2")]
    pub(super) length: u32,
}

/// The families of a page; `None` if it is no such page.
pub(super) fn families(mut page: &[u8]) -> Option<Vec<MetricFamily>> {
    let mut families = Vec::new();
    while !page.is_empty() {
        families.push(MetricFamily::decode_length_delimited(&mut page).ok()?);
    }
    Some(families)
}
