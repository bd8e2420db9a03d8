//! The size of a page, beside one that is made by prometheus-client by hand with the same
//! information.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use talea::Bucketing;
use talea_http::Opts;
use talea_http::axum::{Router, delete, get};

use crate::support::counts::registry;
use crate::support::requests::ask;

const ROUTES: [(&str, &str); 5] = [
    ("GET", "/items"),
    ("POST", "/items"),
    ("GET", "/items/{id}"),
    ("PUT", "/items/{id}"),
    ("DELETE", "/items/{id}/tags"),
];

/// OpenTelemetry's, which are the default of both.
const THRESHOLDS: [f64; 14] =
    [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

fn by_hand() -> String {
    type Labels = Vec<(&'static str, &'static str)>;
    let requests = Family::<Labels, Counter>::default();
    let in_flight = Family::<Labels, Gauge>::default();
    let durations =
        Family::<Labels, Histogram>::new_with_constructor(|| Histogram::new(THRESHOLDS));
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register("http_requests_in_flight", "Requests in flight", in_flight.clone());
    registry.register("http_requests", "Requests by the status of the response", requests.clone());
    registry.register("http_request_duration_seconds", "Time taken", durations.clone());
    for (method, route) in ROUTES {
        let endpoint = vec![("method", method), ("route", route)];
        in_flight.get_or_create(&endpoint).set(0);
        durations.get_or_create(&endpoint).observe(0.001);
        let with_status = [&endpoint[..], &[("status", "200")]].concat();
        requests.get_or_create(&with_status).inc();
    }
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    text
}

#[tokio::test]
async fn the_default_page_is_at_most_1_3_times_that_made_by_hand() {
    let registry = registry();
    let app: axum::Router = Router::new()
        .route("/items", get(async || "").post(async || ""))
        .route("/items/{id}", get(async || "").put(async || ""))
        .route("/items/{id}/tags", delete(async || ""))
        .metered(&registry)
        .unwrap();
    for (method, route) in ROUTES {
        ask(&app, method, &route.replace("{id}", "7")).await;
    }
    let (text, by_hand) = (registry.snapshot().to_text(), by_hand());
    for (name, size) in [
        ("lines", (|text| text.lines().count()) as fn(&str) -> usize),
        ("bytes", str::len as fn(&str) -> usize),
    ] {
        let ratio = size(&text) as f64 / size(&by_hand) as f64;
        assert!(ratio <= 1.3, "{ratio} times the {name}: {text}\n{by_hand}");
    }
}

#[tokio::test]
async fn the_lines_of_an_endpoint_are_those_that_the_document_states() {
    const DOC: &str = include_str!("../../../../docs/how-to/http.md");
    let default = lines_of_an_endpoint(Opts::new()).await;
    assert!(
        DOC.contains(&format!("That is {default} lines for each\nmethod of a route")),
        "{default}"
    );
    for (option, opts) in [
        ("exchange_durations(true)", Opts::new().exchange_durations(true)),
        ("body_sizes(true)", Opts::new().body_sizes(true)),
        ("detailed()", Opts::new().detailed()),
        ("durations_by_status(true)", Opts::new().durations_by_status(true)),
        ("bucketing(Bucketing::Native)", Opts::new().bucketing(Bucketing::Native)),
    ] {
        let added = lines_of_an_endpoint(opts).await as i64 - default as i64;
        let shown = added.to_string().replace('-', "−");
        let row = DOC.lines().find(|line| line.starts_with(&format!("| `{option}` |"))).unwrap();
        assert!(row.ends_with(&format!("| {shown} |")), "{shown}: {row}");
    }
}

/// The lines that a page has more with one endpoint more, once each was asked.
async fn lines_of_an_endpoint(opts: Opts) -> usize {
    let mut lines = Vec::new();
    for endpoints in [1, 2] {
        let registry = registry();
        let routes = (0..endpoints).map(|n| format!("/items-{n}"));
        let router = routes.fold(Router::new(), |app, path| app.route(&path, get(async || "")));
        let app = router.metered_by(&opts.clone().register(&registry).unwrap());
        for n in 0..endpoints {
            ask(&app, "GET", &format!("/items-{n}")).await;
        }
        lines.push(registry.snapshot().to_text().lines().count());
    }
    lines[1] - lines[0]
}
