//! Options and conventions: what a page shows after some requests, and which options are refused.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::Path;
use axum::handler::Handler;
use axum::http::{Request, StatusCode};
use axum::response::Redirect;
use futures_util::stream;
use talea::{Counter, LabelValue, Opts as MetricOpts, Registry};
use talea_http::Convention::{self, Caddy, OpenTelemetry, Prometheus, Servant};
use talea_http::axum::{Layer, Router, any, get, post};
use talea_http::{HandlerError, Opts, StatusLabel};
use tower::ServiceExt;

use crate::support::counts::{lines, recorded, registry, requests};
use crate::support::requests::{ask, text};

async fn list() -> &'static str {
    "items"
}

async fn create(body: String) -> (StatusCode, String) {
    (StatusCode::CREATED, body)
}

async fn fail() -> StatusCode {
    StatusCode::SERVICE_UNAVAILABLE
}

async fn broken() -> &'static str {
    panic!("on purpose")
}

async fn with_status(Path(status): Path<u16>) -> StatusCode {
    StatusCode::from_u16(status).unwrap()
}

async fn marked_stream() -> (Extension<HandlerError>, Body) {
    let body = Body::from_stream(stream::iter([Ok::<_, Infallible>("piece")]));
    (Extension(HandlerError), body)
}

mod orders {
    pub(crate) async fn list() -> &'static str {
        "orders"
    }
}

fn app(registry: &Registry, opts: Opts) -> axum::Router {
    Router::new()
        .route("/items", get(list).post(create))
        .route("/items/{id}", get(fail))
        .route("/broken", post(broken))
        .route("/files/{*path}", any(async || ""))
        .route("/status/{status}", get(with_status))
        .route("/orders", get(orders::list))
        .route("/closures", get(async || "got").post(async || "posted"))
        .route("/layered/items", get(list.layer(Extension(()))))
        .route("/layered/orders", get(orders::list.layer(Extension(()))))
        .route("/value", get(StatusCode::OK))
        .route("/other-value", get(StatusCode::ACCEPTED))
        .route(
            "/err/404",
            get(async || Err::<(), _>((StatusCode::NOT_FOUND, Extension(HandlerError)))),
        )
        .route("/err/unmarked", get(async || Err::<(), _>(StatusCode::NOT_FOUND)))
        .route("/err/500", get(async || Err::<(), _>(StatusCode::INTERNAL_SERVER_ERROR)))
        .route("/err/stream", get(marked_stream))
        .route("/ok/404", get(async || StatusCode::NOT_FOUND))
        .route("/ok/503", get(async || StatusCode::SERVICE_UNAVAILABLE))
        .route("/ok/504", get(async || StatusCode::GATEWAY_TIMEOUT))
        .metered_by(&opts.register(registry).unwrap())
}

/// Sends a request to its end, which may be a panic.
async fn send(app: &axum::Router, request: Request<Body>) {
    let app = app.clone();
    let _ = tokio::spawn(async { text(app.oneshot(request).await.unwrap()).await }).await;
}

/// Sends requests, which are methods and paths.
async fn send_all(app: &axum::Router, requests: &str) {
    for (method, uri) in requests.split(", ").map(|request| request.split_once(' ').unwrap()) {
        let body = if method == "POST" { "12345" } else { "" };
        let request = Request::builder().method(method).uri(uri).body(Body::from(body));
        send(app, request.unwrap()).await;
    }
}

/// One request of each kind.
const EACH: &str =
    "GET /items, HEAD /items, POST /items, GET /items/7, POST /broken, GET /nowhere, ODD /items";

