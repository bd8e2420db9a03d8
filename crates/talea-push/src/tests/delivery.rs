//! Claims about what becomes of requests.

use std::time::Duration;

use talea::{Counter, Registry, Snapshot};

use super::receiver::Answer::{Body, Close, Half, Nothing, Status, Take};
use super::receiver::{Answer, LONGEST, Receiver};
use super::registry::{config, one_of_each, opts, series};
use crate::Pusher;

/// The metrics about pushing of a registry.
struct Counted {
    sent: f64,
    refused: f64,
    not_written: f64,
    dropped: f64,
    waiting: f64,
    retries: f64,
}

fn counted(registry: &Registry) -> Counted {
    let snapshot = registry.snapshot();
    Counted {
        sent: total(&snapshot, "samples_sent_total", &[]),
        refused: total(&snapshot, "samples_failed_total", &[("reason", "refused")]),
        not_written: total(&snapshot, "samples_failed_total", &[("reason", "not_written")]),
        dropped: total(&snapshot, "samples_dropped_total", &[]),
        waiting: total(&snapshot, "queue_samples", &[]),
        retries: total(&snapshot, "retries_total", &[]),
    }
}

fn total(snapshot: &Snapshot, name: &str, labels: &[(&str, &str)]) -> f64 {
    snapshot.select(&format!("talea_push_{name}"), labels).map(|it| number(&it.value())).sum()
}

fn number(value: &talea::Value) -> f64 {
    match value {
        talea::Value::Unsigned(n) => *n as f64,
        talea::Value::Signed(n) => *n as f64,
        talea::Value::Float(x) => *x,
        other => panic!("{other:?}"),
    }
}

/// How many samples a collection of these metrics has.
fn samples(received: &super::receiver::Received) -> f64 {
    let request = received.v2();
    request.timeseries.iter().map(|it| it.samples.len() + it.histograms.len()).sum::<usize>() as f64
}

const WRITTEN: &str = "X-Prometheus-Remote-Write-Samples-Written: 5\r\n";

#[test]
fn each_response_has_the_end_that_the_protocol_says() {
    // The versions of the requests, whether the samples end as sent, as refused or as not written.
    const V2: &str = "2.0.0";
    const V1: &str = "0.1.0";
    let cases: [(&[Answer], &[&str], &str); 24] = [
        (&[Take], &[V2], "sent"),
        (&[Status(500, ""), Take], &[V2, V2], "sent"),
        (&[Status(503, "Retry-After: 0\r\n"), Status(502, ""), Take], &[V2, V2, V2], "sent"),
        (&[Status(429, "Retry-After: 0\r\n"), Take], &[V2, V2], "sent"),
        (&[Status(429, ""), Take], &[V2, V2], "sent"),
        (&[Status(503, "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n"), Take], &[V2, V2], "sent"),
        (&[Close, Take], &[V2, V2], "sent"),
        (&[Half, Take], &[V2, V2], "sent"),
        (&[Status(307, "Location: http://127.0.0.1:1/\r\n"), Take], &[V2, V2], "sent"),
        (&[Status(504, ""), Take], &[V2, V2], "sent"),
        // What a body says is for people, whether it is cut off or longer than anybody reads.
        (&[Body(200, WRITTEN, 100, 10)], &[V2], "not written but 5"),
        (&[Body(400, WRITTEN, 100, 10)], &[V2], "refused but 5"),
        (&[Body(400, WRITTEN, 1 << 20, 1 << 20)], &[V2], "refused but 5"),
        (&[Body(503, "", 1 << 20, 1 << 20), Take], &[V2, V2], "sent"),
        (&[Status(401, "")], &[V2], "refused"),
        (&[Status(404, "")], &[V2], "refused"),
        (&[Status(408, "")], &[V2], "refused"),
        (&[Status(413, "")], &[V2], "refused"),
        (&[Status(400, WRITTEN)], &[V2], "refused but 5"),
        (&[Status(200, WRITTEN)], &[V2], "not written but 5"),
        (&[Status(415, ""), Take], &[V2, V1], "sent"),
        (&[Status(204, ""), Take], &[V2, V1], "sent"),
        (&[Status(400, ""), Status(500, ""), Take], &[V2, V1, V1], "sent"),
        (&[Status(400, ""), Status(400, "")], &[V2, V1], "refused"),
    ];
    for (script, versions, end) in cases {
        let receiver = Receiver::new(script);
        let registry = one_of_each();
        let pusher = Pusher::start(&registry, config(&receiver.url())).unwrap();
        let received = receiver.wait_for(versions.len());
        // The first collection is settled before the next is sent.
        assert!(pusher.flush(LONGEST));
        let found: Vec<_> = received[..versions.len()]
            .iter()
            .map(|it| it.header("x-prometheus-remote-write-version").unwrap().to_owned())
            .collect();
        assert_eq!(found, versions, "{script:?}");
        let all = samples(&received[0]);
        let expected = match end {
            "sent" => [0.0, 0.0],
            "refused" => [all, 0.0],
            "refused but 5" => [all - 5.0, 0.0],
            "not written but 5" => [0.0, all - 5.0],
            other => panic!("{other}"),
        };
        let counted = counted(&registry);
        assert_eq!([counted.refused, counted.not_written], expected, "{script:?}");
        assert_eq!((counted.dropped, counted.waiting), (0.0, 0.0), "{script:?}");
        let repeated = versions.iter().zip(&versions[1..]).filter(|(one, next)| one == next);
        assert_eq!(counted.retries, repeated.count() as f64, "{script:?}");
        let next = &receiver.received()[versions.len()];
        let version = next.header("x-prometheus-remote-write-version").unwrap();
        let stays_with_v1 = end == "sent" && versions.contains(&V1);
        assert_eq!(version, if stays_with_v1 { V1 } else { V2 }, "{script:?}");
    }
}

