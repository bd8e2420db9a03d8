//! Documents that are made at run time, and routers that make them.

use axum::body::Body;
use axum::http::Request;
use talea::Registry;
use talea_http::axum::meter;
use talea_http::{Endpoints, OpenApi};
use tower::ServiceExt;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

#[utoipa::path(get, path = "/items/{id}", params(("id" = u32, Path)))]
async fn item() -> &'static str {
    "an item"
}

#[utoipa::path(post, path = "/items")]
async fn add() -> &'static str {
    "added"
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(item, add))]
struct Document;

const ROUTES: [(&str, &str); 2] = [("POST", "/items"), ("GET", "/items/{id}")];

#[test]
fn a_document_of_utoipa_is_read_at_run_time() {
    let document = serde_json::to_value(Document::openapi()).unwrap();
    let document: OpenApi = serde_json::from_value(document).unwrap();
    assert_eq!(document.routes(), ROUTES);
    let endpoints = Endpoints::new(&Registry::for_test().unwrap()).unwrap();
    assert!(document.finder::<Body>(&endpoints).is_ok());
}

#[test]
fn a_document_of_salvo_is_read_at_run_time() {
    #[salvo::oapi::endpoint]
    async fn show() -> &'static str {
        "an item"
    }
    let router = salvo::Router::with_path("items/{id}").get(show);
    let document = salvo::oapi::OpenApi::new("shop", "1").merge_router(&router);
    let document: OpenApi = serde_json::from_str(&document.to_json().unwrap()).unwrap();
    assert_eq!(document.routes(), [("GET", "/items/{id}")]);
}

/// Asserts that both routes are there before the first request, and count it.
async fn assert_metered(router: axum::Router) {
    let registry = Registry::for_test().unwrap();
    let app = meter(router, &registry).unwrap();
    let total = |method, route| {
        let labels = [("method", method), ("route", route)];
        registry.snapshot().total("http_requests_total", &labels)
    };
    for (method, route) in ROUTES {
        assert_eq!(total(method, route), Some(0.0), "{method} {route}");
    }
    let request = Request::get("/items/7").body(Body::empty()).unwrap();
    assert_eq!(app.oneshot(request).await.unwrap().status(), 200);
    assert_eq!(total("GET", "/items/{id}"), Some(1.0));
}

#[tokio::test]
async fn a_router_of_utoipa_axum_is_metered_as_it_is() {
    let (router, _) =
        OpenApiRouter::new().routes(routes!(item)).routes(routes!(add)).split_for_parts();
    assert_metered(router).await;
}

#[tokio::test]
async fn a_router_of_aide_is_metered_as_it_is_and_its_document_is_read() {
    use aide::axum::ApiRouter;
    use aide::axum::routing::{get, post};
    async fn show() -> &'static str {
        "an item"
    }
    async fn make() -> &'static str {
        "added"
    }
    let mut made = aide::openapi::OpenApi::default();
    let router: axum::Router = ApiRouter::new()
        .api_route("/items/{id}", get(show))
        .api_route("/items", post(make))
        .finish_api(&mut made);
    let document: OpenApi = serde_json::from_value(serde_json::to_value(&made).unwrap()).unwrap();
    assert_eq!(document.routes(), ROUTES);
    assert_metered(router).await;
}
