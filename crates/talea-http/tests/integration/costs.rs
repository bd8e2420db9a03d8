//! What requests cost: the CPU time of their handlers' polls, the number of polls, and the time between.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use actix_web::test as actix_test;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, Response, Version};
use rustix::time::{ClockId, clock_gettime};
use talea::{Registry, Snapshot};
use talea_http::axum::{Layer as RouterLayer, Router, get, meter_by};
use talea_http::grpc::{self, MethodType, Services};
use talea_http::{Convention, Endpoints, ManualExchange, Opts, RequestBody};
use tower::{Layer, Service, ServiceExt, service_fn};

/// The CPU time of a handler, and of each time between its polls.
const SPENT: Duration = Duration::from_millis(5);

fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

fn spend() {
    let end = cpu_time() + SPENT;
    while cpu_time() < end {}
}

/// Ends a poll, and goes on in the next one.
async fn pause() {
    let mut has_paused = false;
    poll_fn(|_| match std::mem::replace(&mut has_paused, true) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

/// Four polls.
async fn works() -> &'static str {
    pause().await;
    spend();
    pause().await;
    pause().await;
    "done"
}

/// Two polls.
async fn panics() -> &'static str {
    pause().await;
    spend();
    std::panic::resume_unwind(Box::new("on purpose"))
}

/// Polls a future, and spends time of its own after each poll.
fn drive<F: Future>(future: F) -> F::Output {
    let mut cx = Context::from_waker(Waker::noop());
    let mut future = pin!(future);
    loop {
        let polled = future.as_mut().poll(&mut cx);
        if let Poll::Ready(output) = polled {
            return output;
        }
        spend();
    }
}

fn ask<S, R>(service: S, path: &str)
where
    S: Service<Request, Response = Response<R>, Error = Infallible>,
{
    drop(drive(service.oneshot(Request::get(path).body(Body::empty()).unwrap())).unwrap());
}

fn plain() -> axum::Router {
    use axum::routing::get;
    axum::Router::new().route("/works", get(works)).route("/panics", get(panics))
}

async fn served(request: Request<RequestBody<Body>>) -> Result<Response<String>, Infallible> {
    let text = if request.uri().path() == "/works" { works().await } else { panics().await };
    Ok(Response::new(text.to_owned()))
}

const LISTED: [(&str, &str); 2] = [("GET", "/works"), ("GET", "/panics")];

