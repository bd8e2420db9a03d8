//! Claims about relabelling: a real Prometheus scrapes a page and changes its series by rules, and gets the same page
//! pushed after the same rules changed it here.

use std::collections::BTreeSet;
use std::time::Duration;

use stage::{Job, Prometheus};
use talea::{Counter, FloatGauge, Opts, Registry};
use talea_http::MetricsServer;
use talea_push::{Action, Config, Pusher, Rule};

const LONGEST: Duration = Duration::from_secs(60);

/// Each case: lines of `metric_relabel_configs`.
const CASES: [&str; 30] = [
    "- {action: drop, source_labels: [__name__], regex: orders_total}",
    "- {action: drop, source_labels: [__name__], regex: orders}",
    "- {action: keep, source_labels: [__name__], regex: orders_total|level}",
    "- {action: keep, source_labels: [country, city], regex: pe;lima}",
    "- {action: keep, source_labels: [country, city], separator: '', regex: pelima}",
    "- {action: drop, source_labels: [city], regex: ''}",
    "- {action: drop, source_labels: [nowhere], regex: '.+'}",
    "- {source_labels: [country], target_label: land}",
    "- {source_labels: [country], target_label: country, replacement: ''}",
    "- {source_labels: [nowhere], target_label: city}",
    "- {target_label: env, replacement: test}",
    "- {source_labels: [city], regex: '(.)(.*)', target_label: city, replacement: '$2-${1}'}",
    "- {source_labels: [city], regex: '(.)(.*)', target_label: city, replacement: '$1x'}",
    "- {source_labels: [city], regex: '(.)(.*)', target_label: city, replacement: '$$1 $'}",
    "- {source_labels: [city], regex: '(?P<first>[a-z0-9]).*', target_label: 'is_${first}', replacement: 'yes'}",
    "- {source_labels: [country, city], separator: /, regex: '(.*)/(.*)', target_label: place, replacement: '$2 in $1'}",
    "- {source_labels: [__name__], regex: '(.*)_total', target_label: __name__, replacement: '${1}_count'}",
    "- {source_labels: [city], regex: '\\d+', target_label: number, replacement: 'yes'}",
    "- {source_labels: [city], regex: '[\\w]+', target_label: word, replacement: 'yes'}",
    "- {source_labels: [city], regex: 'é.*|ö', target_label: beyond, replacement: 'yes'}",
    "- {source_labels: [city], regex: '[^a-z]+', target_label: beyond, replacement: 'yes'}",
    "- {source_labels: [city], regex: '(?i)LIMA', target_label: lima, replacement: 'yes'}",
    "- {action: labelmap, regex: 'c(.*)', replacement: 'my_$1'}",
    "- {action: labelmap, regex: '(country)', replacement: city}",
    "- {action: labeldrop, regex: city}",
    "- {action: labeldrop, regex: 'c.*y'}",
    "- {action: labelkeep, regex: '__name__|case|job|instance|country'}",
    "- {source_labels: [case], target_label: copied}",
    "- {action: labeldrop, regex: job|instance}",
    "- {source_labels: [country], target_label: a}\n- {source_labels: [a], target_label: b}\n\
     - {action: drop, source_labels: [b], regex: pe}\n- {action: labeldrop, regex: a}",
];

/// Names, labels and values that tell rules apart.
fn registry() -> Registry {
    let registry = Registry::for_test().unwrap();
    let opts = |name| Opts::new(name, "Some.");
    let orders = registry.family::<Counter>(opts("orders"), &["country", "city"]).unwrap();
    for (n, labels) in [["pe", "lima"], ["pe", "éa"], ["se", "7"], ["se", "٣"], ["x", "two words"]]
        .iter()
        .enumerate()
    {
        orders.with_values(labels).add(n as u64 + 1);
    }
    registry.register::<FloatGauge>(opts("level")).unwrap().set(1.5);
    registry
}

fn rules(lines: &str) -> Vec<Rule> {
    let all: Vec<serde_json::Value> = serde_saphyr::from_str(lines).unwrap();
    all.iter().map(rule).collect()
}

