//! An existing router, metered from outside.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use http_body_util::BodyExt;
use talea::Registry;
use talea_http::axum::{Layer, Metered, meter, meter_by};
use talea_http::{Convention, Opts};
use tokio::net::TcpListener;
use tower::util::{BoxCloneSyncService, MapRequestLayer};
use tower::{Layer as _, ServiceBuilder, ServiceExt, service_fn};
use tower_http::normalize_path::NormalizePathLayer;
use tower_http::timeout::TimeoutLayer;

use crate::support::client::{get, loopback};
use crate::support::counts::{lines, registry, requests};
use crate::support::requests::request;

async fn list() -> &'static str {
    "items"
}

async fn respond(_: Request) -> Result<Response, Infallible> {
    Ok(Response::new(Body::from("response")))
}

/// A time limit that is never reached.
fn limit() -> TimeoutLayer {
    TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, Duration::from_secs(3600))
}

macro_rules! app {
    ($router:path, $routing:path) => {{
        use $router as Router;
        use $routing::{any, get, post};
        let items = Router::new()
            .route("/", get(list).post(list))
            .route("/{id}", get(list).delete(list))
            .layer(limit());
        Router::new()
            .route("/", get(list))
            .route("/any", any(list))
            .route("/any-else", any(list).fallback(list))
            .route("/head", get(list).head(list))
            .route("/own-rest", post(list).fallback(list))
            .route("/files/{*path}", get(list))
            .route("/a/{b}/c/{d}", get(list))
            .route_service("/service", service_fn(respond))
            .nest_service("/nested", service_fn(respond))
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

const PATHS: [&str; 17] = [
    "/",
    "/any",
    "/any-else",
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

#[tokio::test]
async fn an_existing_router_has_the_series_of_a_declared_one() {
    for convention in [Convention::Prometheus, Convention::OpenTelemetry, Convention::Servant] {
        let opts = || Opts::new().convention(convention);
        let [by_layer, by_router] = [(); 2].map(|()| registry());
        let existing = meter_by(existing(), &opts().register(&by_layer).unwrap());
        let declared = declared().metered_by(&opts().register(&by_router).unwrap());
        let same = || {
            let (found, expected) = (lines(&by_layer.snapshot()), lines(&by_router.snapshot()));
            let missing: Vec<_> = expected.difference(&found).collect();
            let more: Vec<_> = found.difference(&expected).collect();
            assert!(missing.is_empty() && more.is_empty(), "{missing:#?} {more:#?}");
            found
        };
        // All series exist before the first request.
        let before = same();
        assert!(before.iter().all(|line| line.ends_with(" 0")));
        for path in PATHS {
            for method in ["GET", "HEAD", "POST", "DELETE", "PUT", "OPTIONS", "ODD"] {
                let response = declared.clone().oneshot(request(method, path)).await.unwrap();
                let expected = (response.status(), response.into_body().collect().await.unwrap());
                let response = existing.clone().oneshot(request(method, path)).await.unwrap();
                assert_eq!(response.status(), expected.0, "{method} {path}");
                let body = response.into_body().collect().await.unwrap();
                assert_eq!(body.to_bytes(), expected.1.to_bytes(), "{method} {path}");
            }
        }
        assert_ne!(same(), before);
    }
}

#[test]
fn a_route_of_every_method_has_series_before_its_first_request() {
    type Meter = fn(&Registry);
    let meters: [(&str, Meter); 3] = [
        ("declared", |registry| drop(declared().metered(registry).unwrap())),
        ("existing", |registry| drop(meter(existing(), registry).unwrap())),
        ("listed", |registry| {
            let routes = ["/any", "/service", "/nested/{*rest}"].map(|route| ("ANY", route));
            let _listed = Layer::new(registry).unwrap().routes(&routes).unwrap();
        }),
    ];
    for (name, meter) in meters {
        let registry = registry();
        meter(&registry);
        for route in ["/any", "/service", "/nested/{*rest}"] {
            for status in ["2xx", "4xx", "5xx"] {
                assert_eq!(requests(&registry, "GET", route, status), Some(0.0), "{name} {route}");
            }
            // Each method that it may get would be a page of its own.
            assert_eq!(requests(&registry, "POST", route, "2xx"), None, "{name} {route}");
        }
    }
}

#[tokio::test]
async fn a_layer_that_rewrites_requests_is_outside_of_the_meter() {
    let normalize = NormalizePathLayer::trim_trailing_slash();
    let overridden = MapRequestLayer::new(|mut request: Request| {
        if request.headers_mut().remove("x-http-method-override").is_some() {
            *request.method_mut() = Method::DELETE;
        }
        request
    });
    let rewrites = || ServiceBuilder::new().layer(normalize).layer(overridden.clone());
    for layered in [false, true] {
        let registry = registry();
        let app = existing();
        let app = match layered {
            false => BoxCloneSyncService::new(rewrites().service(meter(app, &registry).unwrap())),
            true => {
                let meter = Layer::new(&registry).unwrap().routes_of(&app).unwrap();
                BoxCloneSyncService::new(rewrites().service(meter.layer(limit().layer(app))))
            }
        };
        let mut overridden = request("POST", "/items/7/");
        overridden.headers_mut().insert("x-http-method-override", "DELETE".parse().unwrap());
        for request in [request("GET", "/items/7/"), overridden] {
            assert_eq!(app.clone().oneshot(request).await.unwrap().status(), StatusCode::OK);
        }
        for method in ["GET", "DELETE"] {
            assert_eq!(requests(&registry, method, "/items/{id}", "2xx"), Some(1.0), "{method}");
        }
        assert_eq!(registry.snapshot().total("http_requests_total", &[]), Some(2.0));
    }
}

#[tokio::test]
async fn a_layer_around_other_layers_reads_the_routes() {
    let registry = registry();
    let app = existing();
    let layer = Layer::new(&registry).unwrap().routes_of(&app).unwrap();
    let refuses = service_fn(async |_: Request| {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        Ok::<_, Infallible>(response)
    });
    assert_eq!(requests(&registry, "GET", "/items/{id}", "4xx"), Some(0.0));
    // A service around the router responds in its place.
    layer.layer(refuses).oneshot(request("GET", "/items/7")).await.unwrap();
    assert_eq!(requests(&registry, "GET", "/items/{id}", "4xx"), Some(1.0));
}

#[tokio::test]
async fn a_router_inside_of_another_is_metered_at_its_own_routes() {
    type Outer = fn(Metered<axum::Router>) -> axum::Router;
    let [routed, nested, fallback]: [Outer; 3] = [
        |app| {
            let outer = axum::Router::new().route_service("/", app.clone());
            outer.route_service("/{*rest}", app)
        },
        |app| axum::Router::new().nest_service("/api", app),
        |app| axum::Router::new().fallback_service(app),
    ];
    for (prefix, outer) in [("", routed), ("/api", nested), ("", fallback)] {
        let registry = registry();
        let outer = outer(meter(existing(), &registry).unwrap());
        for (path, route) in [("/items/7", "/items/{id}"), ("/", "/"), ("/nowhere/7", "_unmatched")]
        {
            let uri = format!("{prefix}{path}");
            outer.clone().oneshot(request("GET", &uri)).await.unwrap();
            let found = registry.snapshot().total("http_requests_total", &[("route", route)]);
            assert_eq!(found, Some(1.0), "{uri}");
        }
    }
}

#[tokio::test]
async fn axum_serves_it_with_and_without_the_clients_address() {
    async fn client(ConnectInfo(address): ConnectInfo<SocketAddr>) -> String {
        address.ip().to_string()
    }
    let registry = registry();
    let app = existing().route("/client", axum::routing::get(client));
    let app = meter(app, &registry).unwrap();
    let listen = async || TcpListener::bind(loopback()).await.unwrap();
    let [plain, with_address, layered] = [listen().await, listen().await, listen().await];
    let [plain_at, with_address_at, layered_at] =
        [&plain, &with_address, &layered].map(|listener| listener.local_addr().unwrap());
    tokio::spawn(axum::serve(plain, app.clone()).into_future());
    let service =
        axum::ServiceExt::<Request>::into_make_service_with_connect_info::<SocketAddr>(app.clone());
    tokio::spawn(axum::serve(with_address, service).into_future());
    let service = axum::ServiceExt::<Request>::into_make_service(limit().layer(app));
    tokio::spawn(axum::serve(layered, service).into_future());
    assert_eq!(get(plain_at, "/items/7", &[]).await.text(), "items");
    assert_eq!(get(with_address_at, "/client", &[]).await.text(), "127.0.0.1");
    assert_eq!(get(layered_at, "/items/8", &[]).await.text(), "items");
    for (route, count) in [("/items/{id}", 2.0), ("/client", 1.0)] {
        assert_eq!(requests(&registry, "GET", route, "2xx"), Some(count), "{route}");
    }
}
