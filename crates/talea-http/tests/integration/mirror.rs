//! Talea's router compared with axum's: equal declarations give equal responses, metered or not,
//! and each request is recorded once.

use std::convert::Infallible;
use std::future::ready;

use axum::Extension;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodFilter;
use talea::Value;
use tower::{Service, service_fn};

use crate::support::counts::{recorded, registry};
use crate::support::requests::{ask, text};

/// One declaration by axum's router, and twice by Talea's.
macro_rules! both {
    ($($declaration:tt)*) => {{
        let theirs: axum::Router = {
            #[allow(unused_imports)]
            use axum::{Router, routing::*};
            $($declaration)*
        };
        let ours = || -> talea_http::axum::Router {
            #[allow(unused_imports)]
            use talea_http::axum::*;
            $($declaration)*
        };
        (theirs, ours(), ours().unmetered())
    }};
}

const METHODS: [&str; 13] = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "QUERY",
    "PROPFIND", "X-ODD", REFUSED,
];

/// The method of requests that [`marked`] answers itself.
const REFUSED: &str = "X-REFUSED";

const PATHS: [&str; 14] = [
    "/",
    "/x",
    "/x/",
    "/y",
    "/items/7",
    "/items/7/8",
    "/files/a/b.txt",
    "/files",
    "/files/",
    "/api",
    "/api/x",
    "/api/x/y",
    "/api/nowhere",
    "/nowhere",
];

/// The parts of a response that a client sees.
async fn response(app: &axum::Router, method: &str, path: &str) -> (StatusCode, String, String) {
    let answer = ask(app, method, path).await;
    let headers = answer.headers();
    let header = |name| headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
    // The server adds a length of 0.
    let length = header("content-length");
    let length = if length == "0" { String::new() } else { length };
    let headers = [header("allow"), header("marked"), length].join(";");
    (answer.status(), headers, text(answer).await)
}

/// Sends requests of all methods and paths to axum's router and to Talea's, metered and unmetered,
/// and compares the responses. Returns the methods, routes and statuses that were recorded.
async fn assert_equal(
    (theirs, ours, unmetered): (axum::Router, talea_http::axum::Router, axum::Router),
) -> Vec<String> {
    let registry = registry();
    let ours = ours.metered(&registry).unwrap();
    let mut asked = 0;
    for path in PATHS {
        for method in METHODS {
            let expected = response(&theirs, method, path).await;
            assert_eq!(response(&ours, method, path).await, expected, "{method} {path}");
            let unmetered = response(&unmetered, method, path).await;
            assert_eq!(unmetered, expected, "{method} {path}, unmetered");
            asked += 1;
            assert_eq!(recorded(&registry), asked, "{method} {path} is recorded once");
        }
    }
    let snapshot = registry.snapshot();
    let requests = snapshot.families().find(|family| family.name() == "http_requests_total");
    let mut routes = Vec::new();
    for series in requests.unwrap().series() {
        if series.value() != Value::Unsigned(0) {
            let labels = series.labels();
            routes.push(format!("{} {} {}", labels[0].1, labels[1].1, labels[2].1));
        }
    }
    routes.sort();
    routes.dedup();
    routes
}

fn assert_contains(routes: &[String], expected: &[&str]) {
    for one in expected {
        assert!(routes.iter().any(|route| route == one), "{one} is not among {routes:?}");
    }
}

async fn named(path: Option<MatchedPath>, method: Method, uri: Uri) -> String {
    format!("{method} {} {uri}", path.as_ref().map_or("none", |path| path.as_str()))
}

/// A service that answers with its name and the path that it sees.
fn service(
    name: &'static str,
) -> impl Service<
    Request,
    Response = Response,
    Error = Infallible,
    Future = impl Send + Future<Output = Result<Response, Infallible>>,
> + Clone
+ Send
+ Sync {
    service_fn(move |request: Request| {
        ready(Ok(format!("{name} {}", request.uri().path()).into_response()))
    })
}

/// A layer that marks responses, and refuses requests with the method [`REFUSED`].
macro_rules! mark {
    ($mark:expr) => {
        from_fn_with_state($mark, marked)
    };
}

