//! Claims about the series that a page becomes.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prost::Message;
use talea_page::{Family, Kind, Label, Number, Value};

use super::registry::{Series, one_of_each, series};
use crate::record::Record;
use crate::remote_write::message::{MetricType, Request};
use crate::remote_write::{Collector, downgraded, millis};

const STALE: u64 = 0x7FF0_0000_0000_0002;

fn collector() -> Collector {
    Collector::new(
        vec![Label::new("job", "test"), Label::new("user", "other")],
        Vec::new(),
        true,
        true,
        1_000,
    )
}

fn requests(records: &[Record]) -> Vec<Request> {
    let mut requests = Vec::new();
    for record in records {
        let body = snap::raw::Decoder::new().decompress_vec(&record.body).unwrap();
        requests.push(Request::decode(&*body).unwrap());
    }
    requests
}

fn collected(
    collector: &mut Collector,
    families: &[Family],
    time: i64,
) -> BTreeMap<String, Series> {
    series(&requests(&collector.collect(families, time)))
}

/// A family with one series of a value.
fn family(kind: Kind, value: f64, created: Option<SystemTime>) -> Family {
    let value = Value::Number(Number { value, exemplar: None });
    let series = vec![talea_page::Series { labels: Vec::new(), value, created }];
    Family { name: "x".to_owned(), kind, series, ..Family::default() }
}