/// Asks a service for a path, by a door.
type Door = (&'static str, fn(&Endpoints, &str));

const DOORS: [Door; 5] = [
    ("the mirror of axum's router", |endpoints, path| {
        let router = Router::new().route("/works", get(works)).route("/panics", get(panics));
        ask(router.metered_by(endpoints).with_state(()), path);
    }),
    ("meter", |endpoints, path| ask(meter_by(plain(), endpoints), path)),
    ("Layer on axum's router", |endpoints, path| {
        ask(plain().layer(RouterLayer::by(endpoints).routes(&LISTED).unwrap()), path);
    }),
    ("Layer around axum's router", |endpoints, path| {
        ask(RouterLayer::by(endpoints).routes(&LISTED).unwrap().layer(plain()), path);
    }),
    ("Endpoints::layer", |endpoints, path| {
        let [works, panics] = LISTED.map(|(_, route)| endpoints.declare(&Method::GET, route));
        let layer = endpoints.layer(move |request: &Request| match request.uri().path() {
            "/works" => works,
            _ => panics,
        });
        ask(layer.layer(service_fn(served)), path);
    }),
];

fn assert_costs(snapshot: &Snapshot, words: &str, labels: &[(&str, &str)], polls: f64, name: &str) {
    let found = snapshot.value(&format!("{words}_polls_total"), labels);
    assert_eq!(found, Some(polls), "{name} {labels:?}");
    let histograms = ["cpu", "waiting"].map(|of| {
        let found = snapshot.histogram(&format!("{words}_{of}_seconds"), labels).unwrap();
        assert_eq!(found.count(), u64::from(polls > 0.0), "{of} {name} {labels:?}");
        found.sum()
    });
    if polls > 0.0 {
        let [cpu, waiting] = histograms;
        let spent = SPENT.as_secs_f64();
        assert!(cpu >= spent, "{name}: {cpu}");
        // The clocks differ a little.
        assert!(waiting >= spent * (polls - 1.0) * 0.9, "{name}: {waiting}");
    }
}

/// The CPU time of a call on this thread.
fn cpu_time_of(call: impl FnOnce()) -> f64 {
    let before = cpu_time();
    call();
    (cpu_time() - before).as_secs_f64()
}

#[test]
fn a_route_has_the_cost_of_its_handlers_polls_by_every_door() {
    for (name, door) in DOORS {
        let registry = Registry::for_test().unwrap();
        let endpoints = Opts::new().costs().response_label::<bool>("cached").register(&registry);
        let endpoints = endpoints.unwrap();
        let all = cpu_time_of(|| door(&endpoints, "/works"));
        let [works, panics] = LISTED.map(|(method, route)| [("method", method), ("route", route)]);
        let snapshot = registry.snapshot();
        assert_costs(&snapshot, "http_request", &works, 4.0, name);
        assert_costs(&snapshot, "http_request", &panics, 0.0, name);
        let cpu = snapshot.histogram("http_request_cpu_seconds", &works).unwrap().sum();
        assert!(cpu <= all - 3.0 * SPENT.as_secs_f64(), "{name}: {cpu} of {all} is the handler's");

        catch_unwind(AssertUnwindSafe(|| door(&endpoints, "/panics"))).unwrap_err();
        let snapshot = registry.snapshot();
        assert_costs(&snapshot, "http_request", &works, 4.0, name);
        assert_costs(&snapshot, "http_request", &panics, 2.0, name);
    }
}

#[test]
fn a_request_to_actix_has_the_cost_of_its_polls() {
    let registry = Registry::for_test().unwrap();
    let meter = talea_http::actix::Meter::by(&Opts::new().costs().register(&registry).unwrap());
    let meter = meter.routes(&LISTED).unwrap();
    actix_web::rt::System::new().block_on(async {
        let route = actix_web::web::get();
        let app = actix_web::App::new().route("/works", route.to(works)).wrap(meter);
        let app = actix_test::init_service(app).await;
        let request = actix_test::TestRequest::get().uri("/works").to_request();
        drop(drive(actix_test::call_service(&app, request)));
    });
    let labels = [("method", "GET"), ("route", "/works")];
    assert_costs(&registry.snapshot(), "http_request", &labels, 4.0, "actix");
}

#[test]
fn a_grpc_call_has_the_cost_of_its_polls_to_the_head() {
    let services = Services::new().methods("shop.v1.Shop", MethodType::Unary, &["Show"]);
    for (convention, words, labels) in [
        (
            Convention::Prometheus,
            "grpc_server",
            &[("grpc_type", "unary"), ("grpc_service", "shop.v1.Shop"), ("grpc_method", "Show")]
                as &[_],
        ),
        (
            Convention::OpenTelemetry,
            "rpc_server_call",
            &[("rpc_system_name", "grpc"), ("rpc_method", "shop.v1.Shop/Show")],
        ),
    ] {
        let registry = Registry::for_test().unwrap();
        let opts = Opts::new().convention(convention).costs();
        let layer = opts.clone().grpc_server(&services, &registry).unwrap();
        assert_costs(&registry.snapshot(), words, labels, 0.0, "before");
        let service = layer.layer(service_fn(async |_: Request<grpc::RequestBody<Body>>| {
            Ok::<_, Infallible>(Response::new(Body::from(works().await)))
        }));
        let request =
            Request::post("/shop.v1.Shop/Show").header("content-type", "application/grpc");
        let response = drive(service.oneshot(request.body(Body::empty()).unwrap())).unwrap();
        assert_costs(&registry.snapshot(), words, labels, 4.0, "at the head");
        drop(response);
        assert_costs(&registry.snapshot(), words, labels, 4.0, "at the end");
        // A client has no handler.
        opts.grpc_client(&services, &registry).unwrap();
        assert!(!registry.snapshot().to_text().contains("client_cpu_seconds"));
    }
}

#[test]
fn costs_have_names_in_each_convention_and_are_recorded_on_request() {
    for (convention, words, labels) in [
        (Convention::Prometheus, "http_request", ["method", "route"]),
        (Convention::OpenTelemetry, "http_server_request", ["http_request_method", "http_route"]),
        (Convention::Servant, "http_request", ["method", "route"]),
        (Convention::Caddy, "http_request", ["method", "route"]),
        (Convention::FastapiInstrumentator, "http_request", ["method", "route"]),
        (Convention::StarletteExporter, "http_request", ["method", "route"]),
    ] {
        let registry = Registry::for_test().unwrap();
        let opts = || Opts::new().convention(convention).detailed();
        opts().register(&registry).unwrap().declare(&Method::GET, "/works");
        let text = registry.snapshot().to_text();
        assert!(!text.contains("_cpu_seconds") && !text.contains("_polls_total"), "{convention:?}");

        let registry = Registry::for_test().unwrap();
        let endpoints = opts().costs().register(&registry).unwrap();
        let endpoint = endpoints.declare(&Method::GET, "/works");
        let route = if convention == Convention::Servant { "works" } else { "/works" };
        let labels = [(labels[0], "GET"), (labels[1], route)];
        assert_costs(&registry.snapshot(), words, &labels, 0.0, "from the start");
        // Nobody polls for it.
        let mut exchange = ManualExchange::arrived();
        exchange.enter(endpoint, &Method::GET, Version::HTTP_11, false);
        exchange.respond(200, 12);
        assert_costs(&registry.snapshot(), words, &labels, 0.0, "by hand");
    }
}
