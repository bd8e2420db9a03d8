//! prometheus-client by hand: requests in flight, a counter and a histogram, looked up by
//! their labels for each request.

use std::time::Instant;

use anyhow::Result;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::histograms::count_in_text;
use crate::http_layer::case::Case;
use crate::http_layer::service::{requests, router};
use crate::thresholds::THRESHOLDS;
use crate::work::Work;

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
    in_flight: Family<Endpoint, Gauge>,
    requests: Family<Outcome, Counter>,
    duration: Family<Endpoint, Histogram>,
}

pub(super) fn metered(case: Case) -> Result<Box<dyn Work>> {
    let metrics = Metrics {
        in_flight: Family::default(),
        requests: Family::default(),
        duration: Family::new_with_constructor(|| Histogram::new(THRESHOLDS)),
    };
    let mut registry = Registry::default();
    registry.register("http_requests_in_flight", "In flight", metrics.in_flight.clone());
    registry.register("http_requests", "Requests answered", metrics.requests.clone());
    registry.register("http_request_duration_seconds", "Time taken", metrics.duration.clone());
    let router = router(case).layer(from_fn_with_state(metrics, meter));
    requests(router.with_state(()), case, move || count_in_text(&registry, "http_requests_total"))
}

async fn meter(State(metrics): State<Metrics>, request: Request, next: Next) -> Response {
    let method = request.method().to_string();
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("", MatchedPath::as_str).to_owned();
    let endpoint = Endpoint { method, route };
    metrics.in_flight.get_or_create(&endpoint).inc();
    let start = Instant::now();
    let response = next.run(request).await;
    let took = start.elapsed().as_secs_f64();
    metrics.in_flight.get_or_create(&endpoint).dec();
    metrics.duration.get_or_create(&endpoint).observe(took);
    let Endpoint { method, route } = endpoint;
    let outcome = Outcome { method, route, status: response.status().as_u16() };
    metrics.requests.get_or_create(&outcome).inc();
    response
}
