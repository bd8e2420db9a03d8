//! Claims about metered routers, asked in process; the items API's own tests do
//! the same over real connections.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{MatchedPath, Path, State};
use axum::http::{Method, Request, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get as get_of_axum;
use http_body_util::BodyExt;
use talea::Registry;
use talea_http::axum::{Router, get, post};
use talea_http::{CaughtPanic, Opts, StatusLabel, UpgradeGuard};
use tower::layer::layer_fn;
use tower::{Layer, Service, ServiceExt};
use tower_http::catch_panic::CatchPanicLayer;

fn registry() -> Registry {
    Registry::for_test().unwrap()
}

async fn ask(app: &axum::Router, method: Method, path: &str) -> Response {
    let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    app.clone().oneshot(request).await.unwrap()
}

async fn body(response: Response) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn requests(registry: &Registry, method: &str, route: &str, status: &str) -> Option<f64> {
    let labels = [("method", method), ("route", route), ("status", status)];
    registry.snapshot().value("http_requests_total", &labels)
}

/// All requests that were counted, and that their other metrics agree.
fn total(registry: &Registry) -> u64 {
    let snapshot = registry.snapshot();
    let mut total = 0;
    for family in snapshot.families() {
        for series in family.series() {
            match (family.name(), series.value()) {
                ("http_requests_total", talea::Value::Unsigned(n)) => total += n,
                ("http_requests_in_flight", value) => assert_eq!(value, talea::Value::Signed(0)),
                _ => {}
            }
        }
    }
    let durations = snapshot.histogram("http_request_duration_seconds", &[]).unwrap();
    assert_eq!(durations.count(), total);
    total
}

#[test]
fn every_series_is_there_before_the_first_request() {
    let registry = registry();
    let _app: axum::Router = Router::new()
        .route("/api/items", get(async || "").post(async || ""))
        .route("/api/items/{id}", get(async || "").delete(async || ""))
        .metered(&registry)
        .unwrap();
    for (method, route) in [
        ("GET", "/api/items"),
        ("POST", "/api/items"),
        ("_OTHER", "/api/items"),
        ("GET", "/api/items/{id}"),
        ("DELETE", "/api/items/{id}"),
        ("_OTHER", "/api/items/{id}"),
        ("_OTHER", "_unmatched"),
    ] {
        for status in ["1xx", "2xx", "3xx", "4xx", "5xx", "_OTHER"] {
            assert_eq!(requests(&registry, method, route, status), Some(0.0), "{method} {route}");
        }
        let labels = [("method", method), ("route", route)];
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.value("http_requests_in_flight", &labels), Some(0.0));
        let durations = snapshot.histogram("http_request_duration_seconds", &labels);
        assert_eq!(durations.unwrap().count(), 0);
    }
    assert_eq!(total(&registry), 0);
}

#[tokio::test]
async fn each_request_is_counted_once_at_its_route_by_its_status() {
    let registry = registry();
    let status = async |Path(status): Path<u16>| StatusCode::from_u16(status).unwrap();
    let app = Router::new()
        .route("/status/{status}", get(status).post(status))
        .metered(&registry)
        .unwrap();
    for status in [200, 204, 301, 404, 500, 799] {
        ask(&app, Method::GET, &format!("/status/{status}")).await;
    }
    ask(&app, Method::POST, "/status/201").await;
    ask(&app, Method::HEAD, "/status/200").await;
    let route = "/status/{status}";
    for (method, status, expected) in [
        ("GET", "2xx", 3.0),
        ("GET", "3xx", 1.0),
        ("GET", "4xx", 1.0),
        ("GET", "5xx", 1.0),
        ("GET", "_OTHER", 1.0),
        ("POST", "2xx", 1.0),
    ] {
        assert_eq!(requests(&registry, method, route, status), Some(expected), "{method} {status}");
    }
    assert_eq!(total(&registry), 8);
}

