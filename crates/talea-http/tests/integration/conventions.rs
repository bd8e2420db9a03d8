//! The metrics, labels and values of each convention.

use std::collections::BTreeSet;
use std::convert::Infallible;

use axum::Extension;
use axum::body::Body;
use axum::handler::Handler;
use axum::http::{Request, StatusCode};
use talea::{LabelValue, Registry};
use talea_http::Convention::{self, Caddy, OpenTelemetry, Prometheus, Servant};
use talea_http::axum::{Router, get, post};
use talea_http::{HandlerError, Opts};
use tower::ServiceExt;

use crate::support::counts::registry;
use crate::support::requests::text;

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

/// Sends a request to its end, which may be a panic.
async fn send(app: &axum::Router, request: Request<Body>) {
    let app = app.clone();
    let _ = tokio::spawn(async { text(app.oneshot(request).await.unwrap()).await }).await;
}

async fn ask(app: &axum::Router, method: &str, uri: &str, body: &'static str) {
    let request = Request::builder().method(method).uri(uri).body(Body::from(body)).unwrap();
    send(app, request).await;
}

async fn ask_all(app: &axum::Router) {
    for (method, uri, body) in [
        ("GET", "/items", ""),
        ("HEAD", "/items", ""),
        ("POST", "/items", "12345"),
        ("GET", "/items/7", ""),
        ("POST", "/broken", ""),
        ("GET", "/nowhere", ""),
        ("ODD", "/items", ""),
    ] {
        ask(app, method, uri, body).await;
    }
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
        let assert_shown = |before_requests: bool| {
            let of_it = METRICS.into_iter().filter(|(of, from_start, _)| {
                *of == convention && (*from_start || !before_requests)
            });
            let expected: BTreeSet<&str> = of_it.map(|(.., metric)| metric).collect();
            let text = registry.snapshot().to_text();
            let shown = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
            let shown: BTreeSet<&str> = shown.filter(|line| !line.starts_with("talea_")).collect();
            assert_eq!(shown, expected, "{convention:?}");
        };
        let app = app(&registry, Opts::new().detailed().convention(convention));
        assert_shown(true);
        ask_all(&app).await;
        assert_shown(false);
    }
}

#[tokio::test]
async fn servants_help_and_thresholds_are_those_of_the_library() {
    let registry = registry();
    let app = app(&registry, Opts::new().convention(Servant));
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
async fn caddys_request_size_includes_headers_and_body() {
    let counted = "POST/itemsHTTP/1.1hostA.examplecontent-length512345".len() as f64;
    // The most that hyper takes, which no client sends.
    for (length, expected) in [("5", counted), ("18446744073709551613", u64::MAX as f64)] {
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
            ("handler", "integration::conventions::create"),
            ("host", "a.example"),
        ];
        let snapshot = registry.snapshot();
        let size = snapshot.histogram("caddy_http_request_size_bytes", &labels).unwrap();
        assert_eq!((size.count(), size.sum()), (1, expected));
        assert_eq!(snapshot.total("caddy_http_requests_total", &labels), Some(1.0));
    }
}

mod orders {
    pub(crate) async fn list() -> &'static str {
        "orders"
    }
}

#[tokio::test]
async fn caddys_handlers_of_one_name_have_series_of_their_own() {
    let registry = registry();
    let endpoints = Opts::new().convention(Caddy).register(&registry).unwrap();
    let app = Router::new()
        .route("/users", get(list))
        .route("/orders", get(orders::list))
        .route("/closures", get(async || "got").post(async || "posted"))
        .route("/layered/users", get(list.layer(Extension(()))))
        .route("/layered/orders", get(orders::list.layer(Extension(()))))
        .route("/value", get(StatusCode::OK))
        .route("/other-value", get(StatusCode::ACCEPTED))
        .metered_by(&endpoints);
    let handlers = [
        ("GET", "/users", "integration::conventions::list"),
        ("GET", "/orders", "integration::conventions::orders::list"),
        ("GET", "/closures", "GET /closures"),
        ("POST", "/closures", "POST /closures"),
        ("GET", "/layered/users", "GET /layered/users"),
        ("GET", "/layered/orders", "GET /layered/orders"),
        ("GET", "/value", "GET /value"),
        ("GET", "/other-value", "GET /other-value"),
    ];
    for (method, path, handler) in handlers {
        ask(&app, method, path, "").await;
        let labels = [("handler", handler)];
        let counted = registry.snapshot().total("caddy_http_requests_total", &labels);
        assert_eq!(counted, Some(1.0), "{handler}");
    }
    // There is no other series: the answer to undeclared methods is no handler of its own.
    let snapshot = registry.snapshot();
    let all = snapshot.select("caddy_http_requests_total", &[]).count();
    assert_eq!(all, handlers.len(), "{}", snapshot.to_text());
}

#[tokio::test]
async fn caddys_errors_are_those_that_handlers_return() {
    let registry = registry();
    let endpoints = Opts::new().convention(Caddy).register(&registry).unwrap();
    let streams = async || {
        let body = Body::from_stream(futures_util::stream::iter([Ok::<_, Infallible>("piece")]));
        (Extension(HandlerError), body)
    };
    let app = Router::new()
        .route(
            "/err/404",
            get(async || Err::<(), _>((StatusCode::NOT_FOUND, Extension(HandlerError)))),
        )
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
        // As documented: the meter cannot distinguish it from the one before.
        ("/err/unmarked", 0.0),
    ] {
        ask(&app, "GET", path, "").await;
        let handler = match path {
            "/panic" => "integration::conventions::broken".to_owned(),
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
async fn the_users_labels_are_on_every_metric() {
    for convention in CONVENTIONS {
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
        ask(&app, "DELETE", "/hit", "").await;
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
            OpenTelemetry => "shop_http_server_request_duration_seconds",
            Caddy => "shop_caddy_http_request_duration_seconds",
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
async fn durations_have_the_status_as_a_label_on_request() {
    let registry = registry();
    let app = app(&registry, Opts::new().detailed().durations_by_status(true));
    ask_all(&app).await;
    let snapshot = registry.snapshot();
    for duration in ["http_request_duration_seconds", "http_exchange_duration_seconds"] {
        for (status, expected) in [("2xx", 3), ("4xx", 2), ("5xx", 2)] {
            let found = snapshot.histogram(duration, &[("status", status)]).unwrap();
            assert_eq!(found.count(), expected, "{duration} {status}");
        }
        assert!(snapshot.histogram(duration, &[("status", "3xx")]).is_none());
    }
}

#[test]
fn labels_that_cannot_be_used_are_refused_with_the_reason() {
    let hosts: Vec<String> = (0..2000).map(|n| format!("{n}.example")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    for (opts, reasons) in [
        (
            Opts::new().request_label::<String>("tenant"),
            [r#"its label "tenant" cannot be used"#, "#[derive(LabelValue)]"],
        ),
        (Opts::new().constant_label("route", "/"), [r#"its label "route" is there twice"#, ""]),
        (Opts::new().hosts(&hosts), ["22011 combinations, and 16384 is the most", ""]),
        // 3⁴¹ is more than 2⁶⁴.
        (
            (0..41).fold(Opts::new(), |opts, n| opts.request_label::<bool>(&format!("l{n}"))),
            ["the labels of a request have", "16384 is the most"],
        ),
    ] {
        let error = opts.register(&registry()).unwrap_err().to_string();
        assert!(reasons.iter().all(|reason| error.contains(reason)), "{error}");
    }
}
