//! The allocations of a metered request, compared with the same service without meters. In a
//! process of its own, for its allocator.

use std::convert::Infallible;
use std::future::{Ready, poll_fn, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use actix_web::body::MessageBody;
use actix_web::test as actix_test;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::handler::Handler;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use densa_alloc::{CountingAllocator, thread_stats};
use futures_util::stream;
use http_body::{Body as HttpBody, Frame};
use http_body_util::{BodyExt, StreamBody};
use hyper::{Method, Response, Version};
use talea::Registry;
use talea_http::Convention::{self, Caddy, OpenTelemetry, Prometheus, Servant};
use talea_http::actix::Meter;
use talea_http::axum::{Layer, Router, get, meter_by, post};
use talea_http::client::Servers;
use talea_http::grpc::{self, MethodType, Services};
use talea_http::{Allocations, Endpoints, Opts, RequestBody};
use tower::util::MapRequestLayer;
use tower::{Layer as _, Service, ServiceExt, service_fn};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::system();

const CONVENTIONS: [Convention; 4] = [Prometheus, OpenTelemetry, Servant, Caddy];
const TIMES: u64 = 100;

fn endpoints(convention: Convention) -> Endpoints {
    let registry = Registry::for_test().unwrap();
    Opts::new().convention(convention).register(&registry).unwrap()
}

fn with_costs() -> Endpoints {
    Opts::new().costs().register(&Registry::for_test().unwrap()).unwrap()
}

/// A handler with a type of its own for each number, since the first declaration of a type differs
/// from later ones.
async fn hello<const N: u8>() -> &'static str {
    "hello"
}

async fn streams<const N: u8>() -> Body {
    Body::new(pieces())
}

async fn reads<const N: u8>(body: Body) -> &'static str {
    drain(body).await;
    "read"
}

type Pieces = StreamBody<stream::Iter<std::array::IntoIter<Result<Frame<Bytes>, Infallible>, 3>>>;

/// A body in pieces that allocates nothing itself.
fn pieces() -> Pieces {
    let piece = || Ok(Frame::data(Bytes::from_static(b"piece")));
    StreamBody::new(stream::iter([piece(), piece(), piece()]))
}

async fn drain<B: HttpBody>(body: B) -> usize {
    let mut body = pin!(body);
    let mut frames = 0;
    while let Some(Ok(_)) = body.frame().await {
        frames += 1;
    }
    frames
}

/// The number of allocations of each request to a service, to the end of the response.
fn allocations<S, B, R>(service: S, request: impl Fn() -> hyper::Request<B>) -> u64
where
    S: Service<hyper::Request<B>, Response = Response<R>, Error = Infallible> + Clone,
    R: HttpBody,
{
    assert!(densa_alloc::is_active());
    let mut cx = Context::from_waker(Waker::noop());
    let mut count = |request| {
        let before = thread_stats();
        // As hyper's services are called, a clone for each request.
        let responded = pin!(async {
            let response = service.clone().oneshot(request).await.unwrap();
            assert!(response.status().is_success());
            drain(response.into_body()).await
        });
        assert!(responded.poll(&mut cx).is_ready());
        let spent = thread_stats().since(before);
        spent.allocs + spent.reallocs
    };
    for _ in 0..10 {
        count(request());
    }
    let spent: u64 = (0..TIMES).map(|_| count(request())).sum();
    assert_eq!(spent % TIMES, 0, "each takes as many");
    spent / TIMES
}

fn asks(path: &'static str) -> impl Fn() -> Request {
    move || Request::builder().uri(path).body(Body::empty()).unwrap()
}

fn sends(path: &'static str) -> impl Fn() -> Request {
    move || Request::builder().method("POST").uri(path).body(Body::new(pieces())).unwrap()
}

fn bare_get<H: Handler<T, ()>, T: 'static>(handler: H) -> u64 {
    let bare = axum::Router::new().route("/x", axum::routing::get(handler)).with_state(());
    allocations(bare, asks("/x"))
}

