//! Claims about a page of several registries that define metrics of one name otherwise, as promtool
//! and a real Prometheus read it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::middleware::map_request;
use stage::{Job, Prometheus, check_metrics, without_accept};
use talea::{
    Bucketing, Count, Counter, Format, Gauge, Histogram, Opts, Page, Registry, Scrapable, Scraper,
    Seconds, Summary,
};
use talea_http::{Exposition, MetricsServer};

#[derive(Clone)]
struct Members([(&'static str, Registry); 3]);

impl Scrapable for Members {
    fn fill(&self, page: &mut Page, wants: &dyn Fn(&str) -> bool) {
        for (name, registry) in &self.0 {
            page.add(Some(("region", name)), |snapshot| registry.snapshot_into(snapshot, wants));
        }
    }
}

fn opts(name: &str) -> Opts<'_> {
    Opts::new(name, "Some.").lenient_names(true)
}

/// Three services with a histogram of other buckets each, with other labels, and with metrics of
/// other types of the same names.
fn members() -> Members {
    let registry = || Registry::for_test().unwrap();
    let [a, b, c] = [registry(), registry(), registry()];
    let times = [
        (&a, opts("http_request_duration").buckets(&[0.1, 1.0]).bucketing(Bucketing::Dual)),
        (&b, opts("http_request_duration").buckets(&[0.2, 0.5, 2.0]).schema(2)),
        (&c, opts("http_request_duration").buckets(&[0.3]).bucketing(Bucketing::Classic)),
    ];
    for (registry, opts) in times {
        let took: Histogram<Seconds> = registry.register(opts).unwrap();
        took.observe(Duration::from_millis(250));
        took.observe(Duration::from_millis(50));
    }
    a.register::<Counter>(opts("jobs")).unwrap().add(3);
    b.register::<Gauge>(opts("jobs")).unwrap().set(4);
    c.family::<Counter>(opts("jobs"), &["region"]).unwrap().with_values(&["north"]).add(5);
    a.register::<Gauge>(opts("size")).unwrap().set(1);
    let size = opts("size").buckets(&[10.0]).bucketing(Bucketing::Classic);
    b.register::<Histogram<Count>>(size).unwrap().observe(7);
    c.register::<Summary<Count>>(opts("size").quantiles(&[0.5])).unwrap().observe(9);
    Members([("a", a), ("b", b), ("c", c)])
}

#[test]
fn promtool_reads_every_sample() {
    let mut scraper = Scraper::new(&members());
    let text = String::from_utf8(scraper.scrape().to_vec()).unwrap();
    let output = check_metrics(&text);
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    // 3 says that names could be better; 1 that the page cannot be read.
    assert_ne!(output.status.code(), Some(1), "{said}\n{text}");
    assert!(!said.contains("error"), "{said}\n{text}");
}

#[tokio::test]
async fn prometheus_takes_every_sample_in_each_format() {
    let members = members();
    let exposition = Exposition::of(&members);
    let text = map_request(without_accept);
    let text = Router::new().route_service("/text", exposition.clone()).layer(text);
    let routes = Router::new().route_service("/asked", exposition).merge(text);
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let own = Exposition::new(&members.0[0].1);
    let server = MetricsServer::builder(own).routes(routes).bind(loopback).unwrap();
    let address = server.local_addr();
    // It asks for OpenMetrics, and for protobuf if it may have native histograms.
    for (features, path, format) in [
        ("exemplar-storage", "/text", Format::Text),
        ("exemplar-storage", "/asked", Format::OpenMetrics),
        ("native-histograms", "/asked", Format::Protobuf),
    ] {
        let jobs = [Job { name: "talea", address, path, more: "" }];
        let prometheus = Prometheus::start(&jobs, features).await;
        // On a busy machine some scrapes take longer than they may.
        prometheus.wait_for("sum_over_time(up[1h])", |scrapes| scrapes >= 2.0).await;
        let found = prometheus.query(r#"{__name__=~"(http_request_duration|jobs|size).*"}"#).await;
        let value = |name: &str, labels: &[(&str, &str)]| {
            let labels = labels.iter().map(|(name, value)| (name.to_string(), value.to_string()));
            let labels: BTreeMap<_, _> = labels.collect();
            found.get(&(name.to_owned(), labels)).copied()
        };
        for (name, labels, expected) in [
            ("http_request_duration_seconds_count", &[("region", "a")][..], 2.0),
            ("http_request_duration_seconds_count", &[("region", "b")], 2.0),
            ("http_request_duration_seconds_count", &[("region", "c")], 2.0),
            ("http_request_duration_seconds_bucket", &[("region", "c"), ("le", "0.3")], 2.0),
            ("jobs_total", &[("region", "a")], 3.0),
            ("jobs", &[("region", "b")], 4.0),
            ("jobs_total", &[("region", "c"), ("exported_region", "north")], 5.0),
            ("size", &[("region", "a")], 1.0),
            ("size_bucket", &[("region", "b"), ("le", "10")], 1.0),
            ("size_sum", &[("region", "b")], 7.0),
            ("size_sum", &[("region", "c")], 9.0),
        ] {
            let number = value(name, labels);
            assert_eq!(number, Some(expected), "{format:?}: {name} {labels:?} in {found:?}");
        }
        assert_eq!(prometheus.log(), "", "{format:?}: it complains");
    }
}