/// Each case: options, requests, a metric and one of its labels, and the number of requests by the
/// values of that label. A value with 0 may have no series.
#[tokio::test]
async fn requests_are_counted_as_the_options_say() {
    let methods = "PROPFIND /files/a, PROPFIND /items, PROPFIND /nowhere, propfind /files/a, \
                   REPORT /files/a, MKCOL /files/a";
    let by_method = Opts::new().methods(&["PROPFIND", "MKCOL"]);
    let by_status = Opts::new().detailed().durations_by_status(true);
    let codes: Vec<String> = (200..=999).map(|status| format!("GET /status/{status}")).collect();
    for (opts, requests, metric, label, shown) in [
        // Methods that the user names have their name where it is the method that was sent.
        (
            by_method.clone(),
            methods,
            "http_requests_total",
            "method",
            "PROPFIND 1, _OTHER 4, MKCOL 1",
        ),
        (
            by_method.clone().convention(OpenTelemetry),
            methods,
            "http_server_request_duration_seconds",
            "http_request_method",
            "PROPFIND 3, _OTHER 2, MKCOL 1",
        ),
        (
            by_method.convention(Caddy),
            methods,
            "caddy_http_request_duration_seconds",
            "method",
            "PROPFIND 3, OTHER 2, MKCOL 1",
        ),
        // Exact codes are bounded too.
        (
            Opts::new().status_label(StatusLabel::Code),
            &codes.join(", "),
            "http_requests_total",
            "status",
            "200 1, 418 1, 599 1, _OTHER 400, 2xx 0, 600 0, 999 0",
        ),
        (
            by_status.clone(),
            EACH,
            "http_request_duration_seconds",
            "status",
            "2xx 3, 3xx 0, 4xx 2, 5xx 2",
        ),
        (by_status, EACH, "http_exchange_duration_seconds", "status", "2xx 3, 3xx 0, 4xx 2, 5xx 2"),
        // Caddy's handlers of one name have series of their own.
        (
            Opts::new().convention(Caddy),
            "GET /items, GET /orders, GET /closures, POST /closures, GET /layered/items, \
             GET /layered/orders, GET /value, GET /other-value",
            "caddy_http_requests_total",
            "handler",
            "integration::options::list 1, integration::options::orders::list 1, GET /closures 1, \
             POST /closures 1, GET /layered/items 1, GET /layered/orders 1, GET /value 1, \
             GET /other-value 1, _unmatched 0",
        ),
        // Caddy's errors are those that handlers return. As documented, the meter cannot distinguish
        // an unmarked 404.
        (
            Opts::new().convention(Caddy),
            "GET /err/404, GET /err/500, GET /err/stream, GET /ok/503, GET /ok/504, POST /broken, \
             GET /items, GET /ok/404, GET /err/unmarked",
            "caddy_http_request_errors_total",
            "handler",
            "GET /err/404 1, GET /err/500 1, integration::options::marked_stream 1, GET /ok/503 1, \
             GET /ok/504 1, integration::options::broken 1, integration::options::list 0, \
             GET /ok/404 0, GET /err/unmarked 0",
        ),
    ] {
        let registry = registry();
        let app = app(&registry, opts);
        send_all(&app, requests).await;
        let snapshot = registry.snapshot();
        for (value, expected) in shown.split(", ").map(|one| one.rsplit_once(' ').unwrap()) {
            let labels = [(label, value)];
            let found = match snapshot.histogram(metric, &labels) {
                Some(histogram) => histogram.count(),
                None => snapshot.total(metric, &labels).unwrap_or(0.0) as u64,
            };
            assert_eq!(found.to_string(), expected, "{metric} {label}={value}");
        }
    }
}

