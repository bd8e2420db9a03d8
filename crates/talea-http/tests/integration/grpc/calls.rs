//! The table of calls, and calls of methods that are not known.

use std::time::Duration;

use axum::http::{self, Request as HttpRequest};
use futures_util::stream;
use http_body_util::BodyExt;
use talea::{Registry, Snapshot};
use talea_http::grpc::{self, MethodType, Services};
use talea_http::{Convention, Opts};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Status};
use tower::util::BoxCloneService;
use tower::{Layer, ServiceExt};

use super::shop::{Shop, Text};
use crate::support::client::loopback;
use crate::support::wait::until;

const SERVICE: &str = "shop.v1.Shop";

fn services() -> Services {
    Services::new()
        .methods(SERVICE, MethodType::Unary, &["Show"])
        .methods(SERVICE, MethodType::ClientStream, &["Put"])
        .methods(SERVICE, MethodType::ServerStream, &["Watch"])
        .methods(SERVICE, MethodType::BidiStream, &["Chat"])
        .leave_out("grpc.health.v1.Health")
}

fn opts(convention: Convention) -> Opts {
    Opts::new().convention(convention).body_sizes(true)
}

/// What a client does with a call.
#[derive(Clone, Copy)]
enum Client {
    /// Reads all of the response.
    Reads,
    /// Cancels the call when the service waits.
    CancelsWhenItWaits,
    /// Reads two messages, and cancels the call when the service waits.
    CancelsInStream,
}

/// How a side ends a call: the name in Go, OpenTelemetry's, and the outcome.
type End = (&'static str, &'static str, &'static str);

const OK: End = ("OK", "OK", "complete");
const MISSING: End = ("NotFound", "NOT_FOUND", "complete");
const LATE: End = ("DeadlineExceeded", "DEADLINE_EXCEEDED", "timed_out");
const CANCELLED: End = ("Canceled", "CANCELLED", "aborted");
const PANICKED: End = ("Unknown", "UNKNOWN", "panicked");
const LOST: End = ("Unavailable", "UNAVAILABLE", "aborted");
const UNIMPLEMENTED: End = ("Unimplemented", "UNIMPLEMENTED", "complete");

struct Case {
    name: &'static str,
    method: &'static str,
    kind: &'static str,
    client: Client,
    sends: &'static [&'static str],
    server_end: End,
    client_end: End,
    /// The messages of the request and of the response.
    messages: (f64, f64),
}

const fn case(
    name: &'static str,
    (method, kind): (&'static str, &'static str),
    sends: &'static [&'static str],
    end: End,
    messages: (f64, f64),
) -> Case {
    let client = Client::Reads;
    Case { name, method, kind, client, sends, server_end: end, client_end: end, messages }
}

const SHOW: (&str, &str) = ("Show", "unary");
const PUT: (&str, &str) = ("Put", "client_stream");
const WATCH: (&str, &str) = ("Watch", "server_stream");
const CHAT: (&str, &str) = ("Chat", "bidi_stream");

