//! Which metrics, labels and values each convention has.

use std::collections::BTreeSet;
use std::convert::Infallible;

use axum::Extension;
use axum::body::Body;
use axum::handler::Handler;
use axum::http::{Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use talea::{LabelValue, Registry};
use talea_http::axum::{Router, get, post};
use talea_http::{Convention, HandlerError, Opts};
use tower::ServiceExt;

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

fn app(registry: &Registry, opts: Opts) -> axum::Router {
    Router::new()
        .route("/items", get(list).post(create))
        .route("/items/{id}", get(fail))
        .route("/broken", post(broken))
        .metered_by(&opts.register(registry).unwrap())
}

async fn send(app: &axum::Router, request: Request<Body>) -> Option<Response> {
    let answer = tokio::spawn(app.clone().oneshot(request)).await;
    let response = answer.ok()?.unwrap();
    let (head, body) = response.into_parts();
    Some(Response::from_parts(head, body.collect().await.unwrap().to_bytes().into()))
}

async fn ask(app: &axum::Router, method: Method, uri: &str, body: &'static str) {
    let request = Request::builder().method(method).uri(uri).body(Body::from(body)).unwrap();
    send(app, request).await;
}

/// One request of each kind.
async fn ask_all(app: &axum::Router) {
    ask(app, Method::GET, "/items", "").await;
    ask(app, Method::HEAD, "/items", "").await;
    ask(app, Method::POST, "/items", "12345").await;
    ask(app, Method::GET, "/items/7", "").await;
    ask(app, Method::POST, "/broken", "").await;
    ask(app, Method::GET, "/nowhere", "").await;
    ask(app, "ODD".parse().unwrap(), "/items", "").await;
}

/// The lines of counters, and of histograms their counts and sums of bytes, that are not 0.
fn told(registry: &Registry) -> BTreeSet<String> {
    let text = registry.snapshot().to_text();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.ends_with(" 0"));
    let lines = lines.filter(|line| !line.contains("_bucket{") && !line.contains("seconds_sum"));
    lines.filter(|line| !line.starts_with("talea_")).map(str::to_owned).collect()
}

/// Names and types, as a scrape shows them.
fn families(registry: &Registry) -> BTreeSet<String> {
    let text = registry.snapshot().to_text();
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.filter(|line| !line.starts_with("talea_")).map(str::to_owned).collect()
}

fn lines(text: &str) -> BTreeSet<String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn assert_told(registry: &Registry, expected: &str) {
    let (told, expected) = (told(registry), lines(expected));
    let missing: Vec<_> = expected.difference(&told).collect();
    let more: Vec<_> = told.difference(&expected).collect();
    assert!(missing.is_empty() && more.is_empty(), "missing: {missing:#?}\nmore: {more:#?}");
}

/// The lines of histograms of as many observations with the same labels, and of the bytes of
/// some of them.
fn histograms(names: &[&str], labels: &str, count: u64, bytes: &[(&str, u64)]) -> Vec<String> {
    let counts = names.iter().map(|name| format!("{name}_count{{{labels}}} {count}"));
    let sums = bytes.iter().filter(|(_, bytes)| *bytes > 0);
    let sums = sums.map(|(name, bytes)| format!("{name}_sum{{{labels}}} {bytes}"));
    counts.chain(sums).collect()
}

