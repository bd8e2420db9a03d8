//! Claims about what a real Prometheus scrapes from a live service: Debian's, 2.42.

use std::future::ready;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::middleware::{map_request, map_response};
use axum::response::Response;
use stage::{
    Job, Prometheus, assert_same, escaped_by_underscores, hard_metrics, samples, without_accept,
};
use talea::Registry;
use talea_http::{Exposition, MetricsServer};

/// How often it must have come: also with memory that was used before.
const SCRAPES: f64 = 4.0;

/// The responses of a service, scrape by scrape.
type Answers = Arc<Mutex<Vec<(String, String)>>>;

struct Service {
    registry: Registry,
    server: MetricsServer,
    answers: Answers,
}

/// Serves metrics that do not change, on `/asked` as Prometheus asks for them and on
/// `/text` as if it knew the text format alone.
fn serve() -> Service {
    let registry = hard_metrics().unwrap();
    let answers = Answers::default();
    let kept = Arc::clone(&answers);
    let keep = move |response: Response| {
        let header = |name| response.headers().get(name).map_or("", |v| v.to_str().unwrap());
        let answer = (header(CONTENT_TYPE).to_owned(), header(CONTENT_ENCODING).to_owned());
        kept.lock().unwrap().push(answer);
        ready(response)
    };
    let exposition = Exposition::new(&registry);
    let text = map_request(without_accept);
    let text = Router::new().route_service("/text", exposition.clone()).layer(text);
    let asked = Router::new().route_service("/asked", exposition);
    let routes = asked.merge(text).layer(map_response(keep));
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let server =
        MetricsServer::builder(Exposition::new(&registry)).routes(routes).bind(loopback).unwrap();
    Service { registry, server, answers }
}

/// Has it scraped as `path` says; checks all but the exemplars.
async fn scrape(features: &str, path: &str, kind: &str, created: bool) -> (Service, Prometheus) {
    let service = serve();
    let jobs = [Job { name: "talea", address: service.server.local_addr(), path, more: "" }];
    let prometheus = Prometheus::start(&jobs, features).await;
    prometheus.wait_for("count_over_time(up[1h])", |scrapes| scrapes >= SCRAPES).await;
    assert_eq!(prometheus.number("min_over_time(up[1h])").await, Some(1.0), "{}", prometheus.log());

    let mut expected = escaped_by_underscores(&samples(&service.registry.snapshot(), created));
    // Of a histogram that is native it takes just that.
    let is_native = features.contains("native");
    let is_bucket = |name: &String| is_native && name.ends_with("_bucket");
    let wholes = expected
        .keys()
        .filter(|(name, labels)| is_bucket(name) && labels.get("le").is_some_and(|le| le == "inf"));
    let natives = wholes.count();
    assert_eq!(natives > 0, is_native);
    expected.retain(|(name, _), _| !is_bucket(name));
    let own = r#"__name__!~"up|scrape_.*",job="talea""#;
    assert_same(&prometheus.query(&format!("{{{own}}}")).await, &expected);
    // A count and a sum are one sample there.
    let count = Some((expected.len() - natives) as f64);
    for query in ["scrape_samples_scraped", "scrape_samples_post_metric_relabeling"] {
        assert_eq!(prometheus.number(query).await, count, "{query}");
    }
    // Each came with each scrape, and never otherwise.
    let all = prometheus.api("query", &[("query", &format!("{{{own}}}[1h]"))]).await;
    for series in all["result"].as_array().unwrap() {
        let values = series.get("values").or(series.get("histograms")).unwrap();
        let values = values.as_array().unwrap();
        assert!(values.len() as f64 >= SCRAPES, "{series}");
        assert!(values.iter().all(|value| value[1] == values[0][1]), "{series}");
    }

    let answers = service.answers.lock().unwrap().clone();
    assert!(answers.len() as f64 >= SCRAPES);
    for (content_type, encoding) in &answers {
        assert!(content_type.starts_with(kind), "{content_type}");
        assert_eq!(encoding, "gzip");
    }
    assert_eq!(prometheus.log(), "", "it complains");
    (service, prometheus)
}

/// Its API finds the exemplars that were given; `shown` is how it shows the values of
/// their labels, and `of_each` how many it takes of a series.
async fn check_exemplars(
    prometheus: &Prometheus,
    service: &Service,
    of_each: usize,
    shown: impl Fn(&str) -> String,
) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let (start, end) = ((now - 3600).to_string(), (now + 60).to_string());
    let mut expected = 0;
    for family in service.registry.snapshot().families() {
        for series in family.series() {
            for exemplar in series.exemplars().take(of_each) {
                expected += 1;
                let trace = &exemplar.labels.iter().find(|(name, _)| name == "trace_id").unwrap().1;
                let parameters = [
                    ("query", &*format!("{{__name__=~\"{}.*\"}}", family.name())),
                    ("start", &start),
                    ("end", &end),
                ];
                let found = prometheus.api("query_exemplars", &parameters).await;
                let all = found.as_array().unwrap().iter();
                let all = all.flat_map(|series| series["exemplars"].as_array().unwrap());
                let found = all.filter(|found| found["labels"]["trace_id"] == **trace);
                let found: Vec<_> = found.collect();
                assert_eq!(found.len(), 1, "{trace}: {found:?}");
                let labels = found[0]["labels"].as_object().unwrap();
                assert_eq!(labels.len(), exemplar.labels.len());
                for (name, value) in &exemplar.labels {
                    assert_eq!(labels[name], shown(value));
                }
                let value = found[0]["value"].as_str().unwrap().parse::<f64>();
                assert_eq!(value, Ok(exemplar.value));
                let time = exemplar.time.duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
                let found = found[0]["timestamp"].as_f64().unwrap();
                assert!((found - time).abs() < 0.002, "{found} {time}");
            }
        }
    }
    assert_eq!(expected, of_each.min(2) + 1);
}

#[tokio::test]
async fn it_reads_openmetrics_as_it_asks_for_by_default() {
    let (service, prometheus) =
        scrape("exemplar-storage", "/asked", "application/openmetrics-text; version=1.0.0", true)
            .await;
    // This version does not undo what is escaped in OpenMetrics' exemplars.
    check_exemplars(&prometheus, &service, usize::MAX, |value| {
        value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
    })
    .await;
    let types = prometheus.api("metadata", &[]).await;
    for (name, kind) in [
        ("texts", "counter"),
        ("floats", "gauge"),
        ("wait_seconds", "histogram"),
        ("build", "info"),
        ("circuit", "stateset"),
    ] {
        assert_eq!(types[name][0]["type"], kind, "{name}");
    }
    assert_eq!(types["texts"][0]["help"], "Help with \\ and \"quotes\",\nlines and ünïcode.");
    assert_eq!(types["wait_seconds"][0]["unit"], "seconds");
}

#[tokio::test]
async fn it_reads_the_text_format() {
    scrape("exemplar-storage", "/text", "text/plain; version=0.0.4", false).await;
}

#[tokio::test]
async fn it_reads_protobuf_as_it_asks_for_with_native_histograms() {
    let features = "exemplar-storage,native-histograms";
    let (service, prometheus) =
        scrape(features, "/asked", "application/vnd.google.protobuf", false).await;
    // This version takes the first exemplar of a native histogram.
    check_exemplars(&prometheus, &service, 1, str::to_owned).await;
}