#[tokio::test]
async fn the_exact_code_is_a_choice_and_as_bounded() {
    let registry = registry();
    let status = async |Path(status): Path<u16>| StatusCode::from_u16(status).unwrap();
    let app = Router::new()
        .route("/status/{status}", get(status))
        .metered_by(&Opts::new().status_label(StatusLabel::Code).register(&registry).unwrap());
    for _ in 0..2 {
        for status in 200..=999 {
            ask(&app, Method::GET, &format!("/status/{status}")).await;
        }
    }
    let route = "/status/{status}";
    for (status, expected) in [("200", 2.0), ("418", 2.0), ("599", 2.0), ("_OTHER", 800.0)] {
        assert_eq!(requests(&registry, "GET", route, status), Some(expected), "{status}");
    }
    for status in ["2xx", "600", "999"] {
        assert_eq!(requests(&registry, "GET", route, status), None, "{status}");
    }
    assert_eq!(total(&registry), 1600);
}

#[tokio::test]
async fn an_undeclared_method_is_405_with_what_is_allowed_under_one_name() {
    let registry = registry();
    let app =
        Router::new().route("/x", get(async || "").put(async || "")).metered(&registry).unwrap();
    for method in ["POST", "PROPFIND", "X-ODD"] {
        let answer = ask(&app, method.parse().unwrap(), "/x").await;
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(answer.headers()["allow"], "GET,HEAD,PUT");
    }
    assert_eq!(requests(&registry, "_OTHER", "/x", "4xx"), Some(3.0));
    assert_eq!(total(&registry), 3);
}

#[tokio::test]
async fn an_undeclared_method_can_have_an_answer_of_ones_own() {
    let registry = registry();
    let sorry = async || (StatusCode::METHOD_NOT_ALLOWED, "sorry");
    let app =
        Router::new().route("/x", get(async || "").fallback(sorry)).metered(&registry).unwrap();
    let answer = ask(&app, Method::PUT, "/x").await;
    assert_eq!(answer.headers()["allow"], "GET,HEAD");
    assert_eq!(body(answer).await, "sorry");
    assert_eq!(requests(&registry, "_OTHER", "/x", "4xx"), Some(1.0));
    assert_eq!(total(&registry), 1);
}

#[tokio::test]
async fn an_unmatched_route_has_one_name() {
    let registry = registry();
    let app = Router::new().route("/x", get(async || "")).metered(&registry).unwrap();
    let before = registry.snapshot().to_text().lines().count();
    for n in 0..500 {
        let answer = ask(&app, Method::GET, &format!("/scan/{n}")).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    }
    assert_eq!(requests(&registry, "_OTHER", "_unmatched", "4xx"), Some(500.0));
    assert_eq!(registry.snapshot().to_text().lines().count(), before, "no new series");
}

#[tokio::test]
async fn a_fallback_of_ones_own_is_metered_too() {
    let registry = registry();
    let app = Router::new()
        .route("/x", get(async || ""))
        .fallback(async || (StatusCode::IM_A_TEAPOT, "lost"))
        .metered(&registry)
        .unwrap();
    let answer = ask(&app, Method::GET, "/nowhere").await;
    assert_eq!(answer.status(), StatusCode::IM_A_TEAPOT);
    assert_eq!(body(answer).await, "lost");
    assert_eq!(requests(&registry, "_OTHER", "_unmatched", "4xx"), Some(1.0));
    assert_eq!(total(&registry), 1);
}