/// The first declaration of a handler, in a router of its own that is metered.
fn declared_get<H: Handler<T, ()>, T: 'static>(convention: Convention, handler: H) -> u64 {
    let router = Router::new().route("/x", get(handler));
    allocations(router.metered_by(&endpoints(convention)).with_state(()), asks("/x"))
}

#[test]
fn a_declared_function_allocates_nothing() {
    let bare = bare_get(hello::<0>);
    assert_eq!(declared_get(Prometheus, hello::<1>), bare);
    assert_eq!(declared_get(OpenTelemetry, hello::<2>), bare);
    assert_eq!(declared_get(Servant, hello::<3>), bare);
    assert_eq!(declared_get(Caddy, hello::<4>), bare);
}

#[test]
fn a_function_that_is_declared_again_allocates_once() {
    let bare = bare_get(hello::<10>);
    assert_eq!(declared_get(Prometheus, hello::<11>), bare);
    assert_eq!(declared_get(Prometheus, hello::<11>), bare + 1);
    // A closure with a size is cloned into an allocation by axum anyway.
    let text = "hello".to_owned();
    let closure = move || std::future::ready(text.len().to_string());
    let bare = bare_get(closure.clone());
    assert_eq!(declared_get(Prometheus, closure), bare);
}

#[test]
fn a_streamed_response_of_a_declared_router_allocates_once() {
    let bare = bare_get(streams::<0>);
    assert_eq!(declared_get(Prometheus, streams::<1>), bare + 1);
    assert_eq!(declared_get(OpenTelemetry, streams::<2>), bare + 1);
    assert_eq!(declared_get(Servant, streams::<3>), bare + 1);
    assert_eq!(declared_get(Caddy, streams::<4>), bare + 1);
}

#[test]
fn a_request_with_a_body_allocates_the_watched_body() {
    fn declared<const N: u8>(convention: Convention) -> u64 {
        let router = Router::new().route("/x", post(reads::<N>));
        allocations(router.metered_by(&endpoints(convention)).with_state(()), sends("/x"))
    }
    let bare = axum::Router::new().route("/x", axum::routing::post(reads::<0>)).with_state(());
    let bare = allocations(bare, sends("/x"));
    assert_eq!(declared::<1>(Prometheus), bare + 1);
    // Its size has labels that are known only at the end, so both bodies share the count.
    assert_eq!(declared::<2>(OpenTelemetry), bare + 2);
    assert_eq!(declared::<3>(Servant), bare + 1);
    assert_eq!(declared::<4>(Caddy), bare + 1);
}

#[test]
fn an_existing_router_allocates_nothing_with_any_number_of_layers() {
    let nothing = || MapRequestLayer::new(|request: Request| request);
    for layers in [0, 1, 5, 20] {
        let plain = || {
            let plain = axum::Router::new()
                .route("/a/{b}/c/{d}/{e}", axum::routing::get(hello::<21>))
                .route("/items", axum::routing::post(reads::<21>));
            (0..layers).fold(plain, |router, _| router.layer(nothing()))
        };
        let bare = allocations(plain().with_state(()), asks("/a/1/c/2/3"));
        for convention in CONVENTIONS {
            let metered = meter_by(plain(), &endpoints(convention));
            let found = allocations(metered, asks("/a/1/c/2/3"));
            assert_eq!(found, bare, "{convention:?}, {layers} layers");
        }
        // The watched body, as with every router.
        let bare = allocations(plain().with_state(()), sends("/items"));
        let metered = meter_by(plain(), &endpoints(Prometheus));
        assert_eq!(allocations(metered, sends("/items")), bare + 1, "{layers} layers");
    }
}

#[test]
fn a_layer_around_a_router_allocates_nothing() {
    let plain = || axum::Router::new().route("/items/{id}", axum::routing::get(hello::<20>));
    let bare = allocations(plain().with_state(()), asks("/items/7"));
    for convention in CONVENTIONS {
        let layer = Layer::by(&endpoints(convention)).routes(&[("GET", "/items/{id}")]).unwrap();
        let metered = layer.layer(plain().with_state(()));
        assert_eq!(allocations(metered, asks("/items/7")), bare, "{convention:?}");
    }
}

