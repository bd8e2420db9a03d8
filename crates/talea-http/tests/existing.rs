//! A router that exists already, metered from outside.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use http_body_util::BodyExt;
use talea::{Registry, Snapshot};
use talea_http::axum::{Layer, meter, meter_by};
use talea_http::{Convention, Opts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::util::MapRequestLayer;
use tower::{Layer as _, ServiceExt, service_fn};
use tower_http::timeout::TimeoutLayer;

async fn list() -> &'static str {
    "items"
}

async fn answer(_: Request) -> Result<Response, Infallible> {
    Ok(Response::new(Body::from("answered")))
}

/// The same routes by axum's router and by Talea's.
macro_rules! app {
    ($router:path, $routing:path) => {{
        use $router as Router;
        use $routing::{any, get, post};
        let items = Router::new()
            .route("/", get(list).post(list))
            .route("/{id}", get(list).delete(list))
            .layer(TimeoutLayer::with_status_code(
                StatusCode::REQUEST_TIMEOUT,
                std::time::Duration::from_secs(3600),
            ));
        Router::new()
            .route("/", get(list))
            .route("/any", any(list))
            .route("/head", get(list).head(list))
            .route("/own-rest", post(list).fallback(list))
            .route("/files/{*path}", get(list))
            .route("/a/{b}/c/{d}", get(list))
            .route_service("/service", service_fn(answer))
            .nest_service("/nested", service_fn(answer))
            .nest("/items", items)
            .merge(Router::new().route("/merged", post(list)))
            .fallback(async || StatusCode::NOT_FOUND)
    }};
}

fn existing() -> axum::Router {
    app!(axum::Router, axum::routing)
}

fn declared() -> talea_http::axum::Router {
    app!(talea_http::axum::Router, talea_http::axum)
}

const PATHS: [&str; 16] = [
    "/",
    "/any",
    "/head",
    "/own-rest",
    "/files/a/b",
    "/a/1/c/2",
    "/service",
    "/nested",
    "/nested/",
    "/nested/a/b",
    "/items",
    "/items/7",
    "/items/7/8",
    "/merged",
    "/nowhere",
    "/files/",
];

/// All series but those of durations' sums and buckets, with their values.
fn lines(snapshot: &Snapshot) -> BTreeSet<String> {
    let text = snapshot.to_text();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.starts_with("talea_"));
    let lines = lines.filter(|line| !line.contains("_bucket{") && !line.contains("seconds_sum{"));
    lines.map(str::to_owned).collect()
}

fn request(method: &Method, path: &str) -> Request {
    Request::builder().method(method).uri(path).body(Body::empty()).unwrap()
}

#[tokio::test]
async fn a_router_that_exists_is_told_as_one_that_is_declared() {
    for convention in [Convention::Prometheus, Convention::OpenTelemetry, Convention::Servant] {
        let opts = || Opts::new().convention(convention);
        let [by_layer, by_router] = [(); 2].map(|()| Registry::for_test().unwrap());
        let existing = meter_by(existing(), &opts().register(&by_layer).unwrap());
        let declared = declared().metered_by(&opts().register(&by_router).unwrap());
        let same = || {
            let (found, expected) = (lines(&by_layer.snapshot()), lines(&by_router.snapshot()));
            let missing: Vec<_> = expected.difference(&found).collect();
            let more: Vec<_> = found.difference(&expected).collect();
            assert!(missing.is_empty() && more.is_empty(), "{missing:#?} {more:#?}");
            found
        };
        // All series are there before the first request.
        let before = same();
        assert!(before.iter().all(|line| line.ends_with(" 0")));
        for path in PATHS {
            for method in ["GET", "HEAD", "POST", "DELETE", "PUT", "OPTIONS", "ODD"] {
                let method: Method = method.parse().unwrap();
                let answer = declared.clone().oneshot(request(&method, path)).await.unwrap();
                let expected = (answer.status(), answer.into_body().collect().await.unwrap());
                let answer = existing.clone().oneshot(request(&method, path)).await.unwrap();
                assert_eq!(answer.status(), expected.0, "{method} {path}");
                let body = answer.into_body().collect().await.unwrap();
                assert_eq!(body.to_bytes(), expected.1.to_bytes(), "{method} {path}");
            }
        }
        assert_ne!(same(), before);
    }
}

