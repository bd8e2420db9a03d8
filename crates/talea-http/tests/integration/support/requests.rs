//! Requests to a router in this process.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http_body_util::BodyExt;
use tower::ServiceExt;

pub(crate) fn request(method: &str, uri: &str) -> Request {
    Request::builder().method(method).uri(uri).body(Body::empty()).unwrap()
}

pub(crate) async fn ask(app: &axum::Router, method: &str, uri: &str) -> Response {
    app.clone().oneshot(request(method, uri)).await.unwrap()
}

pub(crate) async fn text(response: Response) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}