#[test]
fn requests_have_the_headers_of_their_version() {
    let receiver = Receiver::new(&[Take, Status(415, ""), Take]);
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "secret\n").unwrap();
    let config = config(&receiver.url()).bearer_token_file(&token);
    let config = config.header("X-Scope-OrgID", "tenant").unwrap();
    let pusher = Pusher::start(&one_of_each(), config).unwrap();
    receiver.wait_for(1);
    // The token is another one from now on.
    std::fs::write(&token, "other").unwrap();
    assert!(pusher.flush(LONGEST));
    let received = receiver.received();
    for (n, content_type, version, authorization) in [
        (
            0,
            "application/x-protobuf;proto=io.prometheus.write.v2.request",
            "2.0.0",
            "bearer secret",
        ),
        (2, "application/x-protobuf", "0.1.0", "bearer other"),
    ] {
        let request = &received[n];
        assert!(request.head.starts_with("post /api/v1/write http/1.1\r\n"), "{}", request.head);
        for (name, value) in [
            ("content-type", content_type),
            ("content-encoding", "snappy"),
            ("x-prometheus-remote-write-version", version),
            ("authorization", authorization),
            ("x-scope-orgid", "tenant"),
            ("host", &receiver.address.to_string()),
        ] {
            assert_eq!(request.header(name), Some(value), "{n}");
        }
        assert!(request.header("user-agent").unwrap().starts_with("talea-push/"));
    }
    assert_eq!(received[1].v2().timeseries.len(), received[2].v1().timeseries.len());
}

#[test]
fn a_redirect_is_not_followed_so_that_credentials_stay() {
    let other = Receiver::new(&[]);
    let location = format!("Location: {}\r\n", other.url()).leak();
    let receiver = Receiver::new(&[Status(302, location), Status(307, location), Take]);
    let pusher = Pusher::start(&one_of_each(), config(&receiver.url())).unwrap();
    assert!(pusher.flush(LONGEST));
    assert_eq!(other.received().len(), 0);
}

#[test]
fn a_receiver_that_does_not_respond_gets_the_request_again() {
    let receiver = Receiver::new(&[Nothing, Nothing]);
    let registry = one_of_each();
    let config = config(&receiver.url()).timeout(Duration::from_millis(500));
    let pusher = Pusher::start(&registry, config).unwrap();
    assert!(pusher.flush(LONGEST));
    let received = receiver.received();
    assert_eq!(received[0].body, received[1].body);
    assert_eq!(received[0].body, received[2].body);
    assert_eq!(counted(&registry).refused, 0.0);
}

#[test]
fn values_arrive_in_order_after_an_outage() {
    let receiver = Receiver::new(&[]);
    receiver.then(Status(503, ""));
    let registry = Registry::for_test().unwrap();
    let orders: Counter = registry.register(opts("orders")).unwrap();
    let pusher = Pusher::start(&registry, config(&receiver.url())).unwrap();
    for _ in 0..5 {
        orders.inc();
        assert!(!pusher.flush(Duration::ZERO), "nothing is taken");
    }
    let during = counted(&registry);
    assert!(during.waiting > 0.0 && during.sent == 0.0);
    receiver.then(Take);
    assert!(pusher.flush(LONGEST));
    assert!(pusher.stop(LONGEST));
    // Those that were refused are repeated as they are.
    let mut bodies: Vec<_> = receiver.received().into_iter().collect();
    bodies.dedup_by(|next, last| next.body == last.body);
    let requests: Vec<_> = bodies.iter().map(|it| it.v2()).collect();
    let all = series(&requests);
    let samples = &all["__name__=orders_total;job=test;"].samples;
    assert!(samples.is_sorted_by(|one, next| one.1 < next.1), "{samples:?}");
    let values: Vec<f64> = samples.iter().map(|sample| sample.0).collect();
    let (last, values) = values.split_last().unwrap();
    assert!(last.is_nan(), "it ends with a stale marker");
    assert!(values.is_sorted() && values.last() == Some(&5.0), "{values:?}");
}

