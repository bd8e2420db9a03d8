//! AWS Lambda: an axum router that lambda_http calls with events.

use axum::routing::get;
use lambda_http::request::LambdaRequest;
use lambda_http::{Adapter, Context, LambdaEvent, Service};
use serde_json::json;
use talea::Registry;
use talea_http::axum::meter;
use tower::ServiceBuilder;

#[tokio::test]
async fn an_event_is_recorded_at_its_route() {
    let registry = Registry::for_test().unwrap();
    let app = axum::Router::new().route("/items/{id}", get(async || "an item"));
    let app = meter(app, &registry).unwrap();
    // For `lambda_http::run`.
    let app = ServiceBuilder::new()
        .map_request(|request: lambda_http::Request| request.map(axum::body::Body::new))
        .service(app);
    let mut app = Adapter::from(app);
    for path in ["/items/7", "/nowhere"] {
        let http = json!({
            "method": "GET", "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1", "userAgent": "x"
        });
        let event = json!({
            "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "", "headers": {},
            "requestContext": {"http": http, "stage": "$default", "timeEpoch": 0}, "isBase64Encoded": false
        });
        let event: LambdaRequest = serde_json::from_value(event).unwrap();
        app.call(LambdaEvent::new(event, Context::default())).await.unwrap();
    }
    for (method, route) in [("GET", "/items/{id}"), ("_OTHER", "_unmatched")] {
        let labels = [("method", method), ("route", route), ("outcome", "complete")];
        let complete = registry.snapshot().value("http_request_outcomes_total", &labels);
        assert_eq!(complete, Some(1.0), "{route}");
    }
}
