//! `talea check` compared with the parsers of scrapers: a text that one of them refuses has a
//! violation. Each text is listed with a parser that refuses it. And a page is read if, and only if,
//! a Prometheus scrapes it: pages of each kind of departure, and pages with random faults.
//!
//! The Prometheus is Debian's, or the one that `TALEA_PROMETHEUS` names.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use stage::{Job, LONGEST, Parser, Prometheus, check_metrics, refuses};
use talea::{Escaping, Format};
use talea_parse::{Reader, Severity, Syntax, check};

#[path = "../fuzz/src/faults.rs"]
mod faults;
#[path = "../crates/talea-parse/tests/integration/pages.rs"]
#[expect(dead_code, reason = "here Prometheus says what is read")]
mod pages;

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

const DEBIAN: &str = "prometheus";

/// How many pages with random faults there are.
const FAULTY: usize = 250;

/// The Content-Type that the format's scrapers get.
fn content_type(syntax: Syntax) -> String {
    let format = match syntax {
        Syntax::Text => Format::Text,
        Syntax::OpenMetrics => Format::OpenMetrics,
    };
    format.content_type(Escaping::default())
}

/// Of each text, whether a Prometheus drops its scrape.
async fn dropped_by(program: &str, texts: Vec<(String, Syntax)>) -> Vec<bool> {
    let mut routes = Router::new();
    let names: Vec<String> = (0..texts.len()).map(|n| format!("text{n}")).collect();
    for (name, (text, syntax)) in names.iter().zip(texts) {
        routes = routes.route(
            &format!("/{name}"),
            get(move || async move { ([(CONTENT_TYPE, content_type(syntax))], text) }),
        );
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
    let prometheus = Prometheus::start_with(program, &jobs, "exemplar-storage", &[]).await;
    let began = Instant::now();
    loop {
        let targets = prometheus.api("targets", &[("state", "active")]).await;
        let targets = targets["activeTargets"].as_array().unwrap();
        let health = |name: &String| {
            let target = targets.iter().find(|target| target["labels"]["job"] == **name)?;
            // On a busy machine a scrape takes longer than it may, whatever its page says.
            let is_late = target["lastError"].as_str()?.contains("deadline exceeded");
            let health = target["health"].as_str()?;
            (health != "unknown" && !is_late).then(|| health.to_owned())
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
    let texts = TEXTS.iter().map(|&(text, syntax, _)| (text.to_owned(), syntax)).collect();
    let dropped = dropped_by(DEBIAN, texts).await;
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

/// Pages of each kind of departure, and others with random faults: the same each time.
fn faulty_pages() -> Vec<(String, Syntax)> {
    let mut random = 11_u64;
    let mut next = || {
        random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (random >> 33) as u8
    };
    let known = pages::PAGES.iter().map(|page| (page.text.to_owned(), page.syntax));
    let faulty = (0..FAULTY).map(|n| {
        let bytes: Vec<u8> = (0..4 + 3 * (1 + n % 3)).map(|_| next()).collect();
        let page = faults::page(&bytes);
        match n % 2 {
            0 => (page, Syntax::Text),
            _ => (page + "# EOF\n", Syntax::OpenMetrics),
        }
    });
    known.chain(faulty).collect()
}

/// Whether Prometheus parses a page and then drops it for its names.
fn has_names_that_prometheus_drops(text: &str, syntax: Syntax) -> bool {
    check(text, syntax).iter().any(|finding| {
        finding.rule == "label-twice" || finding.instead.contains("a name that is not empty")
    })
}

/// Whether a page has what a Prometheus before version 3 refuses.
fn needs_prometheus_3(text: &str, syntax: Syntax) -> bool {
    check(text, syntax).iter().any(|finding| {
        finding.rule == "quoted-name"
            || finding.instead.contains("at the line's beginning")
            || finding.instead.contains("no comma after the last label")
    })
}

#[tokio::test]
async fn a_page_is_read_if_and_only_if_prometheus_scrapes_it() {
    let named = std::env::var("TALEA_PROMETHEUS").ok();
    let mut pages = faulty_pages();
    if named.is_none() {
        pages.retain(|(text, syntax)| !needs_prometheus_3(text, *syntax));
    }
    let dropped = dropped_by(named.as_deref().unwrap_or(DEBIAN), pages.clone()).await;
    let mut read = 0;
    for ((text, syntax), dropped) in pages.into_iter().zip(dropped) {
        let error = Reader::new(&text, syntax).find_map(Result::err);
        read += usize::from(error.is_none());
        let refused = error.is_some() || has_names_that_prometheus_drops(&text, syntax);
        assert_eq!(refused, dropped, "{syntax:?} {text:?}: {error:?}");
    }
    assert!(read > 40, "{read} were read");
}
