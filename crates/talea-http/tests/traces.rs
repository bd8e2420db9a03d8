//! Claims about exemplars: the trace of a request, as OpenTelemetry knows it, on the latency of its
//! endpoint. With `tracing`, tracing-opentelemetry and W3C's `traceparent`, as services have them.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Version};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Body as HttpBody, Frame};
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use talea::{Escaping, Format, Registry};
use talea_http::axum::{Router, get, meter_by};
use talea_http::client::{Middleware, Servers};
use talea_http::grpc::{self, Services};
use talea_http::{Convention, ManualExchange, Opts, RequestBody};
use tower::{Layer, Service, ServiceExt, service_fn};
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

/// Runs a future under a subscriber that samples what the client does.
fn run(future: impl Future<Output = ()>) {
    use opentelemetry_sdk::trace::Sampler;
    let sampler = Sampler::ParentBased(Box::new(Sampler::AlwaysOff));
    let provider = SdkTracerProvider::builder().with_sampler(sampler).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let subscriber = tracing_subscriber::registry().with(layer);
    tracing::subscriber::with_default(subscriber, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, future);
    });
}

/// Asks a route, with a `traceparent` if there is one.
fn ask(app: &axum::Router, path: &str, parent: Option<&str>) {
    run(async {
        let mut request = axum::http::Request::get(path);
        if let Some(parent) = parent {
            request = request.header("traceparent", parent);
        }
        let response = app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        response.into_body().collect().await.unwrap();
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

/// Asks by a door, in the span that is current.
type Ask = fn(Opts, Registry) -> Pin<Box<dyn Future<Output = ()>>>;

/// A door, an answer, and the metrics that have an exemplar, in Prometheus' convention and in OpenTelemetry's.
type Case = (&'static str, Ask, [&'static str; 2]);

const SERVER: [&str; 2] = ["http_request_duration_seconds", "http_server_request_duration_seconds"];
const CLIENT: [&str; 2] = ["http_client_request_duration_seconds"; 2];
const RPC_SERVER: [&str; 2] = ["grpc_server_handling_seconds", "rpc_server_call_duration_seconds"];
const RPC_CLIENT: [&str; 2] = ["grpc_client_handling_seconds", "rpc_client_call_duration_seconds"];

const CASES: [Case; 22] = [
    ("Endpoints::layer", |opts, registry| Box::pin(by_layer(opts, registry, answers)), SERVER),
    ("a stream", |opts, registry| Box::pin(by_layer(opts, registry, streams)), SERVER),
    ("an error", |opts, registry| Box::pin(by_layer(opts, registry, fails)), SERVER),
    ("a broken stream", |opts, registry| Box::pin(by_layer(opts, registry, breaks)), SERVER),
    ("meter", |opts, registry| Box::pin(by_meter(opts, registry)), SERVER),
    ("axum's Layer", |opts, registry| Box::pin(by_axum_layer(opts, registry)), SERVER),
    ("its error", |opts, registry| Box::pin(by_axum_error(opts, registry)), SERVER),
    ("actix", |opts, registry| Box::pin(by_actix(opts, registry, "/plain")), SERVER),
    ("its stream", |opts, registry| Box::pin(by_actix(opts, registry, "/streams")), SERVER),
    ("its broken stream", |opts, registry| Box::pin(by_actix(opts, registry, "/breaks")), SERVER),
    ("by hand", |opts, registry| Box::pin(by_hand(opts, registry)), SERVER),
    ("a client", |opts, registry| Box::pin(by_client(opts, registry, answers)), CLIENT),
    ("a client's stream", |opts, registry| Box::pin(by_client(opts, registry, streams)), CLIENT),
    ("its broken stream", |opts, registry| Box::pin(by_client(opts, registry, breaks)), CLIENT),
    ("its error", |opts, registry| Box::pin(by_client(opts, registry, fails)), CLIENT),
    ("reqwest", |opts, registry| Box::pin(by_reqwest(opts, registry, true)), CLIENT),
    ("reqwest's error", |opts, registry| Box::pin(by_reqwest(opts, registry, false)), CLIENT),
    ("gRPC", |opts, registry| Box::pin(by_grpc_server(opts, registry, calls)), RPC_SERVER),
    (
        "gRPC, headers",
        |opts, registry| Box::pin(by_grpc_server(opts, registry, refuses)),
        RPC_SERVER,
    ),
    ("gRPC, error", |opts, registry| Box::pin(by_grpc_server(opts, registry, fails)), RPC_SERVER),
    ("gRPC client", |opts, registry| Box::pin(by_grpc_client(opts, registry, calls)), RPC_CLIENT),
    ("its error", |opts, registry| Box::pin(by_grpc_client(opts, registry, breaks)), RPC_CLIENT),
];

type BoxBody = http_body_util::combinators::UnsyncBoxBody<Bytes, io::Error>;
type Answer = Result<Response<BoxBody>, io::Error>;

fn answers() -> Answer {
    Ok(Response::new(Full::from("an answer").map_err(io::Error::other).boxed_unsync()))
}

fn of_frames<const N: usize>(frames: [io::Result<Frame<Bytes>>; N]) -> Answer {
    let body = StreamBody::new(futures_util::stream::iter(frames));
    Ok(Response::new(BodyExt::boxed_unsync(body)))
}

fn streams() -> Answer {
    of_frames([Ok(Frame::data(Bytes::from("a"))), Ok(Frame::data(Bytes::from("b")))])
}

fn breaks() -> Answer {
    of_frames([Ok(Frame::data(Bytes::from("a"))), Err(io::Error::other("on purpose"))])
}

fn fails() -> Answer {
    Err(io::Error::other("on purpose"))
}

fn calls() -> Answer {
    let status = (HeaderName::from_static("grpc-status"), HeaderValue::from_static("0"));
    let trailers = Frame::trailers(HeaderMap::from_iter([status]));
    of_frames([Ok(Frame::data(Bytes::from("a"))), Ok(trailers)])
}

fn refuses() -> Answer {
    let mut response = answers()?;
    response.headers_mut().insert("grpc-status", HeaderValue::from_static("7"));
    Ok(response)
}

/// Asks a service, and reads its answer as far as it goes.
async fn ask_service<S, R>(service: S, uri: &'static str)
where
    S: Service<axum::http::Request<Body>, Response = Response<R>>,
    R: HttpBody,
{
    let request = axum::http::Request::post(uri).header("content-type", "application/grpc");
    if let Ok(response) = service.oneshot(request.body(Body::empty()).unwrap()).await {
        let _ = response.into_body().collect().await;
    }
}

async fn by_layer(opts: Opts, registry: Registry, answer: fn() -> Answer) {
    let endpoints = opts.register(&registry).unwrap();
    let endpoint = endpoints.declare(&Method::POST, "/");
    let layer = endpoints.layer(move |_: &axum::http::Request<Body>| endpoint);
    ask_service(
        layer.layer(service_fn(async |_: axum::http::Request<RequestBody<Body>>| answer())),
        "/",
    )
    .await;
}

fn plain() -> axum::Router {
    axum::Router::new().route("/plain", axum::routing::post(async || "plain"))
}

async fn by_meter(opts: Opts, registry: Registry) {
    ask_service(meter_by(plain(), &opts.register(&registry).unwrap()), "/plain").await;
}

async fn by_axum_layer(opts: Opts, registry: Registry) {
    let layer = talea_http::axum::Layer::by(&opts.register(&registry).unwrap());
    ask_service(plain().layer(layer), "/plain").await;
}

async fn by_axum_error(opts: Opts, registry: Registry) {
    let layer = talea_http::axum::Layer::by(&opts.register(&registry).unwrap());
    let service = service_fn(async |_: Request| Err::<Response, _>(io::Error::other("on purpose")));
    ask_service(layer.layer(service), "/plain").await;
}

async fn by_actix(opts: Opts, registry: Registry, path: &str) {
    let meter = talea_http::actix::Meter::by(&opts.register(&registry).unwrap());
    use actix_web::body::BodyStream;
    use actix_web::web::get;
    const PIECE: Bytes = Bytes::from_static(b"a");
    fn streamed(pieces: [io::Result<Bytes>; 2]) -> actix_web::HttpResponse {
        actix_web::HttpResponse::Ok().body(BodyStream::new(futures_util::stream::iter(pieces)))
    }
    let route = get().to(async || "plain");
    let app = actix_web::App::new()
        .route("/plain", route)
        .route("/streams", get().to(async || streamed([Ok(PIECE), Ok(PIECE)])))
        .route(
            "/breaks",
            get().to(async || streamed([Ok(PIECE), Err(io::ErrorKind::Other.into())])),
        )
        .wrap(meter);
    let app = actix_web::test::init_service(app).await;
    let request = actix_web::test::TestRequest::get().uri(path).to_request();
    let response = actix_web::test::call_service(&app, request).await;
    let _ = actix_web::body::to_bytes(response.into_body()).await;
}

async fn by_hand(opts: Opts, registry: Registry) {
    let endpoint = opts.register(&registry).unwrap().declare(&Method::GET, "/plain");
    let mut exchange = ManualExchange::arrived();
    exchange.enter(endpoint, &Method::GET, Version::HTTP_11, false);
    exchange.respond(200, 5);
}

async fn by_client(opts: Opts, registry: Registry, answer: fn() -> Answer) {
    let layer = opts.client(&Servers::new(), &registry).unwrap();
    let client =
        layer.layer(service_fn(async |_: axum::http::Request<RequestBody<Body>>| answer()));
    ask_service(client, "http://shop.example/").await;
}

async fn by_reqwest(opts: Opts, registry: Registry, has_server: bool) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/plain", listener.local_addr().unwrap());
    if has_server {
        tokio::task::spawn_local(axum::serve(listener, plain()).into_future());
    } else {
        drop(listener);
    }
    let middleware = Middleware::from(opts.client(&Servers::new(), &registry).unwrap());
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let client = reqwest_middleware::ClientBuilder::new(client).with(middleware).build();
    if let Ok(response) = client.post(url).send().await {
        response.bytes().await.unwrap();
    }
}

async fn by_grpc(layer: grpc::Layer, answer: fn() -> Answer) {
    let service = service_fn(async |_: axum::http::Request<grpc::RequestBody<Body>>| answer());
    ask_service(layer.layer(service), "/shop.v1.Shop/Show").await;
}

async fn by_grpc_server(opts: Opts, registry: Registry, answer: fn() -> Answer) {
    by_grpc(opts.grpc_server(&Services::new(), &registry).unwrap(), answer).await;
}

async fn by_grpc_client(opts: Opts, registry: Registry, answer: fn() -> Answer) {
    by_grpc(opts.grpc_client(&Services::new(), &registry).unwrap(), answer).await;
}

#[test]
fn each_door_has_the_trace_of_a_sampled_request() {
    for (name, ask, metrics) in CASES {
        for (convention, metric) in
            [Convention::Prometheus, Convention::OpenTelemetry].into_iter().zip(metrics)
        {
            for flags in ["01", "00"] {
                let registry = Registry::for_test().unwrap();
                let asked = ask(Opts::new().convention(convention), registry.clone());
                run(async {
                    let span = tracing::info_span!("request");
                    let parent = format!("00-{TRACE}-b7ad6b7169203331-{flags}");
                    let headers = HashMap::from([("traceparent".to_owned(), parent)]);
                    span.set_parent(TraceContextPropagator::new().extract(&headers)).unwrap();
                    asked.instrument(span).await;
                });
                let found = exemplars(&registry);
                let count = usize::from(flags == "01");
                assert_eq!(found.len(), count, "{name} {convention:?} {flags}: {found:?}");
                let start = format!("{metric}_bucket{{");
                let trace = format!("# {{trace_id=\"{TRACE}\",span_id=\"");
                let is_expected = |line: &String| line.starts_with(&start) && line.contains(&trace);
                assert!(found.iter().all(is_expected), "{name} {convention:?}: {found:?}");
            }
        }
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