#[tokio::test]
async fn a_series_is_made_by_the_declaration_of_its_method_or_else_by_its_first_request() {
    let registry = registry();
    let app: axum::Router = Router::new()
        .route("/api/items", get(async || "").post(async || ""))
        .route("/api/items/{id}", get(async || "").delete(async || ""))
        .route("/any", any(async || Redirect::to("/")))
        .metered(&registry)
        .unwrap();
    let mut expected = BTreeSet::new();
    for (method, route) in [
        ("GET", "/api/items"),
        ("POST", "/api/items"),
        ("GET", "/api/items/{id}"),
        ("DELETE", "/api/items/{id}"),
        ("GET", "/any"),
    ] {
        let labels = format!(r#"method="{method}",route="{route}""#);
        for status in ["2xx", "4xx", "5xx"] {
            expected.insert(format!(r#"http_requests_total{{{labels},status="{status}"}} 0"#));
        }
        for outcome in ["complete", "aborted", "panicked"] {
            let labels = format!(r#"{labels},outcome="{outcome}""#);
            expected.insert(format!("http_request_outcomes_total{{{labels}}} 0"));
        }
        expected.insert(format!("http_requests_in_flight{{{labels}}} 0"));
        expected.insert(format!("http_request_duration_seconds_count{{{labels}}} 0"));
    }
    assert_eq!(lines(&registry.snapshot()), expected);
    let mut series = registry.snapshot().select("http_requests_total", &[]).count();
    for (method, uri, shown, route, status) in [
        ("PUT", "/api/items", "_OTHER", "/api/items", "4xx"),
        ("GET", "/nowhere", "_OTHER", "_unmatched", "4xx"),
        ("PATCH", "/any", "PATCH", "/any", "3xx"),
    ] {
        send_all(&app, &format!("{method} {uri}, {method} {uri}")).await;
        assert_eq!(requests(&registry, shown, route, status), Some(2.0), "{method} {uri}");
        series += 1;
        let found = registry.snapshot().select("http_requests_total", &[]).count();
        assert_eq!(found, series, "{method} {uri}");
    }
    assert_eq!(recorded(&registry), 6);
}

const CONVENTIONS: [Convention; 4] = [Prometheus, OpenTelemetry, Servant, Caddy];

/// The metrics of each convention, with their types, and whether they are there from the start.
const METRICS: [(Convention, bool, &str); 21] = [
    (Prometheus, true, "http_exchange_duration_seconds histogram"),
    (Prometheus, true, "http_request_body_size_bytes histogram"),
    (Prometheus, true, "http_request_duration_seconds histogram"),
    (Prometheus, true, "http_request_outcomes_total counter"),
    (Prometheus, true, "http_requests_in_flight gauge"),
    (Prometheus, true, "http_requests_total counter"),
    (Prometheus, true, "http_response_body_size_bytes histogram"),
    (OpenTelemetry, true, "http_server_active_requests gauge"),
    (OpenTelemetry, false, "http_server_request_body_size_bytes histogram"),
    (OpenTelemetry, false, "http_server_request_duration_seconds histogram"),
    (OpenTelemetry, false, "http_server_response_body_size_bytes histogram"),
    (Servant, true, "http_request_duration_seconds histogram"),
    (Servant, true, "http_requests_in_flight gauge"),
    (Servant, true, "http_responses_total counter"),
    (Caddy, true, "caddy_http_request_errors_total counter"),
    (Caddy, true, "caddy_http_requests_in_flight gauge"),
    (Caddy, true, "caddy_http_requests_total counter"),
    (Caddy, false, "caddy_http_request_duration_seconds histogram"),
    (Caddy, false, "caddy_http_request_size_bytes histogram"),
    (Caddy, false, "caddy_http_response_duration_seconds histogram"),
    (Caddy, false, "caddy_http_response_size_bytes histogram"),
];

/// The tests in `cases` check the series of these metrics.
#[tokio::test]
async fn each_convention_has_its_metrics() {
    for convention in CONVENTIONS {
        let registry = registry();
        let app = app(&registry, Opts::new().detailed().convention(convention));
        for is_before in [true, false] {
            let expected: BTreeSet<&str> = METRICS
                .iter()
                .filter(|(of, from_start, _)| *of == convention && (*from_start || !is_before))
                .map(|(.., metric)| *metric)
                .collect();
            let text = registry.snapshot().to_text();
            let shown = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
            let shown: BTreeSet<&str> = shown.filter(|line| !line.starts_with("talea_")).collect();
            assert_eq!(shown, expected, "{convention:?}");
            send_all(&app, EACH).await;
        }
    }
}

#[tokio::test]
async fn servants_help_and_thresholds_are_those_of_the_library() {
    let registry = registry();
    let app = app(&registry, Opts::new().convention(Servant));
    send_all(&app, EACH).await;
    let text = registry.snapshot().to_text();
    for line in [
        "# HELP http_requests_in_flight Total http requests in flight.",
        "# HELP http_responses_total Total number of http responses by their statuses.",
        "# HELP http_request_duration_seconds Request latency in seconds",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let labels = r#"http_request_duration_seconds_bucket{path="items",method="GET",le=""#;
    let thresholds = text.lines().filter_map(|line| line.strip_prefix(labels)?.split('"').next());
    // `defaultBuckets` of servant-prometheus 0.2.0.0, in milliseconds there.
    let ms = [5].into_iter().chain((10..=90).step_by(10)).chain((100..=275).step_by(25));
    let ms = ms.chain((300..=900).step_by(100)).chain((1000..=5000).step_by(1000));
    let expected: Vec<f64> = ms.map(|ms| f64::from(ms) / 1000.0).collect();
    let found: Vec<f64> = thresholds.filter_map(|text| text.parse().ok()).collect();
    assert_eq!(found, [&expected[..], &[f64::INFINITY]].concat());
}

#[tokio::test]
async fn caddys_request_size_includes_headers_and_body() {
    let declared = "POST/itemsHTTP/1.1hostA.examplecontent-length512345".len() as f64;
    // The most that hyper takes, which no client sends.
    for (length, expected) in [("5", declared), ("18446744073709551613", u64::MAX as f64)] {
        let registry = registry();
        let opts = Opts::new().convention(Caddy).server("edge").hosts(&["a.example"]);
        let app = app(&registry, opts);
        let request = Request::post("/items")
            .header("host", "A.example")
            .header("content-length", length)
            .body(Body::from("12345"));
        send(&app, request.unwrap()).await;
        let labels = [
            ("server", "edge"),
            ("handler", "integration::options::create"),
            ("host", "a.example"),
        ];
        let snapshot = registry.snapshot();
        let size = snapshot.histogram("caddy_http_request_size_bytes", &labels).unwrap();
        assert_eq!((size.count(), size.sum()), (1, expected));
        assert_eq!(snapshot.total("caddy_http_requests_total", &labels), Some(1.0));
    }
}

#[derive(Clone, Copy, LabelValue)]
enum Plan {
    Free,
    Paid,
}

#[derive(Clone, Copy, LabelValue)]
enum Cache {
    Hit,
    Miss,
}

#[tokio::test]
async fn the_users_labels_are_on_every_metric() {
    for (convention, duration) in [
        (Prometheus, "shop_http_request_duration_seconds"),
        (OpenTelemetry, "shop_http_server_request_duration_seconds"),
        (Servant, "shop_http_request_duration_seconds"),
        (Caddy, "shop_caddy_http_request_duration_seconds"),
    ] {
        let registry = registry();
        let endpoints = Opts::new()
            .convention(convention)
            .prefix("shop")
            .constant_label("region", "e\"u")
            .request_label::<Plan>("plan")
            .response_label::<Cache>("cache")
            .register(&registry)
            .unwrap();
        let hit = async || Extension(Cache::Hit);
        let app = Router::new().route("/hit", get(hit).post(hit)).metered_by(&endpoints);
        for plan in [None, Some(Plan::Free), Some(Plan::Paid)] {
            let mut request = Request::get("/hit").body(Body::empty()).unwrap();
            if let Some(plan) = plan {
                request.extensions_mut().insert(plan);
            }
            send(&app, request).await;
        }
        send_all(&app, "DELETE /hit").await;
        let snapshot = registry.snapshot();
        for family in snapshot.families().filter(|family| !family.name().starts_with("talea_")) {
            assert!(family.name().starts_with("shop_"), "{}", family.name());
            for series in family.series() {
                let labels = series.labels();
                assert!(labels.contains(&("region", "e\"u".to_owned())), "{labels:?}");
                assert!(labels.iter().any(|(name, _)| *name == "plan"), "{labels:?}");
            }
        }
        for (plan, cache, expected) in
            [("", "hit", 1), ("free", "hit", 1), ("paid", "hit", 1), ("", "", 1), ("", "miss", 0)]
        {
            let found = snapshot.histogram(duration, &[("plan", plan), ("cache", cache)]);
            let found = found.map_or(0, |found| found.count());
            assert_eq!(found, expected, "{convention:?} {plan} {cache}");
        }
        let _ = Cache::Miss;
    }
}

#[test]
fn options_that_cannot_be_used_are_refused_with_the_reason() {
    let hosts: Vec<String> = (0..2000).map(|n| format!("{n}.example")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let taken = registry();
    taken.register::<Counter>(MetricOpts::new("http_requests", "Mine.")).unwrap();
    let many = (0..41).map(|n| format!("l{n}"));
    for (registry, opts, reason) in [
        (
            &registry(),
            Opts::new().request_label::<String>("tenant"),
            r#"its label "tenant" cannot be used: the values of its type are not fixed"#,
        ),
        (
            &registry(),
            Opts::new().constant_label("route", "/"),
            r#"its label "route" is given twice"#,
        ),
        (
            &registry(),
            Opts::new().hosts(&hosts),
            "22011 combinations of values; the maximum is 16384",
        ),
        // 3⁴¹ is more than 2⁶⁴.
        (
            &registry(),
            many.fold(Opts::new(), |opts, name| opts.request_label::<bool>(&name)),
            "the labels of a request have 18446744073709551615 combinations",
        ),
        (&registry(), Opts::new().methods(&["MKCOL", ""]), r#""" is not a valid method"#),
        (&registry(), Opts::new().methods(&["TWO WORDS"]), r#""TWO WORDS" is not a valid method"#),
        (&registry(), Opts::new().methods(&["GÊT"]), r#""GÊT" is not a valid method"#),
        (&registry(), Opts::new().quantiles(&[2.0]), "from 0 to 1"),
        (&taken, Opts::new(), "http_requests_total"),
    ] {
        let error = opts.register(registry).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn the_state_of_layers_is_freed_with_their_router() {
    let state = Arc::new(());
    let mut router = Router::new().route("/x", get(async || "").layer(Extension(state.clone())));
    for _ in 0..9 {
        router = router.layer(Extension(state.clone()));
    }
    let app = router.metered(&registry()).unwrap();
    assert_eq!(ask(&app, "GET", "/x").await.status(), StatusCode::OK);
    assert!(Arc::strong_count(&state) > 10);
    drop(app);
    assert_eq!(Arc::strong_count(&state), 1);
}

#[tokio::test]
async fn quantiles_of_the_last_minutes_are_shown_on_request() {
    let registry = registry();
    let app = app(&registry, Opts::new().quantiles(&[0.5, 0.99]));
    for is_before in [true, false] {
        let labels = [("method", "GET"), ("route", "/items"), ("quantile", "0.5")];
        let median = registry.snapshot().value("http_request_duration_recent_seconds", &labels);
        let median = median.unwrap();
        assert!(if is_before { median.is_nan() } else { median > 0.0 }, "{median}");
        send_all(&app, "GET /items").await;
    }
}

#[tokio::test]
async fn the_response_of_a_fallback_is_not_counted_under_a_listed_route() {
    let registry = registry();
    let layer = Layer::new(&registry).unwrap();
    let app = axum::Router::new()
        .route("/items", axum::routing::get(async || "items"))
        .fallback(async || "anything")
        .layer(layer.routes(&[("GET", "/items"), ("GET", "/gone")]).unwrap());
    send_all(&app, "GET /items, GET /gone, GET /nowhere").await;
    for (method, route, expected) in
        [("GET", "/items", 1.0), ("GET", "/gone", 0.0), ("_OTHER", "_unmatched", 2.0)]
    {
        assert_eq!(requests(&registry, method, route, "2xx"), Some(expected), "{route}");
    }
}
