//! Claims about what goes out by OTLP.

use std::io::Read;
use std::time::Duration;

use flate2::read::GzDecoder;
use prost::Message;

use super::receiver::Answer::{Body, Status, Take};
use super::receiver::{LONGEST, Received, Receiver};
use super::registry::one_of_each;
use crate::otlp::message::{ExportMetricsServiceRequest, KeyValue, Metric};
use crate::{Config, Pusher};

fn config(receiver: &Receiver) -> Config {
    let url = format!("http://{}/v1/metrics", receiver.address);
    let millis = Duration::from_millis;
    Config::otlp(&url)
        .unwrap()
        .label("service.name", "test")
        .interval(Duration::from_secs(3_600))
        .timeout(LONGEST)
        .backoff(millis(1), millis(5))
}

/// The metrics of a request, without what wraps them.
fn metrics(received: &Received) -> Vec<Metric> {
    let mut message = Vec::new();
    GzDecoder::new(&*received.body).read_to_end(&mut message).unwrap();
    let request = ExportMetricsServiceRequest::decode(&*message).unwrap();
    let [resource] = request.resource_metrics.try_into().unwrap();
    assert_eq!(resource.resource.unwrap().attributes, [KeyValue::new("service.name", "test")]);
    let [scope] = resource.scope_metrics.try_into().unwrap();
    assert_eq!(scope.scope.unwrap().name, "talea-push");
    assert!(!scope.metrics.is_empty(), "an envelope is not empty");
    scope.metrics
}

#[test]
fn each_kind_of_value_becomes_the_metric_that_otlp_has_for_it() {
    let receiver = Receiver::new(&[]);
    let registry = one_of_each();
    let pusher =
        Pusher::start_for(&registry, &talea::Registry::for_test().unwrap(), config(&receiver));
    let pusher = pusher.unwrap();
    let received = receiver.wait_for(1);
    assert_eq!(received[0].header("content-type"), Some("application/x-protobuf"));
    assert_eq!(received[0].header("content-encoding"), Some("gzip"));
    let all = metrics(&received[0]);
    let metric = |name: &str| {
        let found = all.iter().find(|metric| metric.name == name);
        found.unwrap_or_else(|| panic!("{name} in {all:#?}"))
    };
    let calls = metric("calls").sum.as_ref().unwrap();
    assert_eq!((calls.aggregation_temporality, calls.is_monotonic), (2, true));
    let ann = &calls.data_points[0];
    assert_eq!((ann.as_double, &ann.attributes), (Some(3.0), &vec![KeyValue::new("user", "ann")]));
    assert!(0 < ann.start_time_unix_nano && ann.start_time_unix_nano < ann.time_unix_nano);
    let exemplar = &ann.exemplars[0];
    assert_eq!(exemplar.filtered_attributes, [KeyValue::new("trace_id", "beef")], "it is short");

    let level = metric("fill_ratio");
    assert_eq!((level.unit.as_str(), level.description.as_str()), ("1", "Some."));
    let level = &level.gauge.as_ref().unwrap().data_points[0];
    assert_eq!((level.as_double, level.start_time_unix_nano), (Some(0.25), 0));

    let wait = metric("wait_seconds");
    assert_eq!(wait.unit, "s");
    let wait = &wait.histogram.as_ref().unwrap().data_points[0];
    assert_eq!((wait.count, wait.sum), (1, Some(0.5)));
    assert_eq!(wait.explicit_bounds, [0.1, 1.0]);
    assert_eq!(wait.bucket_counts, [0, 1, 0]);

    let size = &metric("size").exponential_histogram.as_ref().unwrap().data_points[0];
    assert_eq!((size.count, size.sum, size.scale, size.zero_count), (4, Some(1_006.0), 0, 1));
    let positive = size.positive.as_ref().unwrap();
    // (2, 4] and (512, 1024].
    assert_eq!(positive.offset, 1);
    assert_eq!(positive.bucket_counts, [2, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(size.negative, None);

    let age = &metric("age").summary.as_ref().unwrap().data_points[0];
    assert_eq!((age.count, age.sum, age.quantile_values.len()), (1, 9.0, 2));
    let door = metric("door").gauge.as_ref().unwrap();
    assert_eq!(door.data_points.len(), 2);

    // What was sent once is cumulative, but for exemplars.
    assert!(pusher.flush(LONGEST));
    let again = metrics(&receiver.received()[1]);
    let calls = again.iter().find(|metric| metric.name == "calls").unwrap();
    let ann = &calls.sum.as_ref().unwrap().data_points[0];
    assert_eq!((ann.as_double, ann.exemplars.len()), (Some(3.0), 0));
}

#[test]
fn responses_have_the_end_that_otlp_says_and_requests_are_repeated_byte_for_byte() {
    for (script, requests, is_sent) in [
        (&[Take][..], 1, true),
        (&[Status(503, "Retry-After: 0\r\n"), Status(429, ""), Status(504, ""), Take], 4, true),
        (&[Status(502, ""), Take], 2, true),
        // What a partial success rejects may have stood in the rest.
        (&[Body(200, "", 100, 10), Take], 2, true),
        (&[Body(400, "", 100, 10)], 1, false),
        (&[Status(500, "")], 1, false),
        (&[Status(400, "")], 1, false),
        (&[Status(307, "Location: http://127.0.0.1:1/\r\n")], 1, false),
    ] {
        let receiver = Receiver::new(script);
        let own = talea::Registry::for_test().unwrap();
        let pusher = Pusher::start_for(&one_of_each(), &own, config(&receiver)).unwrap();
        let received = receiver.wait_for(requests);
        assert!(received[..requests].iter().all(|it| it.body == received[0].body), "{script:?}");
        assert!(pusher.flush(LONGEST));
        assert_eq!(receiver.received().len(), requests + 1, "{script:?}");
        let refused = own.snapshot();
        let refused = refused.select("talea_push_samples_failed_total", &[("reason", "refused")]);
        let values: Vec<_> = refused.map(|it| it.value()).collect();
        assert_eq!(values == [talea::Value::Unsigned(0)], is_sent, "{script:?}: {values:?}");
    }
}

#[test]
fn requests_are_as_full_as_they_may_be() {
    let families = one_of_each().snapshot().to_families();
    let points: u64 = families.iter().map(|family| family.series.len() as u64).sum();
    for most in [1, 2, 3, 1_000] {
        let mut collector = crate::otlp::Collector::new(&[], true, most, None);
        let records = collector.collect(&families, 1);
        let counts: Vec<u64> = records.iter().map(|record| record.counts.values()).collect();
        assert_eq!(counts.iter().sum::<u64>(), points, "{most}");
        let (_, full) = counts.split_last().unwrap();
        assert!(full.iter().all(|count| *count == most), "{most}: {counts:?}");
    }
}
