//! Reads what is exposed as protobuf, by a library that others wrote.

use prost::Message;
use talea::{Escaping, Format, Snapshot};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MetricFamily {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) help: String,
    #[prost(int32, optional, tag = "3")]
    pub(crate) kind: Option<i32>,
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
    #[prost(message, optional, tag = "7")]
    pub(crate) histogram: Option<Buckets>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LabelPair {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Number {
    #[prost(double, optional, tag = "1")]
    pub(crate) value: Option<f64>,
    #[prost(message, optional, tag = "2")]
    pub(crate) exemplar: Option<Exemplar>,
    #[prost(message, optional, tag = "3")]
    pub(crate) created: Option<Time>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Buckets {
    #[prost(uint64, tag = "1")]
    pub(crate) count: u64,
    #[prost(double, tag = "2")]
    pub(crate) sum: f64,
    #[prost(message, repeated, tag = "3")]
    pub(crate) bucket: Vec<Bucket>,
    #[prost(sint32, optional, tag = "5")]
    pub(crate) schema: Option<i32>,
    #[prost(double, tag = "6")]
    pub(crate) zero_threshold: f64,
    #[prost(uint64, tag = "7")]
    pub(crate) zero_count: u64,
    #[prost(message, repeated, tag = "9")]
    pub(crate) negative_span: Vec<Span>,
    #[prost(sint64, repeated, tag = "10")]
    pub(crate) negative_delta: Vec<i64>,
    #[prost(message, repeated, tag = "12")]
    pub(crate) positive_span: Vec<Span>,
    #[prost(sint64, repeated, tag = "13")]
    pub(crate) positive_delta: Vec<i64>,
    #[prost(message, optional, tag = "15")]
    pub(crate) created: Option<Time>,
    #[prost(message, repeated, tag = "16")]
    pub(crate) exemplars: Vec<Exemplar>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Span {
    #[prost(sint32, tag = "1")]
    pub(crate) offset: i32,
    #[prost(uint32, tag = "2")]
    pub(crate) length: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Bucket {
    #[prost(uint64, tag = "1")]
    pub(crate) cumulative: u64,
    #[prost(double, tag = "2")]
    pub(crate) upper_bound: f64,
    #[prost(message, optional, tag = "3")]
    pub(crate) exemplar: Option<Exemplar>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Exemplar {
    #[prost(message, repeated, tag = "1")]
    pub(crate) label: Vec<LabelPair>,
    #[prost(double, tag = "2")]
    pub(crate) value: f64,
    #[prost(message, optional, tag = "3")]
    pub(crate) time: Option<Time>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Time {
    #[prost(int64, tag = "1")]
    pub(crate) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(crate) nanos: i32,
}

pub(crate) fn families(all: &[u8]) -> Vec<MetricFamily> {
    let mut rest = all;
    let mut families = Vec::new();
    while !rest.is_empty() {
        families.push(MetricFamily::decode_length_delimited(&mut rest).unwrap());
    }
    families
}

/// The buckets of the one histogram of a name in a snapshot.
pub(crate) fn histogram(snapshot: &Snapshot, name: &str) -> Buckets {
    let chunks = snapshot.chunks(Format::Protobuf, Escaping::default(), usize::MAX);
    let all = families(&chunks.collect::<Vec<_>>().concat());
    let family = all.into_iter().find(|family| family.name == name).unwrap();
    family.metric.into_iter().next().unwrap().histogram.unwrap()
}

impl Buckets {
    pub(crate) fn positive(&self) -> Vec<(i32, u64)> {
        unpacked(&self.positive_span, &self.positive_delta)
    }

    pub(crate) fn negative(&self) -> Vec<(i32, u64)> {
        unpacked(&self.negative_span, &self.negative_delta)
    }

    /// All that is in native buckets.
    pub(crate) fn in_native(&self) -> u64 {
        let sides = self.positive().into_iter().chain(self.negative());
        self.zero_count + sides.map(|(_, count)| count).sum::<u64>()
    }
}

/// The buckets that spans and deltas stand for, as the format's description says; those
/// that are empty are left out.
fn unpacked(spans: &[Span], deltas: &[i64]) -> Vec<(i32, u64)> {
    let mut deltas = deltas.iter();
    let (mut next, mut count) = (0_i32, 0_i64);
    let mut buckets = Vec::new();
    for (n, span) in spans.iter().enumerate() {
        assert!(n == 0 || span.offset >= 0, "spans ascend: {spans:?}");
        next += span.offset;
        for _ in 0..span.length {
            count += deltas.next().expect("each bucket has a delta");
            buckets.push((next, u64::try_from(count).expect("no bucket is negative")));
            next += 1;
        }
    }
    assert_eq!(deltas.len(), 0, "each delta has a bucket");
    buckets.retain(|&(_, count)| count > 0);
    buckets
}