#[tokio::test]
async fn nesting_state_and_merging_work_as_in_axum() {
    let registry = registry();
    let show =
        async |State(name): State<&'static str>, Path(id): Path<u32>, uri: Uri, at: MatchedPath| {
            format!("{name} {id} {uri} {}", at.as_str())
        };
    let items = Router::new().route("/", get(async || "root")).route("/{id}", get(show));
    let other = Router::new().route("/other", post(async || "other"));
    let app: axum::Router = Router::new()
        .nest("/api/items", items)
        .merge(other)
        .with_state("shop")
        .metered(&registry)
        .unwrap();
    let answer = ask(&app, Method::GET, "/api/items/7").await;
    assert_eq!(body(answer).await, "shop 7 /7 /api/items/{id}");
    assert_eq!(body(ask(&app, Method::GET, "/api/items").await).await, "root");
    assert_eq!(body(ask(&app, Method::POST, "/other").await).await, "other");
    assert_eq!(ask(&app, Method::GET, "/api/items/7/8").await.status(), StatusCode::NOT_FOUND);
    for (method, route) in [("GET", "/api/items/{id}"), ("GET", "/api/items"), ("POST", "/other")] {
        assert_eq!(requests(&registry, method, route, "2xx"), Some(1.0), "{method} {route}");
    }
    assert_eq!(total(&registry), 4);
}

#[tokio::test]
async fn one_path_declared_in_two_calls_is_one_route() {
    let registry = registry();
    let app = Router::new()
        .route("/x", get(async || "got"))
        .route("/x", post(async || "posted"))
        .metered(&registry)
        .unwrap();
    assert_eq!(body(ask(&app, Method::GET, "/x").await).await, "got");
    assert_eq!(body(ask(&app, Method::POST, "/x").await).await, "posted");
    assert_eq!(ask(&app, Method::PUT, "/x").await.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(requests(&registry, "_OTHER", "/x", "4xx"), Some(1.0));
    assert_eq!(total(&registry), 3);
}

#[test]
#[should_panic(expected = "both routers declare /x")]
fn two_routers_that_declare_one_path_are_told_so() {
    let _ = Router::<()>::new()
        .route("/x", get(async || ""))
        .merge(Router::new().route("/x", post(async || "")));
}

/// A middleware that answers some requests itself and delays the others.
#[derive(Clone)]
struct Gate;

#[derive(Clone)]
struct GateService<S>(S);

impl<S> Layer<S> for Gate {
    type Service = GateService<S>;
    fn layer(&self, inner: S) -> GateService<S> {
        GateService(inner)
    }
}

impl<S> Service<Request<Body>> for GateService<S>
where
    S: Service<Request<Body>, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let refused = request.uri().query() == Some("refuse");
        let answer = self.0.call(request);
        Box::pin(async move {
            if refused {
                return Ok(StatusCode::UNAUTHORIZED.into_response());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            answer.await
        })
    }
}

#[tokio::test]
async fn a_request_is_observed_once_outside_of_however_many_layers() {
    for layers in [0, 1, 2, 3, 4, 5, 8] {
        let registry = registry();
        let mut router = Router::new().route("/x", get(async || "").post(async || ""));
        for _ in 0..layers {
            router = router.layer(Gate);
        }
        let app = router.route("/bare", get(async || "")).metered(&registry).unwrap();
        ask(&app, Method::GET, "/x").await;
        ask(&app, Method::HEAD, "/x").await;
        ask(&app, Method::POST, "/x").await;
        ask(&app, Method::PUT, "/x").await;
        ask(&app, Method::GET, "/bare").await;
        ask(&app, Method::GET, "/nowhere").await;
        assert_eq!(total(&registry), 6, "{layers} layers");
        assert_eq!(requests(&registry, "GET", "/x", "2xx"), Some(2.0));
        let labels = [("method", "POST"), ("route", "/x")];
        let took = registry.snapshot().histogram("http_request_duration_seconds", &labels);
        assert!(took.unwrap().sum() >= 0.02 * f64::from(layers), "the layers are inside");
        if layers > 0 {
            ask(&app, Method::GET, "/x?refuse").await;
            assert_eq!(requests(&registry, "GET", "/x", "4xx"), Some(1.0), "a layer's own answer");
            ask(&app, Method::GET, "/nowhere?refuse").await;
            assert_eq!(requests(&registry, "_OTHER", "_unmatched", "4xx"), Some(2.0));
        }
    }
}