async fn marked(State(mark): State<&'static str>, request: Request, next: Next) -> Response {
    let mut response = match request.method().as_str() == REFUSED {
        true => StatusCode::UNAUTHORIZED.into_response(),
        false => next.run(request).await,
    };
    let marked = response.headers().get("marked").map_or("", |marked| marked.to_str().unwrap());
    let marked = format!("{mark}{marked}").parse().unwrap();
    response.headers_mut().insert("marked", marked);
    response
}

#[tokio::test]
async fn methods_and_filters() {
    let routes = assert_equal(both! {
        Router::new()
            .route("/x", get(named).post(named).delete(named).options(named))
            .route("/y", on(MethodFilter::PUT.or(MethodFilter::GET).or(MethodFilter::TRACE), named))
            .route("/items/{id}", head(named).get(named).connect(named).patch(named))
    })
    .await;
    assert_contains(
        &routes,
        &[
            "DELETE /x 2xx",
            "GET /y 2xx",
            "TRACE /y 2xx",
            "HEAD /items/{id} 2xx",
            "_OTHER /y 4xx",
            "_OTHER _unmatched 4xx",
        ],
    );
}

#[tokio::test]
async fn any_method() {
    let routes = assert_equal(both! {
        Router::new()
            .route("/x", any(named))
            .route("/y", any(named).post(async || "posted"))
            .route("/items/{id}", any_service(service("any")))
            .route_service("/files/{*path}", service("files"))
    })
    .await;
    for method in ["GET", "HEAD", "PUT", "CONNECT", "QUERY", "_OTHER"] {
        assert_contains(&routes, &[&format!("{method} /x 2xx")]);
    }
}

#[tokio::test]
async fn services_by_method() {
    assert_equal(both! {
        Router::new()
            .route("/x", get_service(service("got")).post(named).put_service(service("put")))
            .route("/y", on_service(MethodFilter::PATCH.or(MethodFilter::DELETE), service("on")))
            .route("/", delete_service(service("root")).fallback_service(service("else")))
            .fallback_service(service("lost"))
    })
    .await;
}

#[tokio::test]
async fn nested_services_and_wildcards() {
    let routes = assert_equal(both! {
        Router::new()
            .nest_service("/api", service("api"))
            .route("/files/{*path}", get(named))
            .route("/items/{id}", get(named))
    })
    .await;
    assert_contains(&routes, &["GET /api/{*rest} 2xx", "GET /files/{*path} 2xx"]);
}

#[tokio::test]
async fn layers_on_methods() {
    assert_equal(both! {
        Router::new()
            .route("/x", get(named).layer(mark!("a")).post(named))
            .route("/y", get(named).post(named).route_layer(mark!("b")).put(named))
            .route("/items/{id}", get(named).fallback(named).layer(mark!("c")).layer(mark!("d")))
            .route("/", any(named).layer(mark!("e")))
    })
    .await;
}

#[tokio::test]
async fn layers_on_methods_and_on_the_router() {
    assert_equal(both! {
        Router::new()
            .route("/x", get(named).layer(mark!("a")).post(named))
            .layer(mark!("r"))
            .route("/y", get(named).post(named).route_layer(mark!("b")).put(named))
            .route_layer(mark!("s"))
            .route("/items/{id}", get(named).fallback(named).layer(mark!("c")))
            .fallback(named)
            .layer(mark!("t"))
            .route("/", get(named))
    })
    .await;
}

#[tokio::test]
async fn layers_of_which_some_are_shared() {
    let marks = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    for layers in 0..marks.len() {
        let marks = &marks[..layers];
        assert_equal(both! {{
            let x = marks.iter().fold(get(named).post(named), |x, mark| x.layer(mark!(*mark)));
            let y = marks.iter().fold(put(named), |y, mark| y.route_layer(mark!(*mark)));
            let inner = Router::new().route("/x", x.patch(named)).fallback(named);
            let inner = marks.iter().fold(inner, |inner, mark| inner.layer(mark!(*mark)));
            let outer = Router::new().nest("/api", inner).route("/y", y.delete(named));
            marks.iter().fold(outer, |outer, mark| outer.layer(mark!(*mark)))
        }})
        .await;
    }
}