#[tokio::test]
async fn prometheus_is_told_all() {
    let registry = Registry::for_test().unwrap();
    let app = app(&registry, Opts::new());
    let types = "http_requests_in_flight gauge
        http_requests_total counter
        http_request_outcomes_total counter
        http_request_duration_seconds histogram
        http_exchange_duration_seconds histogram
        http_request_body_size_bytes histogram
        http_response_body_size_bytes histogram";
    assert_eq!(families(&registry), lines(types));
    ask_all(&app).await;
    let (request, response) = ("http_request_body_size_bytes", "http_response_body_size_bytes");
    let all =
        ["http_request_duration_seconds", "http_exchange_duration_seconds", request, response];
    let mut expected = Vec::new();
    for (method, route, status, outcome, count, bytes) in [
        ("GET", "/items", "2xx", "complete", 2, (0, 5)),
        ("POST", "/items", "2xx", "complete", 1, (5, 5)),
        ("_OTHER", "/items", "4xx", "complete", 1, (0, 0)),
        ("GET", "/items/{id}", "5xx", "complete", 1, (0, 0)),
        ("POST", "/broken", "5xx", "panicked", 1, (0, 0)),
        ("_OTHER", "_unmatched", "4xx", "complete", 1, (0, 0)),
    ] {
        let labels = format!(r#"method="{method}",route="{route}""#);
        expected.push(format!(r#"http_requests_total{{{labels},status="{status}"}} {count}"#));
        expected.push(format!(
            r#"http_request_outcomes_total{{{labels},outcome="{outcome}"}} {count}"#
        ));
        let bytes = [(request, bytes.0), (response, bytes.1)];
        expected.extend(histograms(&all, &labels, count, &bytes));
    }
    assert_told(&registry, &expected.join("\n"));
}

#[tokio::test]
async fn opentelemetry_is_told_by_its_attributes() {
    let registry = Registry::for_test().unwrap();
    let app = app(&registry, Opts::new().convention(Convention::OpenTelemetry));
    assert_eq!(families(&registry), lines("http_server_active_requests gauge"));
    ask_all(&app).await;
    let types = "http_server_active_requests gauge
        http_server_request_duration_seconds histogram
        http_server_request_body_size_bytes histogram
        http_server_response_body_size_bytes histogram";
    assert_eq!(families(&registry), lines(types));
    let request = "http_server_request_body_size_bytes";
    let response = "http_server_response_body_size_bytes";
    let all = ["http_server_request_duration_seconds", request, response];
    let mut expected = Vec::new();
    for (method, route, status, error, bytes) in [
        ("GET", "/items", "200", "", (0, 5)),
        ("HEAD", "/items", "200", "", (0, 0)),
        ("POST", "/items", "201", "", (5, 5)),
        ("_OTHER", "/items", "405", "", (0, 0)),
        ("GET", "/items/{id}", "503", "503", (0, 0)),
        ("POST", "/broken", "500", "panic", (0, 0)),
        // The attribute is absent where no route matched.
        ("GET", "", "404", "", (0, 0)),
    ] {
        let labels = format!(
            r#"http_request_method="{method}",url_scheme="http",http_route="{route}",http_response_status_code="{status}",error_type="{error}",network_protocol_version="1.1""#
        );
        let bytes = [(request, bytes.0), (response, bytes.1)];
        expected.extend(histograms(&all, &labels, 1, &bytes));
    }
    assert_told(&registry, &expected.join("\n"));
}

#[tokio::test]
async fn servants_dashboards_go_on() {
    let registry = Registry::for_test().unwrap();
    let app = app(&registry, Opts::new().convention(Convention::Servant));
    let types = "http_requests_in_flight gauge
        http_responses_total counter
        http_request_duration_seconds histogram";
    assert_eq!(families(&registry), lines(types));
    ask_all(&app).await;
    let mut expected = Vec::new();
    for (path, method, status, count) in [
        ("items", "GET", "2XX", 2),
        ("items", "POST", "2XX", 1),
        ("items/:id", "GET", "5XX", 1),
        ("broken", "POST", "5XX", 1),
        // Of no endpoint: an undeclared method, and a path that no route matches.
        ("", "", "4XX", 2),
    ] {
        let labels = format!(r#"path="{path}",method="{method}""#);
        expected.push(format!(r#"http_responses_total{{{labels},status="{status}"}} {count}"#));
        expected.extend(histograms(&["http_request_duration_seconds"], &labels, count, &[]));
    }
    assert_told(&registry, &expected.join("\n"));
}

#[tokio::test]
async fn servants_help_and_thresholds_are_the_librarys_own() {
    let registry = Registry::for_test().unwrap();
    let app = app(&registry, Opts::new().convention(Convention::Servant));
    ask_all(&app).await;
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
async fn caddys_dashboards_go_on() {
    let registry = Registry::for_test().unwrap();
    let app = app(&registry, Opts::new().convention(Convention::Caddy));
    let types = "caddy_http_requests_in_flight gauge
        caddy_http_requests_total counter
        caddy_http_request_errors_total counter";
    assert_eq!(families(&registry), lines(types));
    ask_all(&app).await;
    let (request, response) = ("caddy_http_request_size_bytes", "caddy_http_response_size_bytes");
    let all = [
        "caddy_http_request_duration_seconds",
        "caddy_http_response_duration_seconds",
        request,
        response,
    ];
    let error = |handler| {
        format!(r#"caddy_http_request_errors_total{{server="srv0",handler="{handler}"}} 1"#)
    };
    let mut expected = vec![error("conventions::broken"), error("conventions::fail")];
    for (handler, count) in [
        ("conventions::list", 2),
        ("conventions::create", 1),
        ("conventions::fail", 1),
        ("conventions::broken", 1),
        ("_unmatched", 2),
    ] {
        let labels = format!(r#"server="srv0",handler="{handler}""#);
        expected.push(format!("caddy_http_requests_total{{{labels}}} {count}"));
    }
    for (handler, code, method, uri, bytes) in [
        ("conventions::list", "200", "GET", "/items", (0, 5)),
        ("conventions::list", "200", "HEAD", "/items", (0, 0)),
        // Nobody said here how long the body is.
        ("conventions::create", "201", "POST", "/items", (0, 5)),
        ("_unmatched", "405", "OTHER", "/items", (0, 0)),
        ("conventions::fail", "503", "GET", "/items/7", (0, 0)),
        ("conventions::broken", "500", "POST", "/broken", (0, 0)),
        ("_unmatched", "404", "GET", "/nowhere", (0, 0)),
    ] {
        let labels =
            format!(r#"server="srv0",handler="{handler}",code="{code}",method="{method}""#);
        let sent = if method == "OTHER" { "ODD" } else { method };
        let line = (sent.len() + uri.len() + "HTTP/1.1".len()) as u64;
        let bytes = [(request, line + bytes.0), (response, bytes.1)];
        expected.extend(histograms(&all, &labels, 1, &bytes));
    }
    assert_told(&registry, &expected.join("\n"));
}

#[tokio::test]
async fn caddy_reckons_a_request_with_its_headers_and_its_body() {
    let registry = Registry::for_test().unwrap();
    let opts = Opts::new().convention(Convention::Caddy).server("edge").hosts(&["a.example"]);
    let app = app(&registry, opts);
    let request = Request::post("/items")
        .header("host", "A.example")
        .header("content-length", "5")
        .body(Body::from("12345"));
    send(&app, request.unwrap()).await;
    let labels = [("server", "edge"), ("handler", "conventions::create"), ("host", "a.example")];
    let snapshot = registry.snapshot();
    let size = snapshot.histogram("caddy_http_request_size_bytes", &labels).unwrap();
    let reckoned = "POST/itemsHTTP/1.1hostA.examplecontent-length512345";
    assert_eq!((size.count(), size.sum()), (1, reckoned.len() as f64));
    assert_eq!(snapshot.total("caddy_http_requests_total", &labels), Some(1.0));
}

mod users {
    pub(crate) async fn list() -> &'static str {
        "users"
    }
}

mod orders {
    pub(crate) async fn list() -> &'static str {
        "orders"
    }
}

#[tokio::test]
async fn caddys_handlers_are_told_apart_where_they_have_one_name() {
    let registry = Registry::for_test().unwrap();
    let endpoints = Opts::new().convention(Convention::Caddy).register(&registry).unwrap();
    let app = Router::new()
        .route("/users", get(users::list))
        .route("/orders", get(orders::list))
        .route("/closures", get(async || "got").post(async || "posted"))
        .route("/layered/users", get(users::list.layer(Extension(()))))
        .route("/layered/orders", get(orders::list.layer(Extension(()))))
        .route("/value", get(StatusCode::OK))
        .route("/other-value", get(StatusCode::ACCEPTED))
        .metered_by(&endpoints);
    for path in ["/users", "/orders", "/closures", "/value", "/other-value"] {
        ask(&app, Method::GET, path, "").await;
    }
    ask(&app, Method::GET, "/layered/users", "").await;
    ask(&app, Method::GET, "/layered/orders", "").await;
    ask(&app, Method::POST, "/closures", "").await;
    let counts = |handler: &str| {
        let labels = [("handler", handler)];
        registry.snapshot().total("caddy_http_requests_total", &labels).unwrap_or(-1.0)
    };
    let handlers = [
        "conventions::users::list",
        "conventions::orders::list",
        "GET /closures",
        "POST /closures",
        "GET /layered/users",
        "GET /layered/orders",
        "GET /value",
        "GET /other-value",
    ];
    for handler in handlers {
        assert_eq!(counts(handler), 1.0, "{handler}");
    }
    assert_eq!(counts("_unmatched"), 0.0);
    // Nothing else has a series: what answers undeclared methods is no handler of its own.
    let snapshot = registry.snapshot();
    let all = snapshot.select("caddy_http_requests_total", &[]).count();
    assert_eq!(all, handlers.len() + 1, "{}", snapshot.to_text());
}

/// An error whose responses say that they are one.
struct NotFound;

impl IntoResponse for NotFound {
    fn into_response(self) -> Response {
        (StatusCode::NOT_FOUND, Extension(HandlerError)).into_response()
    }
}

#[tokio::test]
async fn caddys_errors_are_those_that_handlers_return() {
    let registry = Registry::for_test().unwrap();
    let endpoints = Opts::new().convention(Convention::Caddy).register(&registry).unwrap();
    let streams = async || {
        let body = Body::from_stream(futures_util::stream::iter([Ok::<_, Infallible>("piece")]));
        (Extension(HandlerError), body)
    };
    let app = Router::new()
        .route("/err/404", get(async || Err::<(), _>(NotFound)))
        .route("/ok/404", get(async || StatusCode::NOT_FOUND))
        .route("/err/unmarked", get(async || Err::<(), _>(StatusCode::NOT_FOUND)))
        .route("/err/500", get(async || Err::<(), _>(StatusCode::INTERNAL_SERVER_ERROR)))
        .route("/ok/503", get(async || StatusCode::SERVICE_UNAVAILABLE))
        .route("/ok/504", get(async || StatusCode::GATEWAY_TIMEOUT))
        .route("/err/stream", get(streams))
        .route("/panic", get(broken))
        .route("/ok/200", get(async || "ok"))
        .metered_by(&endpoints);
    for (path, errors) in [
        ("/err/404", 1.0),
        ("/err/500", 1.0),
        ("/err/stream", 1.0),
        ("/ok/503", 1.0),
        ("/ok/504", 1.0),
        ("/panic", 1.0),
        ("/ok/200", 0.0),
        ("/ok/404", 0.0),
        // As the documents say: it cannot be told from the one before.
        ("/err/unmarked", 0.0),
    ] {
        ask(&app, Method::GET, path, "").await;
        let handler = match path {
            "/panic" => "conventions::broken".to_owned(),
            _ => format!("GET {path}"),
        };
        let labels = [("handler", handler.as_str())];
        let counted = registry.snapshot().total("caddy_http_request_errors_total", &labels);
        assert_eq!(counted, Some(errors), "{path}");
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
async fn labels_of_ones_own_are_on_every_metric() {
    for convention in
        [Convention::Prometheus, Convention::OpenTelemetry, Convention::Servant, Convention::Caddy]
    {
        let registry = Registry::for_test().unwrap();
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
        ask(&app, Method::DELETE, "/hit", "").await;
        let snapshot = registry.snapshot();
        let own = snapshot.families().filter(|family| !family.name().starts_with("talea_"));
        for family in own {
            assert!(family.name().starts_with("shop_"), "{}", family.name());
            for series in family.series() {
                let labels = series.labels();
                let value = |name| labels.iter().find(|(label, _)| *label == name);
                let value = |name| value(name).map(|(_, value)| value.as_str());
                assert_eq!(value("region"), Some("e\"u"), "{}", family.name());
                assert!(value("plan").is_some(), "{}", family.name());
            }
        }
        let duration = match convention {
            Convention::OpenTelemetry => "shop_http_server_request_duration_seconds",
            Convention::Caddy => "shop_caddy_http_request_duration_seconds",
            _ => "shop_http_request_duration_seconds",
        };
        for (plan, cache, expected) in
            [("", "hit", 1), ("free", "hit", 1), ("paid", "hit", 1), ("", "", 1), ("", "miss", 0)]
        {
            let labels = [("plan", plan), ("cache", cache)];
            let found = snapshot.histogram(duration, &labels);
            let count = found.map_or(0, |found| found.count());
            assert_eq!(count, expected, "{convention:?} {plan} {cache}");
        }
        let _ = Cache::Miss;
    }
}

#[tokio::test]
async fn durations_are_told_by_the_status_where_that_is_asked_for() {
    let registry = Registry::for_test().unwrap();
    let app = app(&registry, Opts::new().durations_by_status(true));
    ask_all(&app).await;
    let snapshot = registry.snapshot();
    for duration in ["http_request_duration_seconds", "http_exchange_duration_seconds"] {
        for (status, expected) in [("2xx", 3), ("4xx", 2), ("5xx", 2), ("3xx", 0)] {
            let found = snapshot.histogram(duration, &[("status", status)]).unwrap();
            assert_eq!(found.count(), expected, "{duration} {status}");
        }
    }
}

#[test]
fn a_label_without_fixed_values_is_refused_with_the_remedy() {
    let registry = Registry::for_test().unwrap();
    let error = Opts::new().request_label::<String>("tenant").register(&registry).unwrap_err();
    let error = error.to_string();
    assert!(error.contains(r#"its label "tenant" cannot be used"#), "{error}");
    assert!(error.contains("#[derive(LabelValue)]"), "{error}");
}

#[test]
fn a_label_that_is_there_already_is_refused() {
    let registry = Registry::for_test().unwrap();
    let error = Opts::new().constant_label("route", "/").register(&registry).unwrap_err();
    assert!(error.to_string().contains(r#"its label "route" is there twice"#), "{error}");
}

#[test]
fn more_combinations_than_there_are_places_for_are_refused() {
    let registry = Registry::for_test().unwrap();
    let hosts: Vec<String> = (0..2000).map(|n| format!("{n}.example")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let error = Opts::new().hosts(&hosts).register(&registry).unwrap_err().to_string();
    assert!(error.contains("22011 combinations, and 16384 is the most"), "{error}");
}
