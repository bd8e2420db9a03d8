//! Claims about the dashboard in `contrib/grafana`, the rules in `contrib/prometheus` and the
//! queries of `docs/how-to/golden-signals.md`: that they find what they are about, while a service is under
//! load. Debian's Prometheus, 2.42, takes native histograms or classic ones, so there are two
//! of it; a current one, which takes both, is there where `TALEA_PROMETHEUS` names it.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use stage::{
    Dashboard, Job, LONGEST, Load, Panel, Prometheus, Service, grouped_by, guide_queries, reads,
    repository,
};

/// How long a query may find nothing, or zeros alone, before that is what it finds.
const WITHIN: Duration = LONGEST;
/// How often each service must have been scraped before anything is asked.
const SCRAPES: f64 = 6.0;

const BOTH: &str = "scrape_native_histograms: true\nalways_scrape_classic_histograms: true";

fn dashboard() -> Dashboard {
    Dashboard::read(&repository("contrib/grafana/talea-http.json"))
}

#[test]
fn a_panel_says_what_it_shows() {
    let dashboard = dashboard();
    let mut titles = BTreeSet::new();
    for panel in dashboard.panels() {
        let title = panel.title();
        assert!(panel.description().ends_with('.'), "{title} has no description");
        assert!(!panel.unit().is_empty(), "{title} has no unit");
        assert!(panel.queries().count() > 0, "{title} asks nothing");
        assert!(titles.insert(title.clone()), "two are called {title}");
    }
    let ids: BTreeSet<_> = dashboard.all().map(|panel| panel.id().unwrap()).collect();
    assert_eq!(ids.len(), dashboard.all().count());
}

#[test]
fn no_panel_covers_another() {
    let dashboard = dashboard();
    let all: Vec<Panel<'_>> = dashboard.all().collect();
    for (n, panel) in all.iter().enumerate() {
        let here = panel.area();
        assert!(here[0].end <= 24, "{} is too wide", panel.title());
        for other in &all[..n] {
            let there = other.area();
            let meet = |n: usize| here[n].start < there[n].end && there[n].start < here[n].end;
            assert!(!(meet(0) && meet(1)), "{} {}", panel.title(), other.title());
        }
    }
}

/// A Prometheus, and which kinds of histograms it has: native ones, classic ones.
struct Asked {
    prometheus: Prometheus,
    has: [bool; 2],
}

impl Asked {
    async fn start(program: &str, service: &Service, more: &str, features: &str) -> Prometheus {
        let job = |name, address| Job { name, address, path: "/metrics", more };
        let jobs = [job("items", service.items_metrics), job("faults", service.faults_metrics())];
        let rules = repository("contrib/prometheus/rules.yml");
        let prometheus = Prometheus::start_with(program, &jobs, features, &[&rules]).await;
        for name in ["items", "faults"] {
            let count = format!("count_over_time(up{{job=\"{name}\"}}[1h])");
            prometheus.wait_for(&count, |scrapes| scrapes >= SCRAPES).await;
        }
        prometheus
    }

    /// The numbers that a query finds, of a native histogram its count; all of them have
    /// these labels.
    async fn numbers(&self, query: &str, labels: &[&str]) -> Vec<f64> {
        let data = self.prometheus.api("query", &[("query", query)]).await;
        let found = data["result"].as_array().unwrap().iter();
        for (sample, label) in found.clone().flat_map(|s| labels.iter().map(move |l| (s, l))) {
            assert!(sample["metric"][label].is_string(), "{query} finds no {label}: {sample}");
        }
        found
            .map(|sample| match sample.get("histogram") {
                Some(histogram) => histogram[1]["count"].as_str().unwrap().parse().unwrap(),
                None => sample["value"][1].as_str().unwrap().parse().unwrap(),
            })
            .collect()
    }

    /// Whether a query is of a kind of histograms that is there, if it is of any.
    fn can_answer(&self, query: &str) -> bool {
        let reads = reads(query);
        reads == [false; 2] || (0..2).any(|n| reads[n] && self.has[n])
    }

