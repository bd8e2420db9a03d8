//! Metered by hand with prometheus-client: a counter and a histogram, looked up by their
//! labels for each request.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::service::{Framework, ROUTE, Service, hello};

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Endpoint {
    method: String,
    route: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Outcome {
    method: String,
    route: String,
    status: u16,
}

#[derive(Clone)]
struct Metrics {
    requests: Family<Outcome, Counter>,
    duration: Family<Endpoint, Histogram>,
}

/// As many buckets as Talea has by default.
const THRESHOLDS: [f64; 14] =
    [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

pub(crate) fn service() -> Service {
    let metrics = Metrics {
        requests: Family::default(),
        duration: Family::new_with_constructor(|| Histogram::new(THRESHOLDS)),
    };
    let mut registry = Registry::default();
    registry.register("http_requests", "Requests answered", metrics.requests.clone());
    registry.register("http_request_duration_seconds", "Time taken", metrics.duration.clone());
    let app = Router::new()
        .route(ROUTE, get(hello))
        .route_layer(from_fn_with_state(metrics.clone(), meter));
    Service {
        framework: Framework::Axum(app),
        counted: Arc::new(move || {
            let outcome =
                Outcome { method: "GET".to_owned(), route: ROUTE.to_owned(), status: 200 };
            // The registry lives as long as the metrics that it shows.
            let _ = &registry;
            Some(metrics.requests.get_or_create(&outcome).get())
        }),
    }
}

async fn meter(State(metrics): State<Metrics>, request: Request, next: Next) -> Response {
    let method = request.method().to_string();
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("", MatchedPath::as_str).to_owned();
    let start = Instant::now();
    let response = next.run(request).await;
    let took = start.elapsed().as_secs_f64();
    let status = response.status().as_u16();
    let outcome = Outcome { method: method.clone(), route: route.clone(), status };
    metrics.requests.get_or_create(&outcome).inc();
    metrics.duration.get_or_create(&Endpoint { method, route }).observe(took);
    response
}