#[test]
fn each_kind_of_value_becomes_the_series_that_prometheus_has_of_it() {
    let families = one_of_each().snapshot().to_families();
    let now = millis(SystemTime::now()) + 1_000;
    let found = collected(&mut collector(), &families, now);
    let of = |name: &str, labels: &str| {
        let text = format!("__name__={name};{labels}");
        found.get(&text).unwrap_or_else(|| panic!("{text} in {:#?}", found.keys()))
    };
    for (name, labels, value, kind, counts) in [
        ("calls_total", "job=test;user=ann;", 3.0, MetricType::Counter, true),
        ("calls_total", "job=test;user=a\"b\\c\n;", 1.0, MetricType::Counter, true),
        ("fill_ratio", "job=test;user=other;", 0.25, MetricType::Gauge, false),
        ("wait_seconds_bucket", "job=test;le=0.1;user=other;", 0.0, MetricType::Histogram, true),
        ("wait_seconds_bucket", "job=test;le=1.0;user=other;", 1.0, MetricType::Histogram, true),
        ("wait_seconds_bucket", "job=test;le=+Inf;user=other;", 1.0, MetricType::Histogram, true),
        ("wait_seconds_count", "job=test;user=other;", 1.0, MetricType::Histogram, true),
        ("wait_seconds_sum", "job=test;user=other;", 0.5, MetricType::Histogram, true),
        ("size_bucket", "job=test;le=1e+07;user=other;", 4.0, MetricType::Histogram, true),
        ("size_sum", "job=test;user=other;", 1_006.0, MetricType::Histogram, true),
        ("age_count", "job=test;user=other;", 1.0, MetricType::Summary, true),
        ("age_sum", "job=test;user=other;", 9.0, MetricType::Summary, true),
        ("door", "door=open;job=test;user=other;", 1.0, MetricType::StateSet, false),
        ("door", "door=closed;job=test;user=other;", 0.0, MetricType::StateSet, false),
    ] {
        let text = format!("{name} {labels}");
        let series = of(name, labels);
        let [(found, time, start)] = series.samples[..] else { panic!("{series:?}") };
        assert_eq!((found, time), (value, now), "{text}");
        assert_eq!(series.metadata.unwrap().r#type, kind as i32, "{text}");
        assert_eq!(series.help, "Some.", "{text}");
        assert_eq!((start > now - 60_000 && start < now, start == 0), (counts, !counts), "{text}");
    }
    let quantile = of("age", "job=test;quantile=0.5;user=other;");
    assert_eq!(quantile.samples[0].2, 0, "a quantile counts nothing");
    let size = &of("size", "job=test;user=other;").histograms[0];
    assert_eq!((size.count_int, size.sum, size.schema), (Some(4), Some(1_006.0), 0));
    assert_eq!((size.zero_count_int, size.timestamp), (Some(1), now));
    // (2, 4] and (512, 1024].
    let spans: Vec<_> = size.positive_spans.iter().map(|it| (it.offset, it.length)).collect();
    assert_eq!((spans, &size.positive_deltas[..]), (vec![(2, 1), (7, 1)], &[2, -1][..]));
    assert!(size.start_timestamp > 0 && size.start_timestamp < now);
    let depth = &of("depth", "job=test;user=other;").histograms[0];
    assert_eq!((depth.count_int, depth.schema), (Some(1), 1));
    let classic = found.keys().any(|key| key.starts_with("__name__=depth_"));
    assert!(!classic, "a histogram with native buckets only has no others");
    for (name, labels, trace, value) in [
        ("calls_total", "job=test;user=ann;", "trace_id=beef;", 3.0),
        ("wait_seconds_bucket", "job=test;le=1.0;user=other;", "trace_id=cafe;", 0.5),
    ] {
        let [(labels, exemplar)] = &of(name, labels).exemplars[..] else { panic!("{name}") };
        assert_eq!((labels.as_str(), exemplar.value), (trace, value));
    }
}

#[test]
fn what_the_configuration_leaves_out_is_not_sent() {
    let families = one_of_each().snapshot().to_families();
    for (classic, native, has_bucket, has_native) in [
        (true, true, true, true),
        (false, true, false, true),
        (true, false, true, false),
        (false, false, true, false),
    ] {
        let mut collector = Collector::new(Vec::new(), Vec::new(), classic, native, 1_000);
        let found = collected(&mut collector, &families, 1);
        let is_there = |begin: &str| found.keys().any(|key| key.starts_with(begin));
        assert!(is_there("__name__=wait_seconds_bucket;"), "classic families stay classic");
        let what = format!("classic {classic}, native {native}");
        assert_eq!(is_there("__name__=size_bucket;"), has_bucket, "{what}");
        assert_eq!(is_there("__name__=size;"), has_native, "{what}");
        assert_eq!(is_there("__name__=depth_bucket;"), !has_native, "{what}");
    }
}

#[test]
fn a_start_timestamp_lies_before_the_first_sample_and_stays() {
    let at = |millis| Some(UNIX_EPOCH + Duration::from_millis(millis));
    for (what, kind, created, expected) in [
        ("before", Kind::Counter, at(4_000), 4_000),
        ("in the same millisecond", Kind::Counter, at(5_000), 4_999),
        ("after, as the clock was set back", Kind::Counter, at(9_000), 0),
        ("not known", Kind::Counter, None, 0),
        ("a gauge", Kind::Gauge, at(4_000), 0),
    ] {
        let mut collector = collector();
        for time in [5_000, 6_000, 20_000] {
            let found = collected(&mut collector, &[family(kind, 1.0, created)], time);
            let starts: Vec<_> = found.values().map(|it| it.samples[0].2).collect();
            assert_eq!(starts, [expected], "{what}, at {time}");
        }
        // It was wiped.
        let found = collected(&mut collector, &[family(Kind::Counter, 0.0, at(21_000))], 22_000);
        assert_eq!(found.values().next().unwrap().samples[0].2, 21_000, "{what}");
    }
}

#[test]
fn a_series_that_ends_is_marked_once_and_may_come_back() {
    let mut collector = collector();
    let families = one_of_each().snapshot().to_families();
    let count = collected(&mut collector, &families, 1).len();
    let calls: Vec<_> = families.iter().filter(|it| it.name != "calls_total").cloned().collect();
    let found = collected(&mut collector, &calls, 2);
    assert_eq!(found.len(), count);
    for (labels, series) in &found {
        let is_stale = series.samples.iter().any(|(value, ..)| value.to_bits() == STALE);
        assert_eq!(is_stale, labels.starts_with("__name__=calls_total;"), "{labels}");
    }
    assert_eq!(collected(&mut collector, &calls, 3).len(), count - 2, "it is marked once");
    assert_eq!(collected(&mut collector, &families, 4).len(), count, "it is there again");
    let ended = series(&requests(&collector.end(5)));
    assert_eq!(ended.len(), count);
    for (labels, Series { samples, histograms, .. }) in ended {
        let values = samples.iter().map(|(value, time, start)| (*value, *time, *start));
        let sums = histograms.iter().map(|it| (it.sum.unwrap(), it.timestamp, it.start_timestamp));
        let all: Vec<_> = values.chain(sums).collect();
        assert_eq!(all.len(), 1, "{labels}");
        assert_eq!((all[0].0.to_bits(), all[0].1, all[0].2), (STALE, 5, 0), "{labels}");
    }
    assert_eq!(collector.end(6), [], "all has ended");
}

#[test]
fn a_value_arrives_to_the_last_bit() {
    for value in [0.0, -0.0, 5e-324, f64::MAX, f64::NEG_INFINITY, f64::NAN] {
        let found = collected(&mut collector(), &[family(Kind::Gauge, value, None)], 1);
        let (found, ..) = found.values().next().unwrap().samples[0];
        assert_eq!(found.to_bits(), value.to_bits(), "{value}");
    }
}

#[test]
fn an_exemplar_is_sent_once() {
    let mut collector = collector();
    let registry = one_of_each();
    let families = registry.snapshot().to_families();
    let exemplars = |found: BTreeMap<String, Series>| {
        found.into_values().map(|series| series.exemplars.len()).sum::<usize>()
    };
    assert_eq!(exemplars(collected(&mut collector, &families, 1)), 2);
    assert_eq!(exemplars(collected(&mut collector, &families, 2)), 0);
}

#[test]
fn of_two_series_with_the_same_labels_the_first_is_sent() {
    let mut collector = collector();
    let families = [family(Kind::Gauge, 1.0, None), family(Kind::Counter, 2.0, None)];
    let found = collected(&mut collector, &families, 1);
    assert_eq!(found.into_values().next().unwrap().samples, [(1.0, 1, 0)]);
    let twice = collector.twice();
    assert_eq!((twice.count, &*twice.first), (1, "x{job=\"test\",user=\"other\"}"));
}

#[test]
fn requests_are_as_full_as_they_may_be() {
    let families = one_of_each().snapshot().to_families();
    for most in [1, 7, 1_000] {
        let mut collector = Collector::new(Vec::new(), Vec::new(), true, true, most);
        let records = collector.collect(&families, 1);
        let all: u64 = records.iter().map(|record| record.counts.values()).sum();
        assert_eq!(records.len() as u64, all.div_ceil(most));
        assert!(records.iter().all(|record| record.counts.values() <= most));
        assert_eq!(series(&requests(&records)).len() as u64, all, "each series is in one request");
    }
}

#[test]
fn version_1_has_the_same_without_start_timestamps() {
    let families = one_of_each().snapshot().to_families();
    let records = collector().collect(&families, 7);
    let v2 = requests(&records);
    let body = downgraded(&records[0].body).unwrap();
    let body = snap::raw::Decoder::new().decompress_vec(&body).unwrap();
    let v1 = crate::remote_write::message::v1::WriteRequest::decode(&*body).unwrap();
    assert_eq!(v1.timeseries.len(), v2[0].timeseries.len());
    for (old, new) in v1.timeseries.iter().zip(&v2[0].timeseries) {
        let pairs = new.labels_refs.chunks(2);
        let symbols = &v2[0].symbols;
        assert!(old.labels.iter().zip(pairs).all(|(label, pair)| {
            (&label.name, &label.value) == (&symbols[pair[0] as usize], &symbols[pair[1] as usize])
        }));
        let samples: Vec<_> =
            old.samples.iter().map(|it| (it.value.map(f64::to_bits), it.timestamp)).collect();
        let expected: Vec<_> =
            new.samples.iter().map(|it| (it.value.map(f64::to_bits), it.timestamp)).collect();
        assert_eq!(samples, expected);
        assert_eq!(old.exemplars.len(), new.exemplars.len());
        let mut histograms = new.histograms.clone();
        histograms.iter_mut().for_each(|it| it.start_timestamp = 0);
        assert_eq!(old.histograms, histograms);
    }
    for body in [&b""[..], b"\xFF", &records[0].body[..9]] {
        assert_eq!(downgraded(body), None, "{body:?}");
    }
}