const CASES: [Case; 20] = [
    case("a unary call", SHOW, &["a pen"], OK, (1.0, 1.0)),
    case("an empty message", SHOW, &[""], OK, (1.0, 1.0)),
    case("an error in the headers", SHOW, &["missing"], MISSING, (1.0, 0.0)),
    case("a deadline that the service reports", SHOW, &["late"], LATE, (1.0, 0.0)),
    case("a stream of requests", PUT, &["1", "2", "3", "4"], OK, (4.0, 1.0)),
    case("a stream of requests without any", PUT, &[], OK, (0.0, 1.0)),
    case("an error after a stream of requests", PUT, &["1", "missing"], MISSING, (2.0, 0.0)),
    case("a stream of responses", WATCH, &["3"], OK, (1.0, 3.0)),
    case("an error in the trailers", WATCH, &["missing"], MISSING, (1.0, 2.0)),
    case("streams both ways", CHAT, &["1", "2", "3"], OK, (3.0, 3.0)),
    case("an error in the middle of streams", CHAT, &["1", "missing"], MISSING, (2.0, 1.0)),
    case("an unknown method", ("Burn", "_OTHER"), &["1"], UNIMPLEMENTED, (0.0, 0.0)),
    Case {
        client: Client::CancelsWhenItWaits,
        ..case("a cancelled unary call", SHOW, &["waits"], CANCELLED, (1.0, 0.0))
    },
    Case {
        client: Client::CancelsWhenItWaits,
        ..case("a cancelled stream of requests", PUT, &["waits"], CANCELLED, (1.0, 0.0))
    },
    Case {
        client: Client::CancelsInStream,
        ..case("a client that never reads the trailers", WATCH, &["waits"], CANCELLED, (1.0, 2.0))
    },
    Case {
        client: Client::CancelsInStream,
        ..case("cancelled streams both ways", CHAT, &["1", "2", "waits"], CANCELLED, (3.0, 2.0))
    },
    case("an error before the requests have ended", CHAT, &["missing", "2"], MISSING, (2.0, 0.0)),
    case("a deadline that a stream reports", WATCH, &["late"], LATE, (1.0, 2.0)),
    Case {
        client_end: LOST,
        ..case("a panic before the head", SHOW, &["panics"], PANICKED, (1.0, 0.0))
    },
    Case {
        client_end: LOST,
        // Before tonic has sent what it had buffered.
        ..case("a panic in a stream of responses", WATCH, &["panics"], PANICKED, (1.0, 0.0))
    },
];

/// A server of tonic with the layers of both conventions, and a client with both.
struct Sides {
    shop: Shop,
    server: Registry,
    client: Registry,
    grpc: Grpc<BoxCloneService<HttpRequest<Body>, http::Response<Body>, tonic::transport::Error>>,
}