    /// It finds a number, and one that is not zero if the load makes it so.
    async fn finds(&self, what: &str, query: &str, legend: &[&str], more_than_zero: bool) {
        let labels: Vec<&str> = grouped_by(query).chain(legend.iter().copied()).collect();
        let began = Instant::now();
        loop {
            let numbers = self.numbers(query, &labels).await;
            if !self.can_answer(query) {
                // Not so the other way: version 2.42 takes a family of native histograms as
                // classic ones for as long as the first of its series is empty.
                let is_right = self.has[0] || numbers.is_empty();
                return assert!(is_right, "{what}: {query} finds {numbers:?}");
            }
            if numbers.iter().any(|x| x.is_finite() && (*x != 0.0 || !more_than_zero)) {
                return;
            }
            let has = self.has;
            assert!(began.elapsed() < WITHIN, "{what} {has:?}: {query} finds {numbers:?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn check_dashboard(&self) {
        let dashboard = dashboard();
        for variable in dashboard.variables() {
            let of = dashboard.filled(&variable.of, &[]);
            let path = format!("label/{}/values", variable.label);
            let values = self.prometheus.api(&path, &[("match[]", &of)]).await;
            assert!(values.as_array().unwrap().len() >= 2, "{}: {values}", variable.name);
        }
        for panel in dashboard.panels() {
            for (query, legend) in panel.queries() {
                self.finds(&panel.title(), &dashboard.filled(query, &[]), &legend, true).await;
            }
        }
        // Of one route, which is a regular expression to be escaped.
        let chosen = [("job", "items"), ("route", "/api/items/{id}")];
        for panel in dashboard.panels().filter(|panel| {
            // It has no errors; nobody leaves it; no room is lacking.
            let without = ["Errors by route", "Aborted and timed out, by route", "Series refused"];
            !without.contains(&&*panel.title())
        }) {
            for (query, legend) in panel.queries() {
                self.finds(&panel.title(), &dashboard.filled(query, &chosen), &legend, false).await;
            }
        }
    }

    async fn check_guide(&self) {
        let guide = fs::read_to_string(repository("docs/how-to/golden-signals.md")).unwrap();
        let queries = guide_queries(&guide);
        assert!(queries.len() > 20);
        for query in queries {
            self.finds("the guide", query, &[], true).await;
        }
    }

    async fn check_rules(&self) {
        let data = self.prometheus.api("rules", &[]).await;
        let groups = data["groups"].as_array().unwrap().iter();
        let rules: Vec<&Json> = groups.flat_map(|g| g["rules"].as_array().unwrap()).collect();
        for rule in &rules {
            let name = rule["name"].as_str().unwrap();
            assert_eq!(rule["health"], "ok", "{rule}");
            if rule["type"] == "recording" {
                self.finds(name, name, &[], true).await;
            }
        }
        // Others wait for minutes, and are tried by promtool.
        for (name, state) in [
            ("HttpPanics", "firing"),
            ("MetricSeriesDropped", "firing"),
            ("HttpInFlightGrows", "inactive"),
            ("FileDescriptorsRunOut", "inactive"),
            ("HttpMetricsMissing", "inactive"),
        ] {
            let rule = rules.iter().find(|rule| rule["name"] == name).unwrap();
            assert_eq!(rule["state"], state, "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_query_finds_what_it_is_about() {
    let service = Service::start().await;
    let _load = Load::start(&service);
    let (native, classic) = tokio::join!(
        Asked::start("prometheus", &service, "", "native-histograms"),
        Asked::start("prometheus", &service, "", "exemplar-storage"),
    );
    let mut all = vec![
        Asked { prometheus: native, has: [true, false] },
        Asked { prometheus: classic, has: [false, true] },
    ];
    if let Ok(program) = std::env::var("TALEA_PROMETHEUS") {
        let prometheus = Asked::start(&program, &service, BOTH, "exemplar-storage").await;
        all.push(Asked { prometheus, has: [true, true] });
    }
    for asked in all {
        asked.check_dashboard().await;
        asked.check_guide().await;
        asked.check_rules().await;
        assert_eq!(asked.prometheus.log(), "", "it complains");
    }
}