#[test]
fn the_costs_of_a_request_allocate_nothing() {
    let plain = || axum::Router::new().route("/x", axum::routing::get(hello::<70>));
    let bare = allocations(plain().with_state(()), asks("/x"));
    assert_eq!(allocations(meter_by(plain(), &with_costs()), asks("/x")), bare);
    let declared = Router::new().route("/x", get(hello::<71>)).metered_by(&with_costs());
    assert_eq!(allocations(declared.with_state(()), asks("/x")), bare_get(hello::<72>));
}

/// Three allocations of 1,000 bytes in two polls; what others allocate between them is not the handler's.
async fn allocates() -> &'static str {
    let first = std::hint::black_box([vec![0_u8; 1_000], vec![0; 1_000]]);
    tokio::task::yield_now().await;
    std::hint::black_box(vec![0_u8; 1_000]);
    drop(first);
    "done"
}

#[test]
fn a_route_has_what_its_polls_allocate() {
    fn of_this_thread() -> Allocations {
        let stats = thread_stats();
        Allocations { count: stats.allocs, bytes: stats.bytes_allocated }
    }
    let registry = Registry::for_test().unwrap();
    let endpoints = Opts::new().allocations(of_this_thread).register(&registry).unwrap();
    let allocates = Router::new().route("/allocates", get(allocates));
    let router = allocates.route("/x", get(hello::<73>)).metered_by(&endpoints).with_state(());
    let snapshot = || {
        let snapshot = registry.snapshot();
        ["/allocates", "/x"].map(|route| {
            let labels = [("method", "GET"), ("route", route)];
            ["allocations_total", "allocated_bytes_total"]
                .map(|name| snapshot.value(&format!("http_request_{name}"), &labels).unwrap())
        })
    };
    assert_eq!(snapshot(), [[0.0; 2]; 2], "from the start");
    let mut cx = Context::from_waker(Waker::noop());
    for times in 1..=3 {
        for path in ["/allocates", "/x"] {
            let mut responded = pin!(router.clone().oneshot(asks(path)()));
            while responded.as_mut().poll(&mut cx).is_pending() {
                std::hint::black_box(vec![0_u8; 5_000]);
            }
        }
        // The response of a handler takes as many.
        let [[count, bytes], [other_count, other_bytes]] = snapshot();
        assert_eq!(count - other_count, 3.0 * f64::from(times));
        assert_eq!(bytes - other_bytes, 3_000.0 * f64::from(times));
    }
}

#[test]
fn a_layer_in_the_router_allocates_as_any_layer_does() {
    fn costs<H: Handler<T, ()>, T: 'static>(handler: H, expected: u64) {
        let plain = || axum::Router::new().route("/x", axum::routing::get(handler.clone()));
        let bare = bare_get(handler.clone());
        let nothing = MapRequestLayer::new(|request: Request| request);
        let by_axum = allocations(plain().layer(nothing).with_state(()), asks("/x")) - bare;
        assert_eq!(by_axum, expected);
        for convention in CONVENTIONS {
            let layer = Layer::by(&endpoints(convention));
            let by_meter = allocations(plain().layer(layer).with_state(()), asks("/x")) - bare;
            assert_eq!(by_meter, by_axum, "{convention:?}");
        }
    }
    costs(hello::<30>, 2);
    let carried = 7_u64;
    costs(move || std::future::ready(carried.to_string()), 3);
}