impl Sides {
    async fn start(timeout: Option<Duration>) -> Self {
        let (server, client) = (Registry::for_test().unwrap(), Registry::for_test().unwrap());
        let listener = TcpListener::bind(loopback()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let [first, second] =
            [Convention::Prometheus, Convention::OpenTelemetry].map(|convention| {
                // A little less than the server's own limit.
                let limit = timeout.map_or(Duration::MAX, |timeout| timeout / 10 * 9);
                opts(convention).timed_out_after(limit).grpc_server(&services(), &server).unwrap()
            });
        let shop = Shop::default();
        let mut builder = Server::builder().layer(first).layer(second);
        if let Some(timeout) = timeout {
            builder = builder.timeout(timeout);
        }
        let serves = builder.add_service(shop.clone());
        tokio::spawn(serves.serve_with_incoming(TcpListenerStream::new(listener)));
        let channel = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let grpc = Grpc::new(metered(channel.connect().await.unwrap(), &client));
        Self { shop, server, client, grpc }
    }

    async fn call(&mut self, case: &Case) {
        let waits = self.shop.waits.clone();
        match case.client {
            Client::Reads => {
                let ended = self.grpc.call(case.method, case.sends).await;
                let (go, ..) = case.client_end;
                match ended {
                    Ok(read) => {
                        assert_eq!((read as f64, go), (case.messages.1, "OK"), "{}", case.name)
                    }
                    Err(status) => {
                        assert_ne!((status.code(), go), (Code::Ok, "OK"), "{}", case.name)
                    }
                }
            }
            Client::CancelsWhenItWaits => {
                tokio::select! {
                    ended = self.grpc.call(case.method, case.sends) => panic!("{ended:?}"),
                    () = waits.notified() => {}
                }
            }
            Client::CancelsInStream => {
                let mut stream = self.grpc.open(case.method, case.sends).await.unwrap();
                for _ in 0..2 {
                    stream.message().await.unwrap().unwrap();
                }
                waits.notified().await;
            }
        }
    }
}

/// A channel with the layers of both conventions.
fn metered(
    channel: Channel,
    registry: &Registry,
) -> BoxCloneService<HttpRequest<Body>, http::Response<Body>, tonic::transport::Error> {
    let layers = [Convention::Prometheus, Convention::OpenTelemetry]
        .map(|convention| opts(convention).grpc_client(&services(), registry).unwrap());
    let mut service = channel.boxed_clone();
    for layer in layers {
        let inner = service
            .map_request(|request: HttpRequest<grpc::RequestBody<Body>>| request.map(Body::new));
        let metered = layer.layer(inner);
        let metered = metered.map_response(|response| response.map(Body::new));
        service = metered.boxed_clone();
    }
    service
}

/// Calls as a generated client makes them.
trait Calls {
    async fn open(
        &mut self,
        method: &str,
        sends: &[&'static str],
    ) -> Result<tonic::Streaming<String>, Status>;

    /// The number of messages that were read.
    async fn call(&mut self, method: &str, sends: &[&'static str]) -> Result<usize, Status> {
        let mut stream = self.open(method, sends).await?;
        let mut read = 0;
        while stream.message().await?.is_some() {
            read += 1;
        }
        Ok(read)
    }
}

impl<S> Calls for Grpc<S>
where
    S: tower::Service<HttpRequest<Body>, Response = http::Response<Body>>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    async fn open(
        &mut self,
        method: &str,
        sends: &[&'static str],
    ) -> Result<tonic::Streaming<String>, Status> {
        self.ready().await.map_err(|_| Status::unavailable("not ready"))?;
        let path = format!("/{SERVICE}/{method}").parse().unwrap();
        let sends = stream::iter(sends.iter().map(|&text| text.to_owned()).collect::<Vec<_>>());
        Ok(self.streaming(Request::new(sends), path, Text).await?.into_inner())
    }
}

/// The differences between the calls that a side recorded and the expected one.
fn assert_recorded(snapshot: &Snapshot, side: &str, case: &Case, end: End, what: &str) {
    let (go, code, outcome) = end;
    let (service, method) =
        if case.kind == "_OTHER" { ("_OTHER", "_OTHER") } else { (SERVICE, case.method) };
    let name =
        if case.kind == "_OTHER" { "_OTHER".to_owned() } else { format!("{SERVICE}/{method}") };
    let of_method = [("grpc_type", case.kind), ("grpc_service", service), ("grpc_method", method)];
    let and = |label| [of_method.as_slice(), &[label]].concat();
    let (received, sent) = match side {
        "server" => case.messages,
        _ => (case.messages.1, case.messages.0),
    };
    for (metric, labels, expected) in [
        ("started_total", of_method.to_vec(), 1.0),
        ("handled_total", and(("grpc_code", go)), 1.0),
        ("outcomes_total", and(("outcome", outcome)), 1.0),
        ("msg_received_total", of_method.to_vec(), received),
        ("msg_sent_total", of_method.to_vec(), sent),
        ("in_flight", of_method.to_vec(), 0.0),
    ] {
        let metric = format!("grpc_{side}_{metric}");
        // A client whose call is refused may not have sent all.
        let is_certain = !(case.kind == "_OTHER" && metric.contains("_msg_"));
        let found = snapshot.value(&metric, &labels);
        assert!(found == Some(expected) || !is_certain, "{metric} {found:?} {expected}: {what}");
        let total = snapshot.total(&metric, &[]);
        assert!(total == Some(expected) || !is_certain, "{metric} {total:?} in all: {what}");
    }
    let histogram = |metric: &str, labels: &[(&str, &str)]| {
        let found = snapshot.histogram(metric, labels);
        found.map_or(0, |histogram| histogram.count())
    };
    let handling = format!("grpc_{side}_handling_seconds");
    assert_eq!(histogram(&handling, &of_method), 1, "{what}");
    let is_error = match side {
        "server" => {
            matches!(code, "UNKNOWN" | "DEADLINE_EXCEEDED" | "UNIMPLEMENTED" | "UNAVAILABLE")
        }
        _ => code != "OK",
    };
    let labels = [
        ("rpc_system_name", "grpc"),
        ("rpc_method", &*name),
        ("rpc_response_status_code", code),
        ("error_type", if is_error { code } else { "" }),
    ];
    let duration = format!("rpc_{side}_call_duration_seconds");
    assert_eq!(histogram(&duration, &labels), 1, "{what}");
    assert_eq!(histogram(&duration, &[]), 1, "{what}");
    assert_eq!(snapshot.total(&format!("rpc_{side}_active_calls"), &[]), Some(0.0), "{what}");
}

async fn at_rest(registry: &Registry, side: &str, what: &str) -> Snapshot {
    let total = |snapshot: &Snapshot, metric| {
        snapshot.total(&format!("grpc_{side}_{metric}"), &[]).unwrap_or(0.0)
    };
    until(&format!("the {side}'s calls end: {what}"), || {
        let snapshot = registry.snapshot();
        let active = snapshot.total(&format!("rpc_{side}_active_calls"), &[]).unwrap_or(0.0);
        total(&snapshot, "handled_total") >= 1.0
            && total(&snapshot, "in_flight") == 0.0
            && active == 0.0
    })
    .await;
    registry.snapshot()
}

#[tokio::test]
async fn each_call_is_recorded_once_on_both_sides_with_its_status() {
    for case in &CASES {
        let mut sides = Sides::start(None).await;
        sides.call(case).await;
        for (side, registry, end) in
            [("server", &sides.server, case.server_end), ("client", &sides.client, case.client_end)]
        {
            let what = format!("{}, {side}", case.name);
            assert_recorded(&at_rest(registry, side, &what).await, side, case, end, &what);
        }
    }
}

#[tokio::test]
async fn a_call_past_the_limit_of_its_server_is_timed_out() {
    let mut sides = Sides::start(Some(Duration::from_millis(50))).await;
    sides.grpc.call("Show", &["waits"]).await.unwrap_err();
    let case = case("", SHOW, &["waits"], LATE, (1.0, 0.0));
    let snapshot = at_rest(&sides.server, "server", "a limit").await;
    assert_recorded(&snapshot, "server", &case, LATE, "a limit");
}

#[tokio::test]
async fn a_call_past_its_own_deadline_is_timed_out_on_both_sides() {
    // The client gives up by itself.
    let mut sides = Sides::start(None).await;
    sides.grpc.ready().await.unwrap();
    let mut request = Request::new("waits".to_owned());
    request.set_timeout(Duration::from_millis(50));
    let path = format!("/{SERVICE}/Show").parse().unwrap();
    sides.grpc.unary(request, path, Text).await.unwrap_err();
    let snapshot = at_rest(&sides.client, "client", "a deadline").await;
    let case = case("", SHOW, &["waits"], LATE, (1.0, 0.0));
    assert_recorded(&snapshot, "client", &case, LATE, "a deadline");

    // The server learns it from the header.
    for (timeout, wait, code) in [("50m", 50, "DeadlineExceeded"), ("1H", 0, "Canceled")] {
        let registry = Registry::for_test().unwrap();
        let layer = grpc::Layer::server(&services(), &registry).unwrap();
        let inner = Shop::default()
            .map_request(|request: HttpRequest<grpc::RequestBody<Body>>| request.map(Body::new));
        let request = HttpRequest::post(format!("/{SERVICE}/Show"))
            .header("content-type", "application/grpc")
            .header("grpc-timeout", timeout)
            .body(Body::new(http_body_util::Full::from(&b"\0\0\0\0\x05waits"[..])))
            .unwrap();
        let call = layer.layer(inner).oneshot(request);
        tokio::time::timeout(Duration::from_millis(wait), call).await.unwrap_err();
        let labels = [("grpc_method", "Show"), ("grpc_code", code)];
        let total = registry.snapshot().total("grpc_server_handled_total", &labels);
        assert_eq!(total, Some(1.0), "{timeout}");
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_unavailable_to_its_client() {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let registry = Registry::for_test().unwrap();
    let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy();
    let mut client = Grpc::new(metered(channel, &registry));
    client.call("Show", &["1"]).await.unwrap_err();
    let labels = [("grpc_code", "Unavailable"), ("grpc_method", "Show")];
    let total = registry.snapshot().total("grpc_client_handled_total", &labels);
    assert_eq!(total, Some(1.0));
}

#[tokio::test]
async fn every_known_method_is_there_from_the_start_at_zero() {
    let registry = Registry::for_test().unwrap();
    for convention in [Convention::Prometheus, Convention::OpenTelemetry] {
        opts(convention).grpc_server(&services(), &registry).unwrap();
    }
    let snapshot = registry.snapshot();
    for (method, kind) in [SHOW, PUT, WATCH, CHAT] {
        let labels = [("grpc_type", kind), ("grpc_service", SERVICE), ("grpc_method", method)];
        for metric in ["started_total", "msg_received_total", "msg_sent_total", "in_flight"] {
            let value = snapshot.value(&format!("grpc_server_{metric}"), &labels);
            assert_eq!(value, Some(0.0), "{metric} {method}");
        }
        let handled = snapshot.select("grpc_server_handled_total", &labels);
        assert_eq!(handled.count(), 17, "{method}");
        let name = format!("{SERVICE}/{method}");
        let labels = [("rpc_method", &*name), ("rpc_response_status_code", "OK")];
        let duration = snapshot.histogram("rpc_server_call_duration_seconds", &labels);
        assert_eq!(duration.map(|duration| duration.count()), Some(0), "{method}");
    }
}

#[tokio::test]
async fn a_hundred_thousand_unknown_methods_are_one() {
    let registry = Registry::for_test().unwrap();
    let layer = grpc::Layer::server(&services(), &registry).unwrap();
    let inner = Shop::default()
        .map_request(|request: HttpRequest<grpc::RequestBody<Body>>| request.map(Body::new));
    let service = layer.layer(inner);
    let ask = async |path: String, content: &str| {
        let request = HttpRequest::post(path).header("content-type", content).body(Body::empty());
        let response = service.clone().oneshot(request.unwrap()).await.unwrap();
        response.into_body().collect().await.unwrap();
    };
    for n in 2..100_002 {
        let path = match n % 3 {
            0 => format!("/{SERVICE}/Show{n}"),
            1 => format!("/shop.v{n}.Shop/Show"),
            _ => format!("/{n}"),
        };
        ask(path, "application/grpc+proto").await;
    }
    let snapshot = registry.snapshot();
    let others = [("grpc_service", "_OTHER"), ("grpc_method", "_OTHER"), ("grpc_type", "_OTHER")];
    assert_eq!(snapshot.value("grpc_server_started_total", &others), Some(100_000.0));
    // One for each method that is known, and one for all others.
    assert_eq!(snapshot.select("grpc_server_started_total", &[]).count(), 5);

    // Neither a call of a service that is left out nor a request of another protocol is recorded.
    ask("/grpc.health.v1.Health/Check".to_owned(), "application/grpc").await;
    ask("/index.html".to_owned(), "text/html").await;
    assert_eq!(registry.snapshot().total("grpc_server_started_total", &[]), Some(100_000.0));
}

#[test]
fn options_that_have_no_meaning_for_calls_are_refused() {
    let registry = Registry::for_test().unwrap();
    let of = |services: Services, opts: Opts| {
        opts.grpc_server(&services, &registry).unwrap_err().to_string()
    };
    for (refused, expected) in [
        (of(services(), opts(Convention::Caddy)), "Convention::Caddy has no names for gRPC"),
        (
            of(services(), Opts::new().response_label::<bool>("cached")),
            "\"cached\" is of the response",
        ),
        (of(Services::new().methods("a/b", MethodType::Unary, &["C"]), Opts::new()), "\"a/b\""),
        (of(Services::new().methods("a", MethodType::Unary, &[""]), Opts::new()), "\"\""),
        (of(Services::new().leave_out("/a"), Opts::new()), "\"/a\""),
    ] {
        assert!(refused.contains(expected), "{refused}");
    }
}
