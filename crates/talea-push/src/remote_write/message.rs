//! The messages of remote-write, of both versions. Sources: `io.prometheus.write.v2` of the
//! specification 2.0-rc.4, `prometheus.WriteRequest` of 1.0.

use prost::Message;

/// A request of version 2.0.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Request {
    /// Each text once; the first is empty.
    #[prost(string, repeated, tag = "4")]
    pub(crate) symbols: Vec<String>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TimeSeries {
    /// Names and values in turn, by their places in the symbols.
    #[prost(uint32, repeated, tag = "1")]
    pub(crate) labels_refs: Vec<u32>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) samples: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) histograms: Vec<Histogram>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) exemplars: Vec<Exemplar>,
    #[prost(message, optional, tag = "5")]
    pub(crate) metadata: Option<Metadata>,
}

/// Times are in milliseconds since 1970.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Sample {
    /// As [`float`] makes it.
    #[prost(double, optional, tag = "1")]
    pub(crate) value: Option<f64>,
    #[prost(int64, tag = "2")]
    pub(crate) timestamp: i64,
    /// 0 if it is not known.
    #[prost(int64, tag = "3")]
    pub(crate) start_timestamp: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Exemplar {
    #[prost(uint32, repeated, tag = "1")]
    pub(crate) labels_refs: Vec<u32>,
    #[prost(double, tag = "2")]
    pub(crate) value: f64,
    #[prost(int64, tag = "3")]
    pub(crate) timestamp: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct Metadata {
    #[prost(enumeration = "MetricType", tag = "1")]
    pub(crate) r#type: i32,
    #[prost(uint32, tag = "3")]
    pub(crate) help_ref: u32,
    #[prost(uint32, tag = "4")]
    pub(crate) unit_ref: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum MetricType {
    Unspecified = 0,
    Counter = 1,
    Gauge = 2,
    Histogram = 3,
    GaugeHistogram = 4,
    Summary = 5,
    Info = 6,
    StateSet = 7,
}

/// A native histogram, in both versions: 1.0 has no start timestamp.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Histogram {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) count_int: Option<u64>,
    #[prost(double, optional, tag = "3")]
    pub(crate) sum: Option<f64>,
    #[prost(sint32, tag = "4")]
    pub(crate) schema: i32,
    #[prost(double, tag = "5")]
    pub(crate) zero_threshold: f64,
    #[prost(uint64, optional, tag = "6")]
    pub(crate) zero_count_int: Option<u64>,
    #[prost(message, repeated, tag = "8")]
    pub(crate) negative_spans: Vec<BucketSpan>,
    #[prost(sint64, repeated, tag = "9")]
    pub(crate) negative_deltas: Vec<i64>,
    #[prost(message, repeated, tag = "11")]
    pub(crate) positive_spans: Vec<BucketSpan>,
    #[prost(sint64, repeated, tag = "12")]
    pub(crate) positive_deltas: Vec<i64>,
    /// 3: a gauge histogram. 0: the receiver looks for resets itself.
    #[prost(int32, tag = "14")]
    pub(crate) reset_hint: i32,
    #[prost(int64, tag = "15")]
    pub(crate) timestamp: i64,
    #[prost(int64, tag = "17")]
    pub(crate) start_timestamp: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct BucketSpan {
    #[prost(sint32, tag = "1")]
    pub(crate) offset: i32,
    #[prost(uint32, tag = "2")]
    pub(crate) length: u32,
}

/// A float as a field: 0 is left out, and −0, which is not the same, is written.
pub(crate) fn float(x: f64) -> Option<f64> {
    (x.to_bits() != 0).then_some(x)
}

/// The messages of version 1.0 that differ.
pub(crate) mod v1 {
    use super::{Histogram, Message};

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct WriteRequest {
        #[prost(message, repeated, tag = "1")]
        pub(crate) timeseries: Vec<TimeSeries>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct TimeSeries {
        #[prost(message, repeated, tag = "1")]
        pub(crate) labels: Vec<Label>,
        #[prost(message, repeated, tag = "2")]
        pub(crate) samples: Vec<Sample>,
        #[prost(message, repeated, tag = "3")]
        pub(crate) exemplars: Vec<Exemplar>,
        #[prost(message, repeated, tag = "4")]
        pub(crate) histograms: Vec<Histogram>,
    }

    #[derive(Clone, PartialEq, Eq, Message)]
    pub(crate) struct Label {
        #[prost(string, tag = "1")]
        pub(crate) name: String,
        #[prost(string, tag = "2")]
        pub(crate) value: String,
    }

    #[derive(Clone, Copy, PartialEq, Message)]
    pub(crate) struct Sample {
        #[prost(double, optional, tag = "1")]
        pub(crate) value: Option<f64>,
        #[prost(int64, tag = "2")]
        pub(crate) timestamp: i64,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct Exemplar {
        #[prost(message, repeated, tag = "1")]
        pub(crate) labels: Vec<Label>,
        #[prost(double, tag = "2")]
        pub(crate) value: f64,
        #[prost(int64, tag = "3")]
        pub(crate) timestamp: i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of a message's fields and their wire types, in the order of the bytes.
    fn fields(message: &impl Message) -> Vec<(u64, u64)> {
        let bytes = message.encode_to_vec();
        let (mut rest, mut fields) = (&bytes[..], Vec::new());
        while !rest.is_empty() {
            let key = prost::encoding::decode_varint(&mut rest).unwrap();
            fields.push((key >> 3, key & 7));
            let len = match key & 7 {
                0 => prost::encoding::decode_varint(&mut rest).map(|_| 0).unwrap(),
                1 => 8,
                2 => prost::encoding::decode_varint(&mut rest).unwrap() as usize,
                other => panic!("wire type {other}"),
            };
            rest = &rest[len..];
        }
        fields
    }

    const VARINT: u64 = 0;
    const DOUBLE: u64 = 1;
    const BYTES: u64 = 2;

    #[test]
    fn fields_have_the_numbers_and_types_of_the_published_definitions() {
        let span = BucketSpan { offset: -1, length: 2 };
        let sample = Sample { value: Some(1.0), timestamp: 2, start_timestamp: 3 };
        let exemplar = Exemplar { labels_refs: vec![1, 2], value: 1.0, timestamp: 2 };
        let metadata = Metadata { r#type: MetricType::StateSet.into(), help_ref: 1, unit_ref: 2 };
        let histogram = Histogram {
            count_int: Some(0),
            sum: Some(1.0),
            schema: -4,
            zero_threshold: 1.0,
            zero_count_int: Some(0),
            negative_spans: vec![span],
            negative_deltas: vec![-1, 1],
            positive_spans: vec![span],
            positive_deltas: vec![1],
            reset_hint: 3,
            timestamp: 1,
            start_timestamp: 2,
        };
        let series = TimeSeries {
            labels_refs: vec![1, 2],
            samples: vec![sample],
            histograms: vec![histogram.clone()],
            exemplars: vec![exemplar.clone()],
            metadata: Some(metadata),
        };
        let request = Request { symbols: vec![String::new()], timeseries: vec![series.clone()] };
        assert_eq!(fields(&request), [(4, BYTES), (5, BYTES)]);
        assert_eq!(fields(&series), [1, 2, 3, 4, 5].map(|n| (n, BYTES)));
        assert_eq!(fields(&sample), [(1, DOUBLE), (2, VARINT), (3, VARINT)]);
        assert_eq!(fields(&exemplar), [(1, BYTES), (2, DOUBLE), (3, VARINT)]);
        assert_eq!(fields(&metadata), [1, 3, 4].map(|n| (n, VARINT)));
        assert_eq!(fields(&span), [(1, VARINT), (2, VARINT)]);
        let of_histogram = [
            (1, VARINT),
            (3, DOUBLE),
            (4, VARINT),
            (5, DOUBLE),
            (6, VARINT),
            (8, BYTES),
            (9, BYTES),
            (11, BYTES),
            (12, BYTES),
            (14, VARINT),
            (15, VARINT),
            (17, VARINT),
        ];
        assert_eq!(fields(&histogram), of_histogram);
        // Numbers with a sign are zigzag in spans, schemas and deltas.
        assert_eq!(span.encode_to_vec(), [1 << 3, 1, 2 << 3, 2]);

        let label = v1::Label { name: "a".to_owned(), value: "b".to_owned() };
        let sample = v1::Sample { value: Some(1.0), timestamp: 2 };
        let exemplar = v1::Exemplar { labels: vec![label.clone()], value: 1.0, timestamp: 2 };
        let series = v1::TimeSeries {
            labels: vec![label.clone()],
            samples: vec![sample],
            exemplars: vec![exemplar.clone()],
            histograms: vec![histogram],
        };
        assert_eq!(fields(&v1::WriteRequest { timeseries: vec![series.clone()] }), [(1, BYTES)]);
        assert_eq!(fields(&series), [1, 2, 3, 4].map(|n| (n, BYTES)));
        assert_eq!(fields(&label), [(1, BYTES), (2, BYTES)]);
        assert_eq!(fields(&sample), [(1, DOUBLE), (2, VARINT)]);
        assert_eq!(fields(&exemplar), [(1, BYTES), (2, DOUBLE), (3, VARINT)]);
    }
}
