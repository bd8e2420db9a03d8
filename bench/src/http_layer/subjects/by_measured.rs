//! measured by hand: requests in flight, a counter and a histogram, looked up by their
//! labels for each request. Methods and statuses are enums, routes are fixed at run time.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use anyhow::Result;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{self, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use lasso::{Rodeo, RodeoReader, Spur};
use measured::label::StaticLabelSet;
use measured::metric::histogram::Thresholds;
use measured::{CounterVec, FixedCardinalityLabel, GaugeVec, HistogramVec, LabelGroup};

use crate::http_layer::call::ROUTE;
use crate::http_layer::case::Case;
use crate::http_layer::service::{requests, router};
use crate::thresholds::THRESHOLDS;
use crate::work::Work;

type Routes = RodeoReader<Spur, ahash::RandomState>;

#[derive(Clone, Copy, FixedCardinalityLabel)]
enum Method {
    Get,
    Post,
    Other,
}

#[derive(Clone, Copy, FixedCardinalityLabel)]
enum Status {
    Success,
    ClientError,
    ServerError,
    Other,
}

#[derive(Clone, Copy, LabelGroup)]
#[label(set = EndpointSet)]
struct Endpoint<'a> {
    method: Method,
    #[label(fixed_with = Routes)]
    route: &'a str,
}

#[derive(Clone, Copy, LabelGroup)]
#[label(set = OutcomeSet)]
struct Outcome<'a> {
    method: Method,
    #[label(fixed_with = Routes)]
    route: &'a str,
    status: Status,
}

struct Metrics {
    in_flight: GaugeVec<EndpointSet>,
    requests: CounterVec<OutcomeSet>,
    duration: HistogramVec<EndpointSet, 14>,
}

fn routes() -> Routes {
    let routes: Rodeo<Spur, ahash::RandomState> = Rodeo::from_iter([ROUTE]);
    routes.into_reader()
}

pub(super) fn metered(case: Case) -> Result<Box<dyn Work>> {
    let endpoints = || EndpointSet { method: StaticLabelSet::new(), route: routes() };
    let (method, status) = (StaticLabelSet::new(), StaticLabelSet::new());
    let metrics = Arc::new(Metrics {
        in_flight: GaugeVec::with_label_set(endpoints()),
        requests: CounterVec::with_label_set(OutcomeSet { method, route: routes(), status }),
        duration: HistogramVec::with_label_set_and_metadata(
            endpoints(),
            Thresholds::with_buckets(THRESHOLDS),
        ),
    });
    let router = router(case).layer(from_fn_with_state(Arc::clone(&metrics), meter));
    requests(router.with_state(()), case, move || {
        let outcome = Outcome { method: Method::Get, route: ROUTE, status: Status::Success };
        let id = metrics.requests.with_labels(outcome);
        Ok(metrics.requests.get_metric(id).count.load(Relaxed))
    })
}

async fn meter(State(metrics): State<Arc<Metrics>>, request: Request, next: Next) -> Response {
    let method = method(request.method());
    // Clones share their memory.
    let Some(matched) = request.extensions().get::<MatchedPath>().cloned() else {
        return next.run(request).await;
    };
    let route = matched.as_str();
    let endpoint = Endpoint { method, route };
    metrics.in_flight.inc(endpoint);
    let start = Instant::now();
    let response = next.run(request).await;
    metrics.duration.observe(endpoint, start.elapsed().as_secs_f64());
    metrics.in_flight.dec(endpoint);
    metrics.requests.inc(Outcome { method, route, status: status(response.status()) });
    response
}

fn method(method: &http::Method) -> Method {
    match *method {
        http::Method::GET => Method::Get,
        http::Method::POST => Method::Post,
        _ => Method::Other,
    }
}

fn status(status: StatusCode) -> Status {
    match status.as_u16() {
        200..=299 => Status::Success,
        400..=499 => Status::ClientError,
        500..=599 => Status::ServerError,
        _ => Status::Other,
    }
}