fn rule(yaml: &serde_json::Value) -> Rule {
    let text = |key: &str| {
        yaml.get(key).map(|value| value.as_str().map_or_else(|| "true".to_owned(), str::to_owned))
    };
    let action = match text("action").as_deref() {
        None => Action::Replace,
        Some("keep") => Action::Keep,
        Some("drop") => Action::Drop,
        Some("labelmap") => Action::LabelMap,
        Some("labeldrop") => Action::LabelDrop,
        Some("labelkeep") => Action::LabelKeep,
        Some(other) => panic!("{other}"),
    };
    let mut rule = Rule::new(action);
    if let Some(names) = yaml.get("source_labels").and_then(|names| names.as_array()) {
        rule = rule.source_labels(names.iter().map(|name| name.as_str().unwrap()));
    }
    if let Some(separator) = text("separator") {
        rule = rule.separator(separator);
    }
    if let Some(regex) = text("regex") {
        rule = rule.regex(&regex).unwrap();
    }
    if let Some(target) = text("target_label") {
        rule = rule.target_label(target);
    }
    if let Some(replacement) = text("replacement") {
        rule = rule.replacement(replacement);
    }
    rule
}

/// The series of a case, but for those that Prometheus makes of each scrape, and times of OpenMetrics.
async fn series(prometheus: &Prometheus, case: usize) -> BTreeSet<String> {
    let query = format!("{{case=\"{case}\",__name__!~\"up|scrape_.*|.*_created\"}}");
    let data = prometheus.api("query", &[("query", &query)]).await;
    let all = data["result"].as_array().unwrap();
    // The keys of an object are sorted.
    all.iter().map(|one| format!("{} {}", one["metric"], one["value"][1])).collect()
}

#[tokio::test]
async fn rules_do_what_they_do_in_prometheus() {
    let registry = registry();
    let server = MetricsServer::bind(([127, 0, 0, 1], 0).into(), &registry).unwrap();
    let address = server.local_addr();
    let names: Vec<String> = (0..CASES.len()).map(|n| format!("case-{n}")).collect();
    let more: Vec<String> = CASES
        .iter()
        .enumerate()
        .map(|(n, lines)| {
            let rules = lines.replace('\n', "\n  ");
            // A label that names the case, beside those that it has anyway.
            format!("metric_relabel_configs:\n  {rules}\nrelabel_configs:\n  - {{target_label: case, replacement: '{n}'}}")
        })
        .collect();
    let jobs: Vec<Job<'_>> = names
        .iter()
        .zip(&more)
        .map(|(name, more)| Job { name, address, path: "/metrics", more })
        .collect();
    let scraper = Prometheus::start(&jobs, "").await;
    let receiver = Prometheus::start_receiver("prometheus", "").await;
    let own = Registry::for_test().unwrap();
    for (n, lines) in CASES.iter().enumerate() {
        let url = format!("http://{}/api/v1/write", receiver.address());
        let mut config = Config::remote_write(&url)
            .unwrap()
            .name(format!("case {n}"))
            .label("job", &names[n])
            .label("instance", address.to_string())
            .label("case", n.to_string())
            .end_series_at_stop(false)
            .interval(Duration::from_secs(3_600));
        for rule in rules(lines) {
            config = config.relabel(rule).unwrap();
        }
        let pusher = Pusher::start_for(&registry, &own, config).unwrap();
        assert!(pusher.flush(LONGEST), "{lines}: {}", receiver.log());
    }
    for (n, lines) in CASES.iter().enumerate() {
        scraper.wait_for(&format!("up{{case=\"{n}\"}}"), |up| up == 1.0).await;
        let (scraped, pushed) = (series(&scraper, n).await, series(&receiver, n).await);
        assert_eq!(pushed, scraped, "{lines}");
    }
    let all = series(&scraper, 1).await;
    assert!(all.len() >= 6, "a case that drops nothing has all series: {all:?}");
    assert_eq!(receiver.log(), "", "it complains");
}