#[tokio::test]
async fn what_layers_hold_goes_with_their_router() {
    let held = Arc::new(());
    let mut router = Router::new().route("/x", get(async || "").layer(Extension(held.clone())));
    for _ in 0..9 {
        router = router.layer(Extension(held.clone()));
    }
    let app = router.metered(&registry()).unwrap();
    assert_eq!(ask(&app, Method::GET, "/x").await.status(), StatusCode::OK);
    assert!(Arc::strong_count(&held) > 10);
    drop(app);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[tokio::test]
async fn a_route_layer_leaves_the_fallback_alone_and_mixes_with_layers() {
    let registry = registry();
    let app = Router::new()
        .route("/x", get(async || ""))
        .route_layer(Gate)
        .layer(Gate)
        .route_layer(Gate)
        .metered(&registry)
        .unwrap();
    for (method, path, status) in [
        (Method::GET, "/x", 200),
        (Method::HEAD, "/x", 200),
        (Method::GET, "/x?refuse", 401),
        (Method::PUT, "/x", 405),
        (Method::PUT, "/x?refuse", 401),
        (Method::GET, "/nowhere", 404),
    ] {
        assert_eq!(ask(&app, method, path).await.status().as_u16(), status, "{path}");
    }
    assert_eq!(requests(&registry, "GET", "/x", "2xx"), Some(2.0));
    assert_eq!(requests(&registry, "GET", "/x", "4xx"), Some(1.0));
    assert_eq!(requests(&registry, "_OTHER", "/x", "4xx"), Some(2.0));
    assert_eq!(requests(&registry, "_OTHER", "_unmatched", "4xx"), Some(1.0));
    assert_eq!(total(&registry), 6);
    // Where no route matched, a route layer answers nothing.
    let app = Router::new().route("/x", get(async || "")).route_layer(Gate).metered(&registry);
    let answer = ask(&app.unwrap(), Method::GET, "/nowhere?refuse").await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_nested_router_may_have_a_fallback_of_its_own() {
    let registry = registry();
    let api = Router::new()
        .route("/x", get(async || ""))
        .fallback(async || (StatusCode::NOT_FOUND, "no such thing in the api"));
    let app = Router::new()
        .nest("/api", api)
        .fallback(async || (StatusCode::NOT_FOUND, "no such thing"))
        .metered(&registry)
        .unwrap();
    assert_eq!(ask(&app, Method::GET, "/api/x").await.status(), StatusCode::OK);
    let lost = body(ask(&app, Method::GET, "/api/y").await).await;
    assert_eq!(lost, "no such thing in the api");
    assert_eq!(body(ask(&app, Method::GET, "/y").await).await, "no such thing");
    assert_eq!(requests(&registry, "_OTHER", "_unmatched", "4xx"), Some(2.0));
    assert_eq!(total(&registry), 3);
}

#[tokio::test]
async fn a_request_that_is_dropped_leaves_and_is_counted() {
    let registry = registry();
    let app =
        Router::new().route("/slow", get(std::future::pending::<()>)).metered(&registry).unwrap();
    let in_flight = |registry: &Registry| {
        let labels = [("method", "GET"), ("route", "/slow")];
        registry.snapshot().value("http_requests_in_flight", &labels)
    };
    let task = tokio::spawn({
        let app = app.clone();
        async move { ask(&app, Method::GET, "/slow").await }
    });
    while in_flight(&registry) != Some(1.0) {
        tokio::task::yield_now().await;
    }
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(requests(&registry, "GET", "/slow", "_OTHER"), Some(1.0));
    assert_eq!(total(&registry), 1);
}

#[tokio::test]
async fn a_handler_that_panics_is_a_5xx_and_the_panic_goes_on() {
    let registry = registry();
    let broken = async || -> &'static str { panic!("on purpose") };
    let app = Router::new().route("/broken", get(broken)).metered(&registry).unwrap();
    let answer = futures_catch(ask(&app, Method::GET, "/broken")).await;
    assert!(answer.is_err(), "the panic reached the caller");
    assert_eq!(requests(&registry, "GET", "/broken", "5xx"), Some(1.0));
    assert_eq!(total(&registry), 1);
}

/// A service that panics in its call, before there is a future.
#[derive(Clone)]
struct Trap;

impl Service<Request<Body>> for Trap {
    type Response = Response;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        panic!("on purpose")
    }
}

#[tokio::test]
async fn a_service_that_panics_when_it_is_called_ends_its_request_too() {
    let routers: [fn() -> Router; 2] = [
        || Router::new().route_service("/x", Trap),
        || Router::new().route("/x", get(async || "")).layer(layer_fn(|_| Trap)),
    ];
    for (n, router) in routers.into_iter().enumerate() {
        let registry = registry();
        let app = router().metered(&registry).unwrap();
        assert!(futures_catch(ask(&app, Method::GET, "/x")).await.is_err());
        let snapshot = registry.snapshot();
        let labels = [("route", "/x"), ("status", "5xx")];
        let select = snapshot.select("http_requests_total", &labels);
        let values: Vec<_> = select.map(|series| series.value()).collect();
        assert!(values.contains(&talea::Value::Unsigned(1)), "{n}: {values:?}");
        assert_eq!(total(&registry), 1, "{n}");
    }
    let registry = registry();
    let layer = talea_http::axum::Layer::new(&registry).unwrap();
    let app = layer.routes(&[("GET", "/x")]).unwrap().layer(Trap);
    let request = Request::builder().uri("/x").body(Body::empty()).unwrap();
    assert!(futures_catch(app.oneshot(request)).await.is_err());
    assert_eq!(requests(&registry, "GET", "/x", "5xx"), Some(1.0));
    assert_eq!(total(&registry), 1);
}

/// Polls a future and catches its panic.
async fn futures_catch<F: Future>(future: F) -> std::thread::Result<F::Output> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(move |cx| {
        match std::panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await
}

#[test]
fn two_routers_share_the_metrics_of_one_registry() {
    let registry = registry();
    let _a: axum::Router = Router::new().route("/a", get(async || "")).metered(&registry).unwrap();
    let _b: axum::Router = Router::new().route("/b", get(async || "")).metered(&registry).unwrap();
    assert_eq!(requests(&registry, "GET", "/a", "2xx"), Some(0.0));
    assert_eq!(requests(&registry, "GET", "/b", "2xx"), Some(0.0));
}

#[test]
fn a_metric_of_the_same_name_is_told_when_metering() {
    let registry = registry();
    registry.register::<talea::Counter>(talea::Opts::new("http_requests", "Mine.")).unwrap();
    let told = Router::<()>::new().metered(&registry).unwrap_err().to_string();
    assert!(told.contains("http_requests_total"), "{told}");
}

#[tokio::test]
async fn quantiles_of_the_last_minutes_are_shown_where_they_are_asked_for() {
    let registry = registry();
    let nap = async || tokio::time::sleep(Duration::from_millis(20)).await;
    let endpoints = Opts::new().quantiles(&[0.5, 0.99]).register(&registry).unwrap();
    let app = Router::new().route("/nap", get(nap)).metered_by(&endpoints);
    let median = || {
        let labels = [("method", "GET"), ("route", "/nap"), ("quantile", "0.5")];
        registry.snapshot().value("http_request_duration_recent_seconds", &labels).unwrap()
    };
    assert!(median().is_nan());
    ask(&app, Method::GET, "/nap").await;
    assert!((0.019..1.0).contains(&median()), "{}", median());
    let told = Opts::new().quantiles(&[2.0]).register(&registry).unwrap_err().to_string();
    assert!(told.contains("from 0 to 1"), "{told}");
}

/// What the outcomes of a route's requests are, and how many are in flight.
fn outcomes(registry: &Registry, route: &str) -> (f64, Vec<(String, f64)>) {
    let snapshot = registry.snapshot();
    let in_flight =
        snapshot.value("http_requests_in_flight", &[("method", "GET"), ("route", route)]);
    let found = ["complete", "aborted", "panicked", "timed_out"].map(|outcome| {
        let labels = [("method", "GET"), ("outcome", outcome), ("route", route)];
        (outcome.to_owned(), snapshot.value("http_request_outcomes_total", &labels).unwrap_or(0.0))
    });
    (in_flight.unwrap(), found.into_iter().filter(|(_, count)| *count > 0.0).collect())
}

fn one(outcome: &str) -> Vec<(String, f64)> {
    vec![(outcome.to_owned(), 1.0)]
}

#[tokio::test]
async fn an_upgraded_connection_is_in_flight_as_long_as_its_guard_lives() {
    for panics in [false, true] {
        let registry = registry();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let sender = Arc::new(std::sync::Mutex::new(Some(sender)));
        let app = Router::new()
            .route(
                "/chat",
                get(async move || {
                    let guard = UpgradeGuard::new();
                    let sender = sender.lock().unwrap().take().unwrap();
                    assert!(sender.send(guard.clone()).is_ok());
                    (StatusCode::SWITCHING_PROTOCOLS, Extension(guard))
                }),
            )
            .metered(&registry)
            .unwrap();
        let response = ask(&app, Method::GET, "/chat").await;
        assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
        drop(response);
        let guard = receiver.await.unwrap();
        assert_eq!(outcomes(&registry, "/chat"), (1.0, vec![]));
        let task = tokio::spawn(async move {
            let _guard = guard;
            if panics {
                std::panic::resume_unwind(Box::new("on purpose"));
            }
        });
        assert_eq!(task.await.is_err(), panics);
        let outcome = if panics { "panicked" } else { "complete" };
        assert_eq!(outcomes(&registry, "/chat"), (0.0, one(outcome)));
    }
}

#[tokio::test]
async fn a_guard_of_a_response_that_is_no_upgrade_does_nothing() {
    let registry = registry();
    let guard = UpgradeGuard::new();
    let held = guard.clone();
    let app = Router::new()
        .route("/chat", get(async move || (StatusCode::BAD_REQUEST, Extension(guard.clone()))))
        .metered(&registry)
        .unwrap();
    ask(&app, Method::GET, "/chat").await;
    assert_eq!(outcomes(&registry, "/chat"), (0.0, one("complete")));
    drop(held);
    assert_eq!(outcomes(&registry, "/chat"), (0.0, one("complete")));
}

/// In a router of axum's own, where nothing of Talea is inside of what catches the panic.
#[tokio::test]
async fn a_caught_panic_is_known_by_its_response() {
    let sorry = |_: Box<dyn std::any::Any + Send>| (StatusCode::INTERNAL_SERVER_ERROR, "sorry");
    let says = move |panic| {
        let mut response = sorry(panic).into_response();
        response.extensions_mut().insert(CaughtPanic);
        response
    };
    let panics =
        || get_of_axum(async || -> &'static str { std::panic::resume_unwind(Box::new(1)) });
    let registry = registry();
    let app = axum::Router::new()
        .route("/default", panics().layer(CatchPanicLayer::new()))
        .route("/says", panics().layer(CatchPanicLayer::custom(says)))
        .route(
            "/silent",
            panics().layer(CatchPanicLayer::custom(move |it| sorry(it).into_response())),
        )
        .route(
            "/another",
            get_of_axum(async || (StatusCode::INTERNAL_SERVER_ERROR, "Database failure")),
        )
        .route("/well", get_of_axum(async || "Service panicked"))
        .layer(talea_http::axum::Layer::new(&registry).unwrap());
    for (path, outcome, text) in [
        ("/default", "panicked", "Service panicked"),
        ("/says", "panicked", "sorry"),
        ("/silent", "complete", "sorry"),
        ("/another", "complete", "Database failure"),
        ("/well", "complete", "Service panicked"),
    ] {
        assert_eq!(body(ask(&app, Method::GET, path).await).await, text);
        assert_eq!(outcomes(&registry, path), (0.0, one(outcome)), "{path}");
    }
}

#[tokio::test]
async fn a_listed_route_takes_no_credit_for_what_the_fallback_answers() {
    let registry = registry();
    let layer = talea_http::axum::Layer::new(&registry).unwrap();
    let app = axum::Router::new()
        .route("/items", get_of_axum(async || "items"))
        .fallback(async || "anything")
        .layer(layer.routes(&[("GET", "/items"), ("GET", "/gone")]).unwrap());
    for path in ["/items", "/gone", "/nowhere"] {
        ask(&app, Method::GET, path).await;
    }
    assert_eq!(requests(&registry, "GET", "/items", "2xx"), Some(1.0));
    assert_eq!(requests(&registry, "GET", "/gone", "2xx"), Some(0.0));
    assert_eq!(requests(&registry, "_OTHER", "_unmatched", "2xx"), Some(2.0));
}

/// Asks over a real connection, and reads all of the answer.
async fn ask_over_tcp(app: &axum::Router, request: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = app.clone();
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("{request}Host: here\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    server.abort();
    let _ = server.await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// Their length is in the head, and their body does not say it.
#[tokio::test]
async fn files_that_are_sent_whole_are_complete() {
    let folder = std::env::temp_dir().join(format!("talea-http-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.txt"), "x".repeat(100_000)).unwrap();
    let get_a = "GET /files/a.txt HTTP/1.1\r\n";
    for (request, status, is_compressed) in [
        (get_a.to_owned(), "200", false),
        (format!("{get_a}Range: bytes=10-49999\r\n"), "206", false),
        (format!("{get_a}If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n"), "304", false),
        ("HEAD /files/a.txt HTTP/1.1\r\n".to_owned(), "200", false),
        (format!("{get_a}Accept-Encoding: gzip\r\n"), "200", true),
    ] {
        let registry = registry();
        let files = axum::Router::new()
            .nest_service("/files", tower_http::services::ServeDir::new(&folder))
            .layer(talea_http::axum::Layer::new(&registry).unwrap())
            .layer(tower_http::compression::CompressionLayer::new());
        let answer = ask_over_tcp(&files, &request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert_eq!(answer.contains("content-encoding: gzip"), is_compressed);
        let snapshot = registry.snapshot();
        let counts = ["complete", "aborted"].map(|outcome| {
            let labels = [("outcome", outcome)];
            let all = snapshot.select("http_request_outcomes_total", &labels);
            all.filter_map(|series| series.as_f64()).sum::<f64>()
        });
        assert_eq!(counts, [1.0, 0.0], "{request}");
        let in_flight = snapshot.select("http_requests_in_flight", &[]);
        assert_eq!(in_flight.filter_map(|series| series.as_f64()).sum::<f64>(), 0.0);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_websocket_is_in_flight_until_it_closes() {
    use futures_util::{SinkExt, StreamExt};
    let registry = registry();
    let app = Router::new()
        .route(
            "/chat",
            get(async |upgrade: axum::extract::WebSocketUpgrade| {
                let guard = UpgradeGuard::new();
                let held = guard.clone();
                let response = upgrade.on_upgrade(async move |mut socket| {
                    let _held = held;
                    while let Some(Ok(message)) = socket.recv().await {
                        let _ = socket.send(message).await;
                    }
                });
                (Extension(guard), response)
            }),
        )
        .metered(&registry)
        .unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let url = format!("ws://{address}/chat");
    let (mut socket, _) = tokio_tungstenite::client_async(url, socket).await.unwrap();
    socket.send("hello".into()).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap().into_text().unwrap(), "hello");
    assert_eq!(outcomes(&registry, "/chat"), (1.0, vec![]));
    socket.close(None).await.unwrap();
    while socket.next().await.is_some_and(|message| message.is_ok()) {}
    // The server's task ends when it sees that.
    while outcomes(&registry, "/chat").0 > 0.0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(outcomes(&registry, "/chat"), (0.0, one("complete")));
    server.abort();
}
