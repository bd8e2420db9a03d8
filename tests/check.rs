//! `talea check` compared with the parsers of scrapers: a text that one of them refuses has a
//! violation. Each text is listed with a parser that refuses it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use stage::{Job, LONGEST, Parser, Prometheus, check_metrics, refuses};
use talea::{Escaping, Format};
use talea_parse::{Severity, Syntax, check};

use By::{Nobody, Prometheus as Scrape, Promtool, Python};

/// A parser that refuses a text.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    /// Debian's Prometheus, which scrapes it.
    Prometheus,
    Promtool,
    /// The parser of prometheus_client for this format.
    Python,
    /// All of them accept it.
    Nobody,
}

/// A text, its format, and one of those that refuse it. They were found by comparing the parsers with
/// the checker on 200,000 texts with small faults.
const TEXTS: &[(&str, Syntax, By)] = &[
    ("# TYPE a\na 1\n", Syntax::Text, Scrape),
    ("# TYPE a \na 1\n", Syntax::Text, Scrape),
    ("# TYPE a  gauge\na 1\n", Syntax::Text, Scrape),
    ("# TYPE a\t gauge\na 1\n", Syntax::Text, Scrape),
    ("# TYPE a gauge \na 1\n", Syntax::Text, Scrape),
    ("# TYPE \na 1\n", Syntax::Text, Scrape),
    ("# TYPE\na 1\n", Syntax::Text, Python),
    ("# HELP \na 1\n", Syntax::Text, Scrape),
    (" a 1\n", Syntax::Text, Scrape),
    ("a 1 -1\n", Syntax::Text, Scrape),
    ("a 1 +1\n", Syntax::Text, Scrape),
    ("a{\"\"=\"1\"} 1\n", Syntax::Text, Scrape),
    ("a{\"b\0\"=\"1\"} 1\n", Syntax::Text, Scrape),
    ("# TYPE h histogram\n# TYPE h_count gauge\nh_count 1\n", Syntax::Text, Promtool),
    ("# TYPE a counter\na_total 1 # {__b=\"c\"} 1\n# EOF\n", Syntax::OpenMetrics, Python),
    ("# TYPE a counter\na_total 1 # {b=\"\0\"} 1\n# EOF\n", Syntax::OpenMetrics, Scrape),
    ("# TYPE a counter\na_total 1 5\na_created 1\n# EOF\n", Syntax::OpenMetrics, Python),
    ("# TYPE a summary\na{quantile=\"0.5\"} -1\n# EOF\n", Syntax::OpenMetrics, Python),
    ("# TYPE a gauge\na 1\n", Syntax::OpenMetrics, Scrape),
    ("", Syntax::OpenMetrics, Scrape),
    ("# TYPE a  gauge\na 1\n# EOF\n", Syntax::OpenMetrics, Scrape),
    ("a 1\r\n", Syntax::Text, Scrape),
    // Lines that look as odd, and are accepted.
    ("# HELP\na 1\n", Syntax::Text, Nobody),
    ("# HELP a\na 1\n", Syntax::Text, Nobody),
    ("# TYPE a gauge\na 1\n# TYPE a_count gauge\na_count 1\n", Syntax::Text, Nobody),
    ("# HELP  a  b\na 1\n", Syntax::Text, Nobody),
    ("#  TYPE  a gauge\na 1\n", Syntax::Text, Nobody),
    ("# TYPE a\tgauge\na 1\n", Syntax::Text, Nobody),
    ("  # TYPE a gauge\na 1\n", Syntax::Text, Nobody),
    ("a{b=\"\0\"} 1\n", Syntax::Text, Nobody),
    ("a\t{b=\"\0\"}\t1\n", Syntax::Text, Nobody),
];

/// The Content-Type that the format's scrapers get.
fn content_type(syntax: Syntax) -> String {
    let format = match syntax {
        Syntax::Text => Format::Text,
        Syntax::OpenMetrics => Format::OpenMetrics,
    };
    format.content_type(Escaping::default())
}

/// Of each text, whether a Prometheus drops its scrape.
async fn dropped_by_prometheus() -> Vec<bool> {
    let mut routes = Router::new();
    let names: Vec<String> = (0..TEXTS.len()).map(|n| format!("text{n}")).collect();
    for (name, &(text, syntax, _)) in names.iter().zip(TEXTS) {
        let answer = move || async move { ([(CONTENT_TYPE, content_type(syntax))], text) };
        routes = routes.route(&format!("/{name}"), get(answer));
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let paths: Vec<String> = names.iter().map(|name| format!("/{name}")).collect();
    let jobs: Vec<Job<'_>> = names
        .iter()
        .zip(&paths)
        .map(|(name, path)| Job { name, address, path, more: "" })
        .collect();
    let prometheus = Prometheus::start(&jobs, "exemplar-storage").await;
    let began = Instant::now();
    loop {
        let targets = prometheus.api("targets", &[("state", "active")]).await;
        let targets = targets["activeTargets"].as_array().unwrap();
        let health = |name: &String| {
            let target = targets.iter().find(|target| target["labels"]["job"] == **name)?;
            target["health"].as_str().filter(|health| *health != "unknown").map(str::to_owned)
        };
        if let Some(all) = names.iter().map(health).collect::<Option<Vec<_>>>() {
            return all.iter().map(|health| health == "down").collect();
        }
        assert!(began.elapsed() < LONGEST, "{}", prometheus.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn promtool_refuses(text: &str) -> bool {
    String::from_utf8_lossy(&check_metrics(text).stderr).contains("parsing error")
}

#[tokio::test]
async fn a_fault_that_a_scraper_refuses_is_a_violation_and_no_other_is() {
    let dropped = dropped_by_prometheus().await;
    for (&(text, syntax, by), dropped) in TEXTS.iter().zip(dropped) {
        let parser = match syntax {
            Syntax::Text => Parser::Text,
            Syntax::OpenMetrics => Parser::OpenMetrics,
        };
        let refused = [
            (Scrape, dropped),
            (Promtool, syntax == Syntax::Text && promtool_refuses(text)),
            (Python, refuses(parser, text.as_bytes())),
        ];
        let refused: Vec<By> =
            refused.into_iter().filter_map(|(by, refused)| refused.then_some(by)).collect();
        match by {
            Nobody => assert_eq!(refused, [], "{text:?}"),
            by => assert!(refused.contains(&by), "{text:?}: {refused:?}"),
        }
        let findings = check(text, syntax);
        let violations = findings.iter().filter(|found| found.severity == Severity::Violation);
        assert_eq!(violations.count() > 0, by != Nobody, "{text:?}: {findings:?}");
    }
}
