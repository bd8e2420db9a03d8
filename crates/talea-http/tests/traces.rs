//! Claims about exemplars: the trace of a request, as OpenTelemetry knows it, on the latency of its
//! endpoint. With `tracing`, tracing-opentelemetry and W3C's `traceparent`, as services have them.

use std::collections::HashMap;

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use http_body_util::BodyExt;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use talea::{Escaping, Format, Registry};
use talea_http::axum::{Router, get};
use talea_http::{Convention, Opts};
use tower::ServiceExt;
use tracing::Instrument;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;

/// A layer as services have it: a span for each request, with the parent that the client names.
async fn trace(request: Request, next: Next) -> Response {
    let headers = request.headers().iter();
    let headers =
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    let headers: HashMap<String, String> = headers.collect();
    let span = tracing::info_span!("request");
    let parent = TraceContextPropagator::new().extract(&headers);
    span.set_parent(parent).unwrap();
    next.run(request).instrument(span).await
}

async fn streamed() -> Body {
    let pieces = ["a", "b"].map(Ok::<_, std::io::Error>);
    Body::from_stream(futures_util::stream::iter(pieces))
}

fn app(registry: &Registry, convention: Convention) -> axum::Router {
    Router::new()
        .route("/plain", get(|| async { "plain" }))
        .route("/streamed", get(streamed))
        .metered_by(&Opts::new().convention(convention).register(registry).unwrap())
        .layer(from_fn(trace))
}

/// Asks a route, with a `traceparent` if there is one, under a subscriber that samples what the client
/// does.
fn ask(app: &axum::Router, path: &str, parent: Option<&str>) {
    use opentelemetry_sdk::trace::Sampler;
    let sampler = Sampler::ParentBased(Box::new(Sampler::AlwaysOff));
    let provider = SdkTracerProvider::builder().with_sampler(sampler).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let subscriber = tracing_subscriber::registry().with(layer);
    tracing::subscriber::with_default(subscriber, || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut request = axum::http::Request::get(path);
            if let Some(parent) = parent {
                request = request.header("traceparent", parent);
            }
            let response = app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
            response.into_body().collect().await.unwrap();
        });
    });
}

fn exemplars(registry: &Registry) -> Vec<String> {
    let mut scraper = registry.scraper();
    scraper.format(Format::OpenMetrics, Escaping::default());
    let page = String::from_utf8(scraper.scrape().to_vec()).unwrap();
    page.lines().filter(|line| line.contains(" # {")).map(str::to_owned).collect()
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn sampled(trace: &str) -> String {
    format!("00-{trace}-b7ad6b7169203331-01")
}

#[test]
fn a_latency_has_the_trace_of_a_sampled_request() {
    for (convention, path, metric) in [
        (Convention::Prometheus, "/plain", "http_request_duration_seconds"),
        (Convention::Prometheus, "/streamed", "http_request_duration_seconds"),
        // It has no latency to the head.
        (Convention::OpenTelemetry, "/plain", "http_server_request_duration_seconds"),
    ] {
        let registry = Registry::for_test().unwrap();
        ask(&app(&registry, convention), path, Some(&sampled(TRACE)));
        let found = exemplars(&registry);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(&format!("{metric}_bucket{{")), "{found:?}");
        let expected = format!("# {{trace_id=\"{TRACE}\",span_id=\"");
        assert!(found[0].contains(&expected), "{found:?}");
        // The span is the service's own, and not the client's.
        assert!(!found[0].contains("b7ad6b7169203331"), "{found:?}");
    }
}

#[test]
fn requests_without_a_sampled_trace_have_none() {
    let registry = Registry::for_test().unwrap();
    let app = app(&registry, Convention::Prometheus);
    let unsampled = format!("00-{TRACE}-b7ad6b7169203331-00");
    for parent in [None, Some(unsampled.as_str()), Some("00-nonsense")] {
        ask(&app, "/plain", parent);
    }
    assert_eq!(exemplars(&registry), [""; 0]);
    assert!(registry.snapshot().total("http_requests_total", &[]).is_some_and(|n| n >= 3.0));
}