#[test]
fn a_full_queue_drops_the_oldest_and_counts_it() {
    let receiver = Receiver::new(&[]);
    receiver.then(Status(503, ""));
    let registry = one_of_each();
    let orders: Counter = registry.register(opts("orders")).unwrap();
    let config = config(&receiver.url()).max_queue_bytes(10_000).max_samples(10);
    let pusher = Pusher::start(&registry, config).unwrap();
    let rounds = 60;
    for _ in 0..rounds {
        orders.inc();
        pusher.flush(Duration::ZERO);
        let bytes = registry.snapshot().value("talea_push_queue_bytes", &[]);
        let bytes = bytes.or_else(|| Some(total(&registry.snapshot(), "queue_bytes", &[])));
        assert!(bytes.unwrap() <= 10_000.0, "{bytes:?}");
    }
    let during = counted(&registry);
    assert!(during.dropped > 0.0 && during.waiting > 0.0);
    receiver.then(Take);
    assert!(pusher.flush(LONGEST));
    let after = counted(&registry);
    assert_eq!((after.waiting, after.refused), (0.0, 0.0));
    let taken: Vec<_> = receiver.received().iter().map(|it| it.v2()).collect();
    let last = &series(&taken)["__name__=orders_total;job=test;"];
    assert_eq!(last.samples.last().unwrap().0, f64::from(rounds), "the last value is exact");
}

#[test]
fn what_waits_in_a_folder_is_sent_by_the_next_pusher() {
    let receiver = Receiver::new(&[]);
    receiver.then(Status(503, ""));
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::for_test().unwrap();
    let orders: Counter = registry.register(opts("orders")).unwrap();
    let config = || config(&receiver.url()).queue_in(folder.path().join("queue"));
    for _ in 0..3 {
        let pusher = Pusher::start(&registry, config()).unwrap();
        receiver.wait_for(1);
        orders.inc();
        assert!(!pusher.stop(Duration::ZERO));
    }
    let waiting = counted(&registry).waiting;
    receiver.then(Take);
    let pusher = Pusher::start(&registry, config()).unwrap();
    orders.inc();
    assert!(pusher.flush(LONGEST));
    let after = counted(&registry);
    assert_eq!((after.waiting, after.refused, after.dropped), (0.0, 0.0, 0.0));
    assert!(after.sent > waiting);
    let requests = receiver.received();
    let mut taken = requests.iter().map(|it| it.v2()).collect::<Vec<_>>();
    taken.dedup();
    let mut samples = series(&taken)["__name__=orders_total;job=test;"].samples.clone();
    samples.dedup_by(|next, last| next.1 == last.1);
    assert!(samples.is_sorted_by(|one, next| one.1 < next.1), "{samples:?}");
    let mut values: Vec<f64> = samples.iter().map(|it| it.0).filter(|it| !it.is_nan()).collect();
    // A pusher collects at its start and at its end.
    values.dedup();
    assert_eq!(values, [0.0, 1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn each_sample_is_counted_once() {
    let receiver = Receiver::new(&[
        Take,
        Status(500, ""),
        Status(404, ""),
        Status(200, WRITTEN),
        Status(400, WRITTEN),
        Close,
        Take,
    ]);
    let registry = one_of_each();
    let config = config(&receiver.url()).max_samples(9);
    let pusher = Pusher::start(&registry, config).unwrap();
    for _ in 0..3 {
        assert!(pusher.flush(LONGEST));
    }
    let mut bodies = receiver.received();
    bodies.dedup_by(|next, last| next.body == last.body);
    let collected: f64 = bodies.iter().map(samples).sum();
    let Counted { sent, refused, not_written, dropped, waiting, .. } = counted(&registry);
    assert_eq!(sent + refused + not_written + dropped + waiting, collected);
    assert!(refused > 0.0 && not_written > 0.0);
}

#[test]
fn what_cannot_be_used_is_an_error_that_says_so() {
    let registry = one_of_each();
    for url in ["", "prometheus", "ftp://a/", "http://", "http://user:secret@a/", "/api/v1/write"] {
        let error = crate::Config::remote_write(url).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot push to {url:?}: expected a URL")), "{error}");
    }
    let start = |config| Pusher::start(&registry, config).unwrap_err().to_string();
    let plain = || config("http://127.0.0.1:1/");
    let error = start(plain().label("job", "twice"));
    assert!(error.contains("\"job\"") && error.contains("is there once"), "{error}");
    let error = start(plain().label("__name__", "x"));
    assert!(error.contains("\"__name__\""), "{error}");
    assert!(plain().header("a b", "c").is_err() && plain().header("a", "b\nc").is_err());
    for name in ["Content-Type", "content-encoding", "Content-Length", "Transfer-Encoding", "Host"]
        .into_iter()
        .chain(["Connection", "X-Prometheus-Remote-Write-Version"])
    {
        let error = plain().header(name, "1").unwrap_err().to_string();
        assert!(error.contains("sets it itself"), "{name}: {error}");
    }
    let error = start(config("https://127.0.0.1:1/").ca_file("/nowhere/ca.pem"));
    assert!(error.contains("/nowhere/ca.pem"), "{error}");
    let error = start(plain().queue_in("/dev/null/queue"));
    assert!(error.contains("/dev/null/queue"), "{error}");
}