#[test]
fn a_request_allocates_no_more_than_by_axum_with_any_number_of_layers() {
    let nothing = || MapRequestLayer::new(|request: Request| request);
    let [mut by_axum, mut unmetered, mut metered] = [const { Vec::new() }; 3];
    for layers in 0..=24 {
        // With a size, so that each declaration is the first of its type.
        let carried = "hello".to_owned();
        let handler = move || std::future::ready(carried.len().to_string());
        let plain = axum::Router::new().route("/x", axum::routing::get(handler.clone()));
        let plain = (0..layers).fold(plain, |router, _| router.layer(nothing()));
        by_axum.push(allocations(plain.with_state(()), asks("/x")));
        let own = || {
            let router = Router::new().route("/x", get(handler.clone()));
            (0..layers).fold(router, |router, _| router.layer(nothing()))
        };
        unmetered.push(allocations(own().unmetered().with_state(()), asks("/x")));
        let router = own().metered_by(&endpoints(Prometheus));
        metered.push(allocations(router.with_state(()), asks("/x")));
    }
    assert_eq!(metered, unmetered, "metering allocates nothing");
    assert!(metered.iter().zip(&by_axum).all(|(ours, theirs)| ours <= theirs));
    let grows = |of: &[u64]| [of[8] - of[4], of[24] - of[20]];
    let [first, last] = grows(&metered);
    assert_eq!(first, last, "the last four layers take as many as the first that are shared");
    let [first, last] = grows(&by_axum);
    assert!(last > 2 * first, "axum's clones: {first}, {last}");
}

/// A service with bodies of static types, which allocates nothing.
async fn typed<B: HttpBody>(request: hyper::Request<B>) -> Result<Response<Pieces>, Infallible> {
    drain(request.into_body()).await;
    Ok(Response::new(pieces()))
}

#[test]
fn a_layer_around_a_service_allocates_nothing_even_for_streams() {
    let asks = || hyper::Request::new(pieces());
    assert_eq!(allocations(service_fn(typed::<Pieces>), asks), 0);
    for (convention, expected) in [
        (Prometheus, 0),
        // The size of a request has labels that are known only at the end.
        (OpenTelemetry, 1),
        (Servant, 0),
        (Caddy, 0),
    ] {
        let endpoints = endpoints(convention);
        let endpoint = endpoints.declare(&Method::GET, "/");
        let layer = endpoints.layer(move |_: &hyper::Request<Pieces>| endpoint);
        let metered = layer.layer(service_fn(typed::<RequestBody<Pieces>>));
        assert_eq!(allocations(metered, asks), expected, "{convention:?}");
    }
}

#[test]
fn a_layer_around_a_service_allocates_nothing_for_bodies_in_memory() {
    type Full = http_body_util::Full<Bytes>;
    for convention in CONVENTIONS {
        let endpoints = endpoints(convention);
        let endpoint = endpoints.declare(&Method::GET, "/");
        let layer = endpoints.layer(move |_: &hyper::Request<_>| endpoint);
        let metered = layer
            .layer(service_fn(async |_| Ok::<_, Infallible>(Response::new(Full::from("hello")))));
        assert_eq!(
            allocations(metered, || hyper::Request::new(http_body_util::Empty::<Bytes>::new())),
            0,
            "{convention:?}"
        );
    }
}

/// A gRPC service whose call ends with its trailers.
async fn calls<B: HttpBody>(
    request: hyper::Request<B>,
) -> Result<Response<http_body_util::combinators::WithTrailers<Pieces, Trailers>>, Infallible> {
    drain(request.into_body()).await;
    let trailers = HeaderMap::from_iter([(GRPC_STATUS, HeaderValue::from_static("0"))]);
    Ok(Response::new(pieces().with_trailers(ready(Some(Ok(trailers))))))
}

type Trailers = Ready<Option<Result<HeaderMap, Infallible>>>;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// The allocations of each request to an application of actix-web, to the end of the response.
macro_rules! allocations_of_actix {
    ($app:expr) => {{
        let app = actix_test::init_service($app).await;
        let mut spent = Vec::new();
        for _ in 0..TIMES {
            let mut request = actix_test::TestRequest::get().uri("/items/7").to_request();
            // As actix's server makes a request that has no body.
            drop(request.take_payload());
            let before = thread_stats();
            let response = actix_test::call_service(&app, request).await;
            let mut body = pin!(response.into_body());
            while poll_fn(|cx| body.as_mut().poll_next(cx)).await.is_some() {}
            let since = thread_stats().since(before);
            spent.push(since.allocs + since.reallocs);
        }
        // The first requests fill the pools of actix.
        spent[spent.len() / 2..].iter().sum::<u64>()
    }};
}

