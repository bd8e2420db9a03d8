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
use tower::service_fn;
use tower::util::BoxCloneSyncService;

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

/// Each test compares declarations, and requires that some endpoints are among those recorded.
macro_rules! mirrors {
    ($($name:ident: $([$($route:literal),*] { $($declaration:tt)* })+)*) => {$(
        #[tokio::test]
        async fn $name() {
            $(
                let routes = assert_equal(both! { $($declaration)* }).await;
                let expected: &[&str] = &[$($route),*];
                for one in expected {
                    assert!(routes.iter().any(|route| route == one), "{one} of {routes:?}");
                }
            )+
        }
    )*};
}

async fn named(path: Option<MatchedPath>, method: Method, uri: Uri) -> String {
    format!("{method} {} {uri}", path.as_ref().map_or("none", |path| path.as_str()))
}

/// A service that answers with its name and the path that it sees.
fn service(name: &'static str) -> BoxCloneSyncService<Request, Response, Infallible> {
    BoxCloneSyncService::new(service_fn(move |request: Request| {
        ready(Ok(format!("{name} {}", request.uri().path()).into_response()))
    }))
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

async fn sorry() -> (StatusCode, &'static str) {
    (StatusCode::METHOD_NOT_ALLOWED, "sorry")
}

mirrors! {
    methods_and_filters:
        ["DELETE /x 2xx", "GET /y 2xx", "TRACE /y 2xx", "HEAD /items/{id} 2xx", "_OTHER /y 4xx",
         "_OTHER _unmatched 4xx"] {
            Router::new()
                .route("/x", get(named).post(named).delete(named).options(named))
                .route(
                    "/y",
                    on(MethodFilter::PUT.or(MethodFilter::GET).or(MethodFilter::TRACE), named),
                )
                .route("/items/{id}", head(named).get(named).connect(named).patch(named))
        }
    any_method:
        ["GET /x 2xx", "HEAD /x 2xx", "PUT /x 2xx", "CONNECT /x 2xx", "QUERY /x 2xx",
         "_OTHER /x 2xx"] {
            Router::new()
                .route("/x", any(named))
                .route("/y", any(named).post(async || "posted"))
                .route("/items/{id}", any_service(service("any")))
                .route_service("/files/{*path}", service("files"))
        }
    services_by_method:
        [] {
            Router::new()
                .route("/x", get_service(service("got")).post(named).put_service(service("put")))
                .route(
                    "/y",
                    on_service(MethodFilter::PATCH.or(MethodFilter::DELETE), service("on")),
                )
                .route("/", delete_service(service("root")).fallback_service(service("else")))
                .fallback_service(service("lost"))
        }
    nested_services_and_wildcards:
        ["GET /api/{*rest} 2xx", "GET /files/{*path} 2xx"] {
            Router::new()
                .nest_service("/api", service("api"))
                .route("/files/{*path}", get(named))
                .route("/items/{id}", get(named))
        }
    layers_on_methods:
        [] {
            Router::new()
                .route("/x", get(named).layer(mark!("a")).post(named))
                .route("/y", get(named).layer(mark!("a")).route_layer(mark!("b")).put(named))
                .route(
                    "/items/{id}",
                    get(named).fallback(named).layer(mark!("c")).layer(mark!("d")),
                )
                .route("/", any(named).layer(mark!("e")))
        }
    layers_on_methods_and_on_the_router:
        [] {
            Router::new()
                .route("/x", get(named).layer(mark!("a")).post(named))
                .layer(mark!("r"))
                .route("/y", get(named).post(named).route_layer(mark!("b")).put(named))
                .route_layer(mark!("s"))
                .route("/items/{id}", get(named).fallback(named).layer(mark!("c")))
                .fallback(named)
                .layer(mark!("t"))
                .route("/", get(named))
        }
    layers_around_services_and_nests:
        ["GET /api/x 2xx", "_OTHER _unmatched 2xx", "_OTHER _unmatched 4xx", "_OTHER /api/x 4xx"] {
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
        }
    fallbacks_of_nested_and_merged_routers:
        ["GET /api/x 2xx", "_OTHER _unmatched 2xx"] {
            let deep = Router::new().route("/x", get(named)).fallback(async || "deep");
            let inner = Router::new().nest("/x", deep).fallback(async || "inner");
            Router::new()
                .route("/y", get(named))
                .nest("/api", inner.route("/x", get(named)))
                .route_layer(mark!("r"))
        }
        [] {
            let deep = Router::new().fallback(async || "deep");
            let inner = Router::new().nest("/x", deep).route("/x", get(named));
            Router::new().nest("/api", inner).layer(mark!("o")).merge(Router::new())
        }
    method_routers_merge:
        ["GET /items/{id} 2xx"] {
            Router::new()
                .route("/items/{id}", post(named).layer(mark!("m")).merge(any(named)).layer(mark!("n")))
                .route("/x", get(named).merge(post(named).layer(mark!("p"))))
                .route("/y", get(named).layer(mark!("g")).merge(put(named).fallback(named)))
                .layer(mark!("r"))
        }
    one_path_in_two_calls:
        ["GET /x 2xx", "POST /x 2xx", "_OTHER /x 4xx"] {
            Router::new().route("/x", get(named)).route("/x", post(named)).layer(mark!("r"))
        }
        [] {
            Router::new().route("/x", get(named)).route("/x", post(named).fallback(named))
        }
        [] {
            Router::new().route("/x", get(named)).layer(mark!("a")).route("/x", post(named))
        }
    methods_without_a_handler:
        [] {
            Router::new()
                .route("/x", get(named))
                .route("/y", get(named).fallback(named))
                .method_not_allowed_fallback(sorry)
                .route("/", get(named))
        }
        [] {
            Router::new()
                .route("/x", get(named).layer(mark!("m")))
                .layer(mark!("r"))
                .method_not_allowed_fallback(sorry)
        }
        [] {
            Router::new()
                .route("/x", get(named))
                .method_not_allowed_fallback(sorry)
                .layer(mark!("r"))
        }
    a_fallback_that_is_reset:
        [] {
            Router::new().route("/x", get(named)).fallback(named).reset_fallback()
        }
        [] {
            Router::new()
                .route("/x", get(named))
                .fallback(named)
                .merge(Router::new().route("/y", get(named)).fallback(named).reset_fallback())
        }
        [] {
            let inner = Router::new().route("/x", get(named)).fallback(named);
            Router::new().nest("/api", inner).reset_fallback()
        }
    state_and_extensions:
        [] {
            let hello = async |State(name): State<&'static str>, Extension(n): Extension<u8>| {
                format!("{name} {n}")
            };
            Router::new()
                .route("/x", get(hello))
                .route("/y", get(async |State(name): State<&'static str>| name).with_state("own"))
                .nest("/api", Router::new().route("/x", post(hello)).with_state("inner"))
                .layer(Extension(7u8))
                .fallback(async |State(name): State<&'static str>| name)
                .with_state("outer")
        }
}

#[test]
#[should_panic = "there is no route that a route layer could be put around"]
fn a_route_layer_before_all_routes_is_refused() {
    let router = talea_http::axum::Router::<()>::new().fallback(named);
    drop(router.route_layer(mark!("r")).route("/x", talea_http::axum::get(named)));
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
