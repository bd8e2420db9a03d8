//! What axum's router does, ours does: the same declarations answer the same, metered or not,
//! and each request is told once.

use std::convert::Infallible;
use std::future::ready;

use axum::Extension;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodFilter;
use http_body_util::BodyExt;
use talea::{Registry, Value};
use tower::{Layer, Service, ServiceExt, service_fn};

/// The same declaration by axum's router, and twice by ours.
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

const METHODS: [&str; 12] = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "QUERY",
    "PROPFIND", "X-ODD",
];

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

/// What a client sees of an answer.
async fn seen(app: &axum::Router, method: &str, path: &str) -> (StatusCode, String, String) {
    let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    let answer = app.clone().oneshot(request).await.unwrap();
    let headers = answer.headers();
    let header = |name| headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
    // A length of 0 is the server's to say.
    let length = header("content-length");
    let length = if length == "0" { String::new() } else { length };
    let headers = [header("allow"), header("marked"), length].join(";");
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, headers, String::from_utf8(body.to_vec()).unwrap())
}

/// Asks axum's, ours metered and ours unmetered all methods of all paths; the routes that were
/// told, with the methods.
async fn agree(
    (theirs, ours, unmetered): (axum::Router, talea_http::axum::Router, axum::Router),
) -> Vec<String> {
    let registry = Registry::for_test().unwrap();
    let ours = ours.metered(&registry).unwrap();
    let mut asked = 0;
    for path in PATHS {
        for method in METHODS {
            let expected = seen(&theirs, method, path).await;
            assert_eq!(seen(&ours, method, path).await, expected, "{method} {path}");
            let unmetered = seen(&unmetered, method, path).await;
            assert_eq!(unmetered, expected, "{method} {path}, unmetered");
            asked += 1;
            assert_eq!(told(&registry), asked, "{method} {path} is told once");
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

fn told(registry: &Registry) -> u64 {
    let snapshot = registry.snapshot();
    let total = |name| snapshot.total(name, &[]).unwrap() as u64;
    assert_eq!(total("http_requests_in_flight"), 0);
    let outcomes = total("http_request_outcomes_total");
    assert_eq!(total("http_requests_total"), outcomes);
    outcomes
}

async fn named(path: Option<MatchedPath>, method: Method) -> String {
    format!("{method} {}", path.as_ref().map_or("none", |path| path.as_str()))
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

/// A layer that marks what passes.
#[derive(Clone)]
struct Mark(&'static str);

#[derive(Clone)]
struct Marked<S>(S, &'static str);

impl<S> Layer<S> for Mark {
    type Service = Marked<S>;
    fn layer(&self, inner: S) -> Marked<S> {
        Marked(inner, self.0)
    }
}

impl<S> Service<Request> for Marked<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(
        &mut self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let (answer, mark) = (self.0.call(request), self.1);
        Box::pin(async move {
            let mut response = answer.await?;
            let marked = response.headers().get("marked").map_or("", |seen| seen.to_str().unwrap());
            let marked = format!("{mark}{marked}").parse().unwrap();
            response.headers_mut().insert("marked", marked);
            Ok(response)
        })
    }
}

#[tokio::test]
async fn methods_and_filters() {
    let routes = agree(both! {
        Router::new()
            .route("/x", get(named).post(named).delete(named).options(named))
            .route("/y", on(MethodFilter::PUT.or(MethodFilter::GET).or(MethodFilter::TRACE), named))
            .route("/items/{id}", head(named).get(named).connect(named).patch(named))
    })
    .await;
    for told in ["DELETE /x 2xx", "GET /y 2xx", "TRACE /y 2xx", "HEAD /items/{id} 2xx"] {
        assert!(routes.iter().any(|route| route == told), "{told} is not among {routes:?}");
    }
    assert!(routes.contains(&"_OTHER /y 4xx".to_owned()));
}

#[tokio::test]
async fn any_method() {
    let routes = agree(both! {
        Router::new()
            .route("/x", any(named))
            .route("/y", any(named).post(async || "posted"))
            .route("/items/{id}", any_service(service("any")))
            .route_service("/files/{*path}", service("files"))
    })
    .await;
    for method in ["GET", "HEAD", "PUT", "CONNECT", "QUERY", "_OTHER"] {
        let told = format!("{method} /x 2xx");
        assert!(routes.contains(&told), "{told} is not among {routes:?}");
    }
}

#[tokio::test]
async fn services_by_method() {
    agree(both! {
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
    let routes = agree(both! {
        Router::new()
            .nest_service("/api", service("api"))
            .route("/files/{*path}", get(named))
            .route("/items/{id}", get(named))
    })
    .await;
    assert!(routes.contains(&"GET /api/{*rest} 2xx".to_owned()), "{routes:?}");
    assert!(routes.contains(&"GET /files/{*path} 2xx".to_owned()), "{routes:?}");
}

#[tokio::test]
async fn layers_on_methods() {
    agree(both! {
        Router::new()
            .route("/x", get(named).layer(Mark("a")).post(named))
            .route("/y", get(named).post(named).route_layer(Mark("b")).put(named))
            .route("/items/{id}", get(named).fallback(named).layer(Mark("c")).layer(Mark("d")))
            .route("/", any(named).layer(Mark("e")))
    })
    .await;
}

#[tokio::test]
async fn layers_on_methods_and_on_the_router() {
    agree(both! {
        Router::new()
            .route("/x", get(named).layer(Mark("a")).post(named))
            .layer(Mark("r"))
            .route("/y", get(named).post(named).route_layer(Mark("b")).put(named))
            .route_layer(Mark("s"))
            .route("/items/{id}", get(named).fallback(named).layer(Mark("c")))
            .fallback(named)
            .layer(Mark("t"))
            .route("/", get(named))
    })
    .await;
}

#[tokio::test]
async fn so_many_layers_that_some_are_shared() {
    let marks = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    for layers in 0..marks.len() {
        let marks = &marks[..layers];
        agree(both! {{
            let x = marks.iter().fold(get(named).post(named), |x, mark| x.layer(Mark(mark)));
            let y = marks.iter().fold(put(named), |y, mark| y.route_layer(Mark(mark)));
            let inner = Router::new().route("/x", x.patch(named)).fallback(named);
            let inner = marks.iter().fold(inner, |inner, mark| inner.layer(Mark(mark)));
            let outer = Router::new().nest("/api", inner).route("/y", y.delete(named));
            marks.iter().fold(outer, |outer, mark| outer.layer(Mark(mark)))
        }})
        .await;
    }
}

#[tokio::test]
async fn layers_around_services_and_nests() {
    agree(both! {
        Router::new()
            .nest(
                "/api",
                Router::new()
                    .route("/", get(named))
                    .route("/x", get(named).layer(Mark("a")))
                    .nest_service("/x/y", service("deep"))
                    .fallback(named)
                    .layer(Mark("n")),
            )
            .nest_service("/files", service("files"))
            .layer(Mark("o"))
    })
    .await;
}

#[tokio::test]
async fn method_routers_merge() {
    agree(both! {
        Router::new()
            .route("/x", get(named).merge(post(named).layer(Mark("p"))))
            .route("/y", get(named).layer(Mark("g")).merge(put(named).fallback(named)))
            .layer(Mark("r"))
    })
    .await;
}

#[tokio::test]
async fn one_path_in_two_calls() {
    agree(both! {
        Router::new().route("/x", get(named)).route("/x", post(named)).layer(Mark("r"))
    })
    .await;
    agree(both! {
        Router::new().route("/x", get(named)).route("/x", post(named).fallback(named))
    })
    .await;
    agree(both! {
        Router::new().route("/x", get(named)).layer(Mark("a")).route("/x", post(named))
    })
    .await;
}

#[tokio::test]
async fn what_no_method_answers() {
    let sorry = async || (StatusCode::METHOD_NOT_ALLOWED, "sorry");
    agree(both! {
        Router::new()
            .route("/x", get(named))
            .route("/y", get(named).fallback(named))
            .method_not_allowed_fallback(sorry)
            .route("/", get(named))
    })
    .await;
    agree(both! {
        Router::new()
            .route("/x", get(named).layer(Mark("m")))
            .layer(Mark("r"))
            .method_not_allowed_fallback(sorry)
    })
    .await;
    agree(both! {
        Router::new()
            .route("/x", get(named))
            .method_not_allowed_fallback(sorry)
            .layer(Mark("r"))
    })
    .await;
}

#[tokio::test]
async fn a_fallback_that_is_taken_back() {
    agree(both! {
        Router::new().route("/x", get(named)).fallback(named).reset_fallback()
    })
    .await;
    agree(both! {
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
    agree(both! {
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
async fn a_router_that_is_metered_goes_on_being_axums() {
    let registry = Registry::for_test().unwrap();
    let inner = talea_http::axum::Router::new()
        .route("/x", talea_http::axum::get(named))
        .metered(&registry)
        .unwrap();
    let app = axum::Router::new().nest("/api", inner).layer(Mark("o"));
    let (status, headers, body) = seen(&app, "GET", "/api/x").await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "GET /api/x"));
    assert!(headers.contains(";o;"), "{headers}");
    assert_eq!(told(&registry), 1);
}
