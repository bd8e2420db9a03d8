//! Reads what is exposed as protobuf, by a library that others wrote.

use prost::Message;
use talea::{Escaping, Format, Snapshot};

/// Messages, each field with its type here and there.
macro_rules! messages {
    ($($name:ident { $($field:ident: $type:ty = ($($there:tt)*);)* })*) => {$(
        #[derive(Clone, PartialEq, Message)]
        pub(crate) struct $name {
            $(#[prost($($there)*)] pub(crate) $field: $type,)*
        }
    )*};
}
messages! {
    MetricFamily {
        name: String = (string, tag = "1");
        help: String = (string, tag = "2");
        kind: Option<i32> = (int32, optional, tag = "3");
        metric: Vec<Metric> = (message, repeated, tag = "4");
    }
    Metric {
        label: Vec<LabelPair> = (message, repeated, tag = "1");
        gauge: Option<Number> = (message, optional, tag = "2");
        counter: Option<Number> = (message, optional, tag = "3");
        histogram: Option<Buckets> = (message, optional, tag = "7");
    }
    LabelPair {
        name: String = (string, tag = "1");
        value: String = (string, tag = "2");
    }
    Number {
        value: Option<f64> = (double, optional, tag = "1");
        exemplar: Option<Exemplar> = (message, optional, tag = "2");
        created: Option<Time> = (message, optional, tag = "3");
    }
    Buckets {
        count: u64 = (uint64, tag = "1");
        sum: f64 = (double, tag = "2");
        bucket: Vec<Bucket> = (message, repeated, tag = "3");
        schema: Option<i32> = (sint32, optional, tag = "5");
        zero_threshold: f64 = (double, tag = "6");
        zero_count: u64 = (uint64, tag = "7");
        negative_span: Vec<Span> = (message, repeated, tag = "9");
        negative_delta: Vec<i64> = (sint64, repeated, tag = "10");
        positive_span: Vec<Span> = (message, repeated, tag = "12");
        positive_delta: Vec<i64> = (sint64, repeated, tag = "13");
        created: Option<Time> = (message, optional, tag = "15");
        exemplars: Vec<Exemplar> = (message, repeated, tag = "16");
    }
    Span {
        offset: i32 = (sint32, tag = "1");
        length: u32 = (uint32, tag = "2");
    }
    Bucket {
        cumulative: u64 = (uint64, tag = "1");
        upper_bound: f64 = (double, tag = "2");
        exemplar: Option<Exemplar> = (message, optional, tag = "3");
    }
    Exemplar {
        label: Vec<LabelPair> = (message, repeated, tag = "1");
        value: f64 = (double, tag = "2");
        time: Option<Time> = (message, optional, tag = "3");
    }
    Time {
        seconds: i64 = (int64, tag = "1");
        nanos: i32 = (int32, tag = "2");
    }
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
