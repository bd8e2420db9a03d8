//! Endpoints from OpenAPI documents, in JSON and in YAML.

use std::convert::Infallible;

use axum::http::{Method, Request, Response, StatusCode};
use talea::Registry;
use talea_http::{Endpoints, OpenApi, RequestBody};
use tower::{Layer, ServiceExt, service_fn};

use crate::cases::bodies::{BoxBody, whole};

const YAML: &str = "
openapi: 3.1.0
info: {title: Shop, version: '1'}
servers: [{url: 'https://shop.example/api'}]
paths:
  x-owner: the team
  /items:
    summary: All items
    parameters: [{name: page, in: query}]
    get: {responses: {'200': {description: All}}}
    post: {}
  /items/{id}:
    get: {}
    delete: {}
  /items/{itemId}/parts/{part-id}:
    patch: {}
  /shared:
    $ref: '#/components/pathItems/Shared'
components:
  pathItems:
    Shared: {put: {}}
  schemas: {Item: {type: object}}
";

const JSON: &str = r##"{"openapi": "3.0.3", "x-a": 1, "paths": {
    "x-owner": ["the team"],
    "/items": {"get": {"responses": {}}, "post": {}, "x-b": null},
    "/items/{id}": {"get": {}, "delete": {}},
    "/items/{itemId}/parts/{part-id}": {"patch": {}},
    "/shared": {"$ref": "#/components/pathItems/Shared"}},
    "components": {"pathItems": {"Shared": {"put": {}}}}}"##;

const ROUTES: [(&str, &str); 6] = [
    ("GET", "/items"),
    ("POST", "/items"),
    ("GET", "/items/{id}"),
    ("DELETE", "/items/{id}"),
    ("PATCH", "/items/{itemId}/parts/{part-id}"),
    ("PUT", "/shared"),
];

fn documents() -> [OpenApi; 2] {
    [serde_saphyr::from_str(YAML).unwrap(), serde_json::from_str(JSON).unwrap()]
}

#[test]
fn a_document_in_json_and_in_yaml_has_the_same_operations() {
    for document in documents() {
        assert_eq!(document.routes(), ROUTES);
        assert_eq!(document.clone().under("/api/").routes()[2], ("GET", "/api/items/{id}"));
        // The doors with a list of routes take it.
        let endpoints = Endpoints::new(&Registry::for_test().unwrap()).unwrap();
        talea_http::axum::Layer::by(&endpoints).routes(&document.routes()).unwrap();
    }
}

#[test]
fn a_document_that_cannot_be_used_is_refused_with_the_reason() {
    for (text, expected) in [
        (r#"{"swagger": "2.0", "paths": {}}"#, "of Swagger 2.0; expected OpenAPI 3.0 or 3.1"),
        (r#"{"openapi": "4.0.0"}"#, "of OpenAPI 4.0.0; expected 3.0 or 3.1"),
        (r#"{"paths": {}}"#, "has no field \"openapi\""),
        (
            r#"{"openapi": "3.0.0", "paths": {"/a": {"$ref": "other.json"}}}"#,
            "\"/a\" refers to \"other.json\", which is not in the document",
        ),
    ] {
        let refused = serde_json::from_str::<OpenApi>(text).unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
    let endpoints = Endpoints::new(&Registry::for_test().unwrap()).unwrap();
    for (paths, expected) in [
        (r#""/{a}": {"get": {}}, "/{b}": {"get": {}}"#, "\"/{b}\""),
        (r#""/{a}:{b}": {"get": {}}"#, "\"/{a}:{b}\""),
    ] {
        let text = format!(r#"{{"openapi": "3.1.0", "paths": {{{paths}}}}}"#);
        let document: OpenApi = serde_json::from_str(&text).unwrap();
        let refused = document.finder::<()>(&endpoints).err().unwrap().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
}

#[tokio::test]
async fn four_hundred_thousand_paths_are_one_series_beside_the_operations() {
    let registry = Registry::for_test().unwrap();
    let endpoints = Endpoints::new(&registry).unwrap();
    let [document, _] = documents();
    let layer = endpoints.layer(document.finder(&endpoints).unwrap());
    let in_flight = || registry.snapshot().select("http_requests_in_flight", &[]).count();
    assert_eq!(in_flight(), ROUTES.len(), "all operations are there from the start");
    let service = layer.layer(service_fn(async |_: Request<RequestBody<BoxBody>>| {
        let mut response = Response::new(whole(0));
        *response.status_mut() = StatusCode::NOT_FOUND;
        Ok::<_, Infallible>(response)
    }));
    let ask = async |method: Method, path: &str| {
        let request = Request::builder().method(method).uri(path).body(whole(0)).unwrap();
        service.oneshot(request).await.unwrap();
    };
    for n in 0..400_000 {
        ask(Method::GET, &format!("/{n}/items")).await;
    }
    let total = |method, route| {
        let labels = [("method", method), ("route", route)];
        registry.snapshot().total("http_requests_total", &labels)
    };
    assert_eq!(total("_OTHER", "_unmatched"), Some(400_000.0));
    assert_eq!(in_flight(), ROUTES.len() + 1);
    for (method, path, declared, route) in [
        (Method::DELETE, "/items/7", "DELETE", "/items/{id}"),
        (Method::HEAD, "/items", "GET", "/items"),
        (Method::PATCH, "/items/7/parts/8", "PATCH", "/items/{itemId}/parts/{part-id}"),
        (Method::PUT, "/items", "_OTHER", "/items"),
    ] {
        ask(method, path).await;
        assert_eq!(total(declared, route), Some(1.0), "{path}");
    }
}

#[tokio::test]
async fn a_list_of_routes_is_found_as_the_operations_of_a_document_are() {
    let registry = Registry::for_test().unwrap();
    let endpoints = Endpoints::new(&registry).unwrap();
    let find = endpoints.finder(&[("GET", "/items/{id}"), ("ANY", "/files/{*path}")]).unwrap();
    let service =
        endpoints.layer(find).layer(service_fn(async |_: Request<RequestBody<BoxBody>>| {
            Ok::<_, Infallible>(Response::new(whole(0)))
        }));
    for (method, path, declared, route) in [
        (Method::GET, "/items/7", "GET", "/items/{id}"),
        (Method::PUT, "/items/8", "_OTHER", "/items/{id}"),
        (Method::PATCH, "/files/a/b", "PATCH", "/files/{*path}"),
        (Method::GET, "/nowhere", "_OTHER", "_unmatched"),
    ] {
        let request = Request::builder().method(method).uri(path).body(whole(0)).unwrap();
        service.oneshot(request).await.unwrap();
        let labels = [("method", declared), ("route", route)];
        let total = registry.snapshot().total("http_requests_total", &labels);
        assert_eq!(total, Some(1.0), "{path}");
    }
    let refused = endpoints.finder::<()>(&[("GET", "/{a}"), ("GET", "/{b}")]).err().unwrap();
    assert!(refused.to_string().contains("the template \"/{b}\" cannot be used"), "{refused}");
}
