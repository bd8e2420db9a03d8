//! Talea's router compared with axum's: equal declarations give equal responses, metered or not,
//! and each request is recorded once.

use std::convert::Infallible;
use std::future::ready;
use std::panic::{AssertUnwindSafe, catch_unwind};

use axum::error_handling::HandleErrorLayer;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodFilter;
use axum::{BoxError, Extension};
use proptest::prelude::*;
use talea::Value;
use tower::util::BoxCloneSyncService;
use tower::{ServiceExt, service_fn};

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

/// The method of requests that [`marked`] responds to itself.
const REFUSED: &str = "X-REFUSED";

const PATHS: [&str; 20] = [
    "/",
    "/x",
    "/x/",
    "/y",
    "/y/x",
    "/items/7",
    "/items/7/8",
    "/files/a/b.txt",
    "/files",
    "/files/",
    "/api",
    "/api/x",
    "/api/x/y",
    "/api/nowhere",
    "/api/",
    "/:x",
    "/*y",
    "/items/a%2Fb",
    "/nowhere",
    // As in a request by CONNECT.
    "x.example:443",
];

/// The parts of a response that a client sees.
async fn response(app: &axum::Router, method: &str, path: &str) -> (StatusCode, String, String) {
    let response = ask(app, method, path).await;
    let headers = response.headers();
    let header = |name| headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
    // The server adds a length of 0.
    let length = header("content-length");
    let length = if length == "0" { String::new() } else { length };
    let headers = [header("allow"), header("marked"), length].join(";");
    (response.status(), headers, text(response).await)
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

/// A service that responds with its name and the path that it sees.
fn service(name: &'static str) -> BoxCloneSyncService<Request, Response, Infallible> {
    BoxCloneSyncService::new(service_fn(move |request: Request| {
        ready(Ok(format!("{name} {}", request.uri().path()).into_response()))
    }))
}

/// A service that fails, but not for `PUT`.
fn fails() -> BoxCloneSyncService<Request, Response, BoxError> {
    BoxCloneSyncService::new(service_fn(async |request: Request| match request.method().as_str() {
        "PUT" => Ok("put".into_response()),
        method => Err(BoxError::from(format!("{method} failed"))),
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
        ["GET /api/x 2xx", "_OTHER _unmatched 2xx", "_OTHER _unmatched 4xx"] {
            let inner = Router::new().fallback(named).merge(Router::new().route("/x", get(named)));
            Router::new().nest("/api", inner)
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
    methods_of_a_path_in_several_routers:
        ["GET /x 2xx", "POST /x 2xx", "_OTHER /x 4xx", "PUT /api/x 2xx"] {
            let reads = Router::new().route("/x", get(named)).route("/y", get(named));
            let writes = Router::new().route("/x", post(named)).route("/items/{id}", put(named));
            let inner = Router::new().route("/x", delete(named)).merge(Router::new().route("/x", put(named)));
            reads.merge(writes).nest("/api", inner)
        }
        ["GET /api/x 2xx", "POST /api/x 2xx"] {
            let reads = Router::new().route("/x", get(named)).layer(mark!("a")).fallback(async || "own");
            let writes = Router::new().route("/x", post(named).fallback(sorry)).layer(mark!("b"));
            Router::new()
                .nest("/api", writes.merge(reads))
                .merge(Router::new().nest("/api", Router::new().route("/x", put(named))))
                .layer(mark!("r"))
        }
        [] {
            let reads = Router::new().route("/x", get(named).layer(mark!("a")));
            let writes = Router::new().route("/x", post(named)).route_layer(mark!("b"));
            Router::new()
                .merge(reads)
                .merge(writes)
                .method_not_allowed_fallback(sorry)
                .merge(Router::new().route("/x", patch(named)))
                .route("/x", put(named).layer(mark!("c")))
        }
        [] {
            Router::new().merge(Router::new().layer(mark!("a"))).merge(Router::new().layer(mark!("b")))
        }
    clones:
        ["GET /api/x 2xx", "GET /y/x 2xx", "GET /x 2xx"] {
            let part = Router::new().route("/x", get(named)).layer(mark!("p"));
            let whole = part.clone().fallback(named);
            Router::new().nest("/api", whole.clone()).nest("/y", part.clone()).merge(part)
        }
        ["GET /x 2xx", "GET /y 2xx", "_OTHER /y 4xx"] {
            let methods = get(named).post(named).layer(mark!("m"));
            Router::new().route("/x", methods.clone()).route("/y", methods)
        }
    routers_and_method_routers_as_services:
        ["GET /api/{*rest} 2xx", "GET /api/{*rest} 4xx"] {
            let inner = Router::new().route("/", get(named)).route("/x", get(named).post(named));
            Router::new().nest_service("/api", inner.layer(mark!("i"))).layer(mark!("o"))
        }
        ["_OTHER _unmatched 2xx", "_OTHER _unmatched 4xx", "GET /y 2xx"] {
            let inner = Router::new().route("/x", get(named)).route("/items/{id}", any(named));
            Router::new().route("/y", get(named)).fallback_service(inner)
        }
        ["GET /api/{*rest} 2xx", "POST /x 2xx", "_OTHER _unmatched 2xx"] {
            Router::new()
                .nest_service("/api", get(named))
                .route_service("/x", post(named).layer(mark!("m")))
                .route("/y", get_service(get(named)).fallback_service(put(named)))
                .route("/items/{id}", get(get(named)).fallback(any(named)))
                .fallback(get(named).head(named))
        }
    errors_of_services_that_a_layer_handles:
        ["GET /x 5xx", "GET /y 5xx", "PUT /y 2xx"] {
            let failed = async |error: BoxError| (StatusCode::BAD_GATEWAY, error.to_string());
            Router::new()
                .route("/x", get_service(fails()).layer(HandleErrorLayer::new(failed)))
                .route(
                    "/y",
                    any_service(fails()).put_service(fails()).handle_error(failed).merge(post(named)),
                )
        }
    paths_as_axum_0_7_wrote_captures:
        ["GET /:x 2xx", "GET /*y 2xx"] {
            Router::new()
                .without_v07_checks()
                .route("/:x", get(named))
                .route_service("/*y", service("star"))
                .merge(Router::new().route("/x", get(named)))
        }
    slashes_captures_and_wildcards:
        ["GET /api/ 2xx", "GET /api/x 2xx", "GET /{first}/{second} 2xx"] {
            let inner = Router::new().route("/", get(named)).route("/x", get(named));
            Router::new()
                .nest("/api/", inner)
                .route("/{first}/{second}", get(named))
                .route("/x", get(named))
                .route("/x/", get(async || "with a slash"))
                .route("/files/{*path}", get(named).head(async || "a head of its own"))
        }
        [] {
            let inner = Router::new().route("/{second}", get(named)).fallback(async || "inner");
            Router::new().nest("/items/{id}", inner).route("/{*all}", any(named))
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

/// The message of a panic, if there is one.
fn message_of<T>(declare: impl FnOnce() -> T) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(declare)).err()?;
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    Some(text.unwrap_or_else(|| *panic.downcast::<String>().unwrap()))
}

/// Declarations that are refused by axum and by Talea's router with the same message.
macro_rules! refused {
    ($($name:ident { $($declaration:tt)* })*) => {$(
        #[test]
        fn $name() {
            let theirs = message_of(|| -> axum::Router {
                #[allow(unused_imports)]
                use axum::{Router, routing::*};
                $($declaration)*
            });
            let ours = message_of(|| -> talea_http::axum::Router {
                #[allow(unused_imports)]
                use talea_http::axum::*;
                $($declaration)*
            });
            assert!(theirs.is_some());
            assert_eq!(ours, theirs);
        }
    )*};
}

refused! {
    a_route_layer_before_all_routes_is_refused {
        Router::new().fallback(named).route_layer(mark!("r"))
    }
    a_route_layer_before_all_methods_is_refused {
        Router::new().route("/x", MethodRouter::new().fallback(named).route_layer(mark!("r")))
    }
    a_path_without_a_slash_is_refused { Router::new().route("x", get(named)) }
    an_empty_path_is_refused { Router::new().route("", get(named)) }
    a_capture_of_axum_0_7_is_refused { Router::new().route("/:x", get(named)) }
    a_wildcard_of_axum_0_7_is_refused { Router::new().nest("/*x", Router::new()) }
    a_check_of_the_outer_router_holds_for_those_it_merges {
        Router::new().merge(Router::new().without_v07_checks().route("/:x", get(named)))
    }
    two_captures_of_one_place_are_refused {
        Router::new().route("/{a}", get(named)).route("/{b}", get(named))
    }
    nesting_at_the_root_is_refused { Router::new().nest("/", Router::new()) }
    nesting_a_service_at_the_root_is_refused { Router::new().nest_service("/", get(named)) }
    nesting_at_a_wildcard_is_refused { Router::new().nest("/{*x}", Router::new()) }
    a_method_that_is_declared_twice_is_refused { Router::new().route("/x", get(named).get(named)) }
    a_service_that_is_declared_twice_is_refused {
        Router::new().route("/x", any_service(service("a")).put_service(service("b")).put(named))
    }
    methods_that_merge_into_the_same_are_refused {
        Router::new().route("/x", get(named).merge(get(named)))
    }
    fallbacks_of_methods_that_merge_are_refused {
        Router::new().route("/x", get(named).fallback(named).merge(any(named)))
    }
    a_method_of_a_path_that_is_declared_twice_is_refused {
        Router::new().route("/x", get(named)).route("/x", get(named))
    }
    a_method_of_a_path_in_two_routers_is_refused {
        let one = Router::new().route("/x", get(named));
        one.clone().merge(one)
    }
    fallbacks_of_a_path_in_two_routers_are_refused {
        let one = |method: MethodRouter| Router::new().route("/x", method.fallback(named));
        one(get(named)).merge(one(put(named)))
    }
    fallbacks_of_two_routers_are_refused {
        Router::new().fallback(named).merge(Router::new().fallback(named))
    }
    a_router_as_the_service_of_a_route_is_refused {
        Router::new().route_service("/x", Router::new())
    }
    a_nested_route_beside_the_same_is_refused {
        Router::new().route("/api/x", get(named)).nest("/api", Router::new().route("/x", get(named)))
    }
}

#[test]
fn whether_there_are_routes_is_known_at_any_time() {
    use talea_http::axum::{Router, get};
    let empty = Router::<()>::new().fallback(named);
    assert!(!empty.has_routes() && !empty.clone().merge(Router::new()).has_routes());
    assert!(Router::new().nest("/api", empty.clone().route("/x", get(named))).has_routes());
    assert!(!empty.has_routes());
}

/// Axum's checks hold for what is added to the result, as they would without meters.
#[test]
fn a_metered_router_has_the_checks_of_its_declaration() {
    use talea_http::axum::{Router, get};
    let [strict, free] = [Router::new(), Router::new().without_v07_checks()]
        .map(|router| router.route("/x", get(named)).metered(&registry()).unwrap());
    let add = |router: axum::Router| message_of(|| router.route("/:x", axum::routing::get(named)));
    assert!(add(strict).unwrap().contains("without_v07_checks"));
    assert_eq!(add(free), None);
}

#[tokio::test]
async fn a_router_without_meters_is_a_service_of_any_body() {
    use talea_http::axum::{Router, get};
    let mut router = Router::new().route("/x", get(named));
    let request = || Request::builder().uri("/x").body(String::new()).unwrap();
    let response = router.as_service::<String>().oneshot(request()).await.unwrap();
    assert_eq!(text(response).await, "GET /x /x");
    let response = router.clone().into_service::<String>().oneshot(request()).await.unwrap();
    assert_eq!(text(response).await, "GET /x /x");
    let response = get(named).oneshot(request()).await.unwrap();
    assert_eq!(text(response).await, "GET none /x");
}

#[tokio::test]
async fn a_clone_that_is_metered_is_metered_for_itself() {
    use talea_http::axum::{Router, get};
    let [first, second] = [registry(), registry()];
    let router = Router::new().route("/x", get(async || "x"));
    let apps = [&first, &second].map(|registry| router.clone().metered(registry).unwrap());
    for (asked, app) in apps.iter().enumerate() {
        ask(app, "GET", "/x").await;
        assert_eq!((recorded(&first), recorded(&second)), (1, asked as u64));
    }
}

/// A step of a declaration.
#[derive(Clone, Debug)]
enum Step {
    Route(&'static str, Answers),
    RouteService(&'static str),
    NestService(&'static str),
    NestRouter(&'static str, Vec<Self>),
    Nest(&'static str, Vec<Self>),
    Merge(Vec<Self>),
    Layer(&'static str),
    RouteLayer(&'static str),
    Fallback,
    RefuseMethods,
    ResetFallback,
    WithoutChecks,
}

#[derive(Clone, Copy, Debug)]
enum Answers {
    Get,
    Post,
    LayeredPut,
    DeleteOrFallback,
    LayeredNothing,
    Any,
}

macro_rules! declare_by {
    ($name:ident $router:path, $routing:path) => {
        fn $name(steps: &[Step]) -> $router {
            use $router as Router;
            use $routing::{MethodRouter, any, delete, get, post, put};
            let mut router = Router::new();
            for step in steps {
                router = match step {
                    Step::Route(path, handlers) => {
                        let methods: MethodRouter = match handlers {
                            Answers::Get => get(named),
                            Answers::Post => post(named),
                            Answers::LayeredPut => put(named).layer(mark!("m")),
                            Answers::DeleteOrFallback => delete(named).fallback(sorry),
                            Answers::LayeredNothing => MethodRouter::new().layer(mark!("l")),
                            Answers::Any => any(named),
                        };
                        router.route(path, methods)
                    }
                    Step::RouteService(path) => router.route_service(path, service("routed")),
                    Step::NestService(prefix) => router.nest_service(prefix, service("nested")),
                    Step::NestRouter(prefix, steps) => router.nest_service(prefix, $name(steps)),
                    Step::Nest(prefix, steps) => router.nest(prefix, $name(steps)),
                    Step::Merge(steps) => router.merge($name(steps)),
                    Step::Layer(mark) => router.layer(mark!(*mark)),
                    Step::RouteLayer(mark) => router.route_layer(mark!(*mark)),
                    Step::Fallback => router.fallback(async |uri: Uri| format!("else {uri}")),
                    Step::RefuseMethods => router.method_not_allowed_fallback(sorry),
                    Step::ResetFallback => router.reset_fallback(),
                    Step::WithoutChecks => router.without_v07_checks(),
                };
            }
            router
        }
    };
}
declare_by!(by_axum axum::Router, axum::routing);
declare_by!(by_talea talea_http::axum::Router, talea_http::axum);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let path = prop::sample::select(vec!["/", "/x", "/x", "/y", "/items/{id}", "/{*all}", "/:x"]);
    // Not a single capture: axum itself responds by another router's fallback there, see `Router`.
    let prefix = || prop::sample::select(vec!["/api", "/api", "/api/", "/x", "/items/{id}"]);
    let mark = || prop::sample::select(vec!["a", "b", "c", "d"]);
    let handlers = prop::sample::select(vec![
        Answers::Get,
        Answers::Post,
        Answers::LayeredPut,
        Answers::DeleteOrFallback,
        Answers::LayeredNothing,
        Answers::Any,
    ]);
    let leaf = prop_oneof![
        6 => (path.clone(), handlers).prop_map(|(path, handlers)| Step::Route(path, handlers)),
        1 => path.prop_map(Step::RouteService),
        1 => prefix().prop_map(Step::NestService),
        2 => mark().prop_map(Step::Layer),
        1 => mark().prop_map(Step::RouteLayer),
        1 => Just(Step::Fallback),
        1 => Just(Step::RefuseMethods),
        1 => Just(Step::ResetFallback),
        1 => Just(Step::WithoutChecks),
    ];
    let tree = leaf.prop_recursive(3, 24, 5, move |step| {
        let steps = prop::collection::vec(step, 0..5);
        prop_oneof![
            3 => steps.clone().prop_map(Step::Merge),
            3 => (prefix(), steps.clone()).prop_map(|(prefix, steps)| Step::Nest(prefix, steps)),
            1 => (prefix(), steps).prop_map(|(prefix, steps)| Step::NestRouter(prefix, steps)),
        ]
    });
    prop::collection::vec(tree, 1..7)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_declaration_is_refused_or_answers_as_by_axum(steps in steps()) {
        // axum tries the routes of a router that it adds in the order of a hash table, so it may name
        // another of several faults.
        let refused = message_of(|| by_axum(&steps)).is_some();
        prop_assert_eq!(message_of(|| by_talea(&steps)).is_some(), refused);
        if !refused {
            let routers = (by_axum(&steps), by_talea(&steps), by_talea(&steps).unmetered());
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(assert_equal(routers));
        }
    }
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