#[tokio::test]
async fn a_layer_outside_of_others_reads_the_routes_too() {
    let registry = Registry::for_test().unwrap();
    let app = existing();
    let layer = Layer::new(&registry).unwrap().routes_of(&app).unwrap();
    let refuses = service_fn(async |_: Request| {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        Ok::<_, Infallible>(response)
    });
    let count = |method, route| {
        let labels = [("method", method), ("route", route), ("status", "4xx")];
        registry.snapshot().value("http_requests_total", &labels)
    };
    assert_eq!(count("GET", "/items/{id}"), Some(0.0));
    // What stands around the router answers in its place.
    layer.layer(refuses).oneshot(request(&Method::GET, "/items/7")).await.unwrap();
    assert_eq!(count("GET", "/items/{id}"), Some(1.0));
}

#[tokio::test]
async fn reading_the_routes_runs_nothing_of_the_service() {
    let runs = Arc::new(AtomicU32::new(0));
    let runs_of = || {
        let runs = Arc::clone(&runs);
        move || runs.fetch_add(1, Relaxed)
    };
    let (handler, fallback, layer) = (runs_of(), runs_of(), runs_of());
    let app = axum::Router::new()
        .route("/", axum::routing::any(move || ready(handler().to_string())))
        .fallback(move || ready(fallback().to_string()))
        .layer(MapRequestLayer::new(move |request: Request| {
            layer();
            request
        }));
    let registry = Registry::for_test().unwrap();
    let app = meter(app, &registry).unwrap();
    assert_eq!(runs.load(Relaxed), 0);
    app.oneshot(request(&Method::GET, "/")).await.unwrap();
    assert_eq!(runs.load(Relaxed), 2);
}

async fn ask(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn axum_serves_it_with_and_without_the_clients_address() {
    async fn client(ConnectInfo(address): ConnectInfo<SocketAddr>) -> String {
        address.ip().to_string()
    }
    let registry = Registry::for_test().unwrap();
    let app = existing().route("/client", axum::routing::get(client));
    let app = meter(app, &registry).unwrap();
    let listen = async || TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (plain, told) = (listen().await, listen().await);
    let addresses = [plain.local_addr().unwrap(), told.local_addr().unwrap()];
    tokio::spawn(axum::serve(plain, app.clone()).into_future());
    let with_address =
        axum::ServiceExt::<Request>::into_make_service_with_connect_info::<SocketAddr>(app.clone());
    tokio::spawn(axum::serve(told, with_address).into_future());
    assert!(ask(addresses[0], "/items/7").await.ends_with("items"));
    assert!(ask(addresses[1], "/client").await.ends_with("127.0.0.1"));
    // Inside of another layer.
    let layered = TimeoutLayer::with_status_code(
        StatusCode::REQUEST_TIMEOUT,
        std::time::Duration::from_secs(3600),
    )
    .layer(app);
    let around = listen().await;
    let address = around.local_addr().unwrap();
    let layered = axum::ServiceExt::<Request>::into_make_service(layered);
    tokio::spawn(axum::serve(around, layered).into_future());
    assert!(ask(address, "/items/8").await.ends_with("items"));
    let snapshot = registry.snapshot();
    for (route, count) in [("/items/{id}", 2.0), ("/client", 1.0)] {
        let labels = [("method", "GET"), ("route", route), ("status", "2xx")];
        assert_eq!(snapshot.value("http_requests_total", &labels), Some(count), "{route}");
    }
}