#[test]
fn a_request_to_actix_allocates_nothing() {
    let app =
        || actix_web::App::new().route("/items/{id}", actix_web::web::get().to(async || "an item"));
    actix_web::rt::System::new().block_on(async {
        let bare = allocations_of_actix!(app());
        for endpoints in CONVENTIONS.map(endpoints).into_iter().chain([with_costs()]) {
            let meter = Meter::by(&endpoints).routes(&[("GET", "/items/{id}")]).unwrap();
            let metered = allocations_of_actix!(app().wrap(meter));
            assert_eq!(metered, bare, "{endpoints:?}");
        }
    });
}

#[test]
fn an_outgoing_request_allocates_nothing() {
    let asks = || hyper::Request::post("http://a.example:80/items/7").body(pieces()).unwrap();
    let bare = allocations(service_fn(typed::<Pieces>), asks);
    let servers = Servers::new().server("a.example", &["/items", "/items/{id}"]);
    for (convention, expected) in [
        (Prometheus, bare),
        // The size of a request has labels that are known only at the end.
        (OpenTelemetry, bare + 1),
    ] {
        let registry = Registry::for_test().unwrap();
        let opts = Opts::new().convention(convention).detailed();
        let layer = opts.client(&servers, &registry).unwrap();
        let metered = layer.layer(service_fn(typed::<RequestBody<Pieces>>));
        assert_eq!(allocations(metered, asks), expected, "{convention:?}");
    }
}

#[test]
fn a_grpc_call_allocates_nothing() {
    let asks = || {
        let request = hyper::Request::post("/shop.v1.Shop/Show").header("grpc-timeout", "1S");
        request.header("content-type", "application/grpc").body(pieces()).unwrap()
    };
    let services = Services::new().methods("shop.v1.Shop", MethodType::Unary, &["Show"]);
    let bare = allocations(service_fn(calls::<Pieces>), asks);
    for convention in [Prometheus, OpenTelemetry] {
        let registry = Registry::for_test().unwrap();
        let opts = || Opts::new().convention(convention).body_sizes(true);
        for layer in [
            opts().grpc_server(&services, &registry).unwrap(),
            opts().grpc_client(&services, &registry).unwrap(),
        ] {
            let metered = layer.layer(service_fn(calls::<grpc::RequestBody<Pieces>>));
            assert_eq!(allocations(metered, asks), bare, "{convention:?} {layer:?}");
        }
    }
}

/// The tables of a router live as long as the program, also if the router is swapped for another.
#[test]
fn a_router_that_is_metered_again_takes_few_kilobytes() {
    let endpoints = endpoints(Convention::Prometheus);
    let spent = [(); 2].map(|()| {
        let router = axum::Router::new().route("/", axum::routing::get(hello::<9>));
        let before = thread_stats();
        drop(meter_by(router, &endpoints));
        thread_stats().since(before).bytes_allocated
    });
    assert!(spent[1] < 64 << 10, "{spent:?}");
}

#[test]
fn an_endpoint_and_each_combination_of_attributes_take_few_kilobytes() {
    let endpoints = endpoints(OpenTelemetry);
    let before = thread_stats();
    let endpoint = endpoints.declare_any("/x");
    let mut spent = vec![thread_stats().since(before).bytes_allocated];
    let layer = endpoints.layer(move |_: &hyper::Request<Pieces>| endpoint);
    let metered = layer.layer(service_fn(typed::<RequestBody<Pieces>>));
    for method in ["GET", "POST", "PROPFIND"] {
        for uri in ["http://a.example/x", "https://a.example/x"] {
            for version in [Version::HTTP_10, Version::HTTP_11, Version::HTTP_2] {
                let request = hyper::Request::builder().method(method).uri(uri).version(version);
                let request = request.body(pieces()).unwrap();
                let before = thread_stats();
                let responded = pin!(metered.oneshot(request));
                let response = responded.poll(&mut Context::from_waker(Waker::noop()));
                assert!(matches!(response, Poll::Ready(Ok(_))));
                drop(response);
                spent.push(thread_stats().since(before).bytes_allocated);
            }
        }
    }
    assert!(spent.iter().all(|&bytes| bytes < 16 << 10), "{spent:?}");
}