#[tokio::test]
async fn layers_around_services_and_nests() {
    let routes = assert_equal(both! {
        Router::new()
            .nest(
                "/api",
                Router::new()
                    .route("/", get(named))
                    .route("/x", get(named).layer(mark!("a")))
                    .nest_service("/x/y", service("deep"))
                    .fallback(named)
                    .layer(mark!("n")),
            )
            .nest_service("/files", service("files"))
            .fallback(async || (StatusCode::IM_A_TEAPOT, "outer"))
            .layer(mark!("o"))
    })
    .await;
    assert_contains(
        &routes,
        &["GET /api/x 2xx", "_OTHER _unmatched 2xx", "_OTHER _unmatched 4xx", "_OTHER /api/x 4xx"],
    );
}

#[tokio::test]
async fn method_routers_merge() {
    assert_equal(both! {
        Router::new()
            .route("/x", get(named).merge(post(named).layer(mark!("p"))))
            .route("/y", get(named).layer(mark!("g")).merge(put(named).fallback(named)))
            .layer(mark!("r"))
    })
    .await;
}

#[tokio::test]
async fn one_path_in_two_calls() {
    let routes = assert_equal(both! {
        Router::new().route("/x", get(named)).route("/x", post(named)).layer(mark!("r"))
    })
    .await;
    assert_contains(&routes, &["GET /x 2xx", "POST /x 2xx", "_OTHER /x 4xx"]);
    assert_equal(both! {
        Router::new().route("/x", get(named)).route("/x", post(named).fallback(named))
    })
    .await;
    assert_equal(both! {
        Router::new().route("/x", get(named)).layer(mark!("a")).route("/x", post(named))
    })
    .await;
}

#[tokio::test]
async fn methods_without_a_handler() {
    let sorry = async || (StatusCode::METHOD_NOT_ALLOWED, "sorry");
    assert_equal(both! {
        Router::new()
            .route("/x", get(named))
            .route("/y", get(named).fallback(named))
            .method_not_allowed_fallback(sorry)
            .route("/", get(named))
    })
    .await;
    assert_equal(both! {
        Router::new()
            .route("/x", get(named).layer(mark!("m")))
            .layer(mark!("r"))
            .method_not_allowed_fallback(sorry)
    })
    .await;
    assert_equal(both! {
        Router::new()
            .route("/x", get(named))
            .method_not_allowed_fallback(sorry)
            .layer(mark!("r"))
    })
    .await;
}

#[tokio::test]
async fn a_fallback_that_is_reset() {
    assert_equal(both! {
        Router::new().route("/x", get(named)).fallback(named).reset_fallback()
    })
    .await;
    assert_equal(both! {
        Router::new()
            .route("/x", get(named))
            .fallback(named)
            .merge(Router::new().route("/y", get(named)).fallback(named).reset_fallback())
    })
    .await;
}

#[tokio::test]
async fn state_and_extensions() {
    let hello =
        async |State(name): State<&'static str>, Extension(n): Extension<u8>| format!("{name} {n}");
    assert_equal(both! {
        Router::new()
            .route("/x", get(hello))
            .route("/y", get(async |State(name): State<&'static str>| name).with_state("own"))
            .nest("/api", Router::new().route("/x", post(hello)).with_state("inner"))
            .layer(Extension(7u8))
            .fallback(async |State(name): State<&'static str>| name)
            .with_state("outer")
    })
    .await;
}

#[tokio::test]
async fn a_metered_router_can_be_nested_in_axums() {
    let registry = registry();
    let inner = talea_http::axum::Router::new()
        .route("/x", talea_http::axum::get(named))
        .metered(&registry)
        .unwrap();
    let app = axum::Router::new().nest("/api", inner).layer(mark!("o"));
    let (status, headers, body) = response(&app, "GET", "/api/x").await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "GET /api/x /x"));
    assert!(headers.contains(";o;"), "{headers}");
    assert_eq!(recorded(&registry), 1);
}
