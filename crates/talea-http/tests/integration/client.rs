//! Outgoing requests over real connections, by hyper-util's client with the layer and by reqwest with the
//! middleware: whatever the server does, each request is recorded once.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Method, Request, Response, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect};
use axum::routing::{any, get, post};
use futures_util::{StreamExt, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use talea::Registry;
use talea_http::client::{ConnectionLayer, Layer, Middleware, Servers};
use talea_http::{Convention, Opts, RequestBody};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tower::{Layer as _, ServiceExt, service_fn};

use crate::cases::bodies::{BoxBody, End, Pieces, boxed, whole};
use crate::support::client::{loopback, serve};
use crate::support::wait::until;

/// What a caller does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    Reads,
    DropsBody,
    DropsRequest,
    /// Its own limit passes.
    Limits,
    /// The request's body fails.
    FailsBody,
    /// The request's body does not end.
    SendsOn,
}

#[derive(Clone, Copy, Debug)]
enum Server {
    Serves,
    /// Has a name that is not resolved.
    Nowhere,
    /// Has no listener.
    Closed,
    /// Answers a TLS handshake by HTTP.
    SpeaksPlain,
}

#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    method: &'static str,
    path: &'static str,
    caller: Caller,
    server: Server,
    doors: &'static [Door],
    route: &'static str,
    status: Option<u16>,
    error: &'static str,
    outcome: &'static str,
    error_type: &'static str,
    sizes: (f64, Option<f64>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Layer,
    Reqwest,
}

const BOTH: &[Door] = &[Door::Layer, Door::Reqwest];

const fn case(name: &'static str, method: &'static str, path: &'static str) -> Case {
    Case {
        name,
        method,
        path,
        caller: Caller::Reads,
        server: Server::Serves,
        doors: BOTH,
        route: path,
        status: Some(200),
        error: "",
        outcome: "complete",
        error_type: "",
        sizes: (0.0, Some(0.0)),
    }
}

/// A request that has no response.
const fn lost(name: &'static str, path: &'static str, error: &'static str) -> Case {
    Case { status: None, error, outcome: "failed", error_type: error, ..case(name, "GET", path) }
}

const CASES: [Case; 29] = [
    Case { route: "/items/{id}", sizes: (0.0, Some(9.0)), ..case("a body", "GET", "/items/7") },
    Case { route: "/items/{id}", ..case("a HEAD", "HEAD", "/items/7") },
    Case { sizes: (5.0, Some(5.0)), ..case("a body both ways", "POST", "/echo") },
    Case { status: Some(204), ..case("no content", "GET", "/204") },
    Case {
        status: Some(404),
        route: "_unmatched",
        error_type: "404",
        ..case("a path without a template", "GET", "/nowhere")
    },
    Case { status: Some(503), error_type: "503", ..case("an error of the server", "GET", "/503") },
    Case {
        status: Some(504),
        error_type: "504",
        outcome: "timed_out",
        ..case("a time-out of the server", "GET", "/504")
    },
    Case {
        status: Some(500),
        error_type: "500",
        sizes: (0.0, Some(16.0)),
        ..case("a panic of the server", "GET", "/panic")
    },
    Case {
        doors: &[Door::Layer],
        status: Some(303),
        ..case("a redirect that is not followed", "GET", "/redirect")
    },
    Case {
        doors: &[Door::Reqwest],
        sizes: (0.0, Some(9.0)),
        ..case("a redirect that is followed", "GET", "/redirect")
    },
    Case { doors: &[Door::Reqwest], ..lost("too many redirects", "/circle", "redirect") },
    Case {
        outcome: "failed",
        error_type: "body",
        sizes: (0.0, None),
        ..case("a body that breaks off", "GET", "/breaks")
    },
    Case {
        caller: Caller::DropsBody,
        outcome: "aborted",
        sizes: (0.0, None),
        ..case("a body that is not read", "GET", "/endless")
    },
    Case {
        caller: Caller::DropsRequest,
        outcome: "aborted",
        ..lost("a request that is dropped", "/never", "cancelled")
    },
    Case {
        caller: Caller::Limits,
        outcome: "timed_out",
        ..lost("a limit of the caller", "/never", "timeout")
    },
    Case {
        caller: Caller::FailsBody,
        doors: &[Door::Layer],
        method: "POST",
        sizes: (1000.0, Some(0.0)),
        ..lost("a body of the request that fails", "/echo", "body")
    },
    lost("a connection that breaks off", "/hangs-up", "other"),
    Case { server: Server::Nowhere, route: "", ..lost("an unknown name", "/", "resolve") },
    Case { server: Server::Closed, ..lost("no listener", "/204", "connect") },
    Case { server: Server::SpeaksPlain, doors: &[Door::Layer], ..lost("no TLS", "/204", "tls") },
    Case {
        route: "/items/{id}",
        status: Some(405),
        error_type: "405",
        ..case("an unusual method", "BREW", "/items/7")
    },
    Case { sizes: (0.0, Some(3.0)), ..case("hints before the head", "GET", "/hints") },
    Case { sizes: (5.0, Some(0.0)), ..case("a 100 before the head", "POST", "/continue") },
    Case { sizes: (0.0, Some(3.0)), ..case("trailers", "GET", "/trailers") },
    Case { status: Some(101), ..case("an upgrade", "GET", "/upgrades") },
    Case {
        caller: Caller::SendsOn,
        status: Some(413),
        error_type: "413",
        doors: &[Door::Layer],
        sizes: (1000.0, Some(3.0)),
        ..case("an early answer to a large body", "POST", "/too-large")
    },
    Case {
        caller: Caller::SendsOn,
        status: Some(413),
        error_type: "413",
        doors: &[Door::Reqwest],
        // It has no length.
        sizes: (0.0, Some(3.0)),
        ..case("an early answer to a stream", "POST", "/too-large")
    },
    lost("an answer that is no HTTP", "/nonsense", "other"),
    lost("a head that is cut off", "/cut", "other"),
];

/// Answers of a server that reads no body, byte by byte, by their paths.
const ANSWERS: [(&str, &str); 7] = [
    (
        "/hints",
        "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc",
    ),
    ("/continue", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
    (
        "/trailers",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x\r\n\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\n",
    ),
    (
        "/upgrades",
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n",
    ),
    ("/too-large", "HTTP/1.1 413 Content Too Large\r\ncontent-length: 3\r\n\r\nabc"),
    ("/nonsense", "220 ready\r\n\r\n"),
    ("/cut", "HTTP/1.1 200 O"),
];

/// A server that sends an answer once it has a head, and some of a body that does not end. Then it sends no more.
async fn answering(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let least = if answer.contains("413") { 1_000 } else { 0 };
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut read = Vec::new();
                while !read.windows(4).any(|end| end == b"\r\n\r\n") || read.len() < least {
                    assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0);
                }
                stream.write_all(answer.as_bytes()).await.unwrap();
                stream.shutdown().await.unwrap();
                let _ = stream.read_to_end(&mut read).await;
            });
        }
    });
    address
}

/// A body of a piece, after which another one does not come.
fn sends_on() -> impl hyper::body::Body<Data = Bytes, Error = io::Error> + Send + Sync + 'static {
    let piece = Ok::<_, io::Error>(Frame::data(Bytes::from_static(&[b'x'; 1000])));
    StreamBody::new(stream::iter([piece]).chain(stream::pending()))
}

const TEMPLATES: [&str; 19] = [
    "/items/{id}",
    "/echo",
    "/204",
    "/503",
    "/504",
    "/panic",
    "/redirect",
    "/circle",
    "/breaks",
    "/endless",
    "/never",
    "/hangs-up",
    "/hints",
    "/continue",
    "/trailers",
    "/upgrades",
    "/too-large",
    "/nonsense",
    "/cut",
];

async fn started(waits: Arc<Notify>) -> SocketAddr {
    let code = |code: u16| any(move || std::future::ready(StatusCode::from_u16(code).unwrap()));
    let never = async move || -> StatusCode {
        waits.notify_one();
        pending().await
    };
    let app = axum::Router::new()
        .route("/items/{id}", get(async || "some item"))
        .route("/echo", post(async |body: Bytes| body))
        .route("/204", code(204))
        .route("/503", code(503))
        .route("/504", code(504))
        .route("/panic", get(async || (StatusCode::INTERNAL_SERVER_ERROR, "Service panicked")))
        .route("/redirect", get(async || Redirect::to("/items/7")))
        .route("/circle", get(async || Redirect::to("/circle")))
        .route("/breaks", get(breaks))
        .route("/endless", get(async || Body::new(Pieces::new(u64::MAX, End::Complete))))
        .route("/never", get(never));
    serve(app).await
}

/// A body that fails before its end.
async fn breaks() -> impl IntoResponse {
    ([("content-length", "100000")], Body::new(Pieces::new(3, End::Error)))
}

/// A server that closes each connection once it has read of it.
async fn hanging_up() -> SocketAddr {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move { stream.readable().await });
        }
    });
    address
}

type Connecting = Pin<Box<dyn Future<Output = io::Result<TokioIo<TcpStream>>> + Send>>;

/// Begins TLS with a server that does not speak it.
fn begins_tls(uri: Uri) -> Connecting {
    Box::pin(async move {
        let stream = TcpStream::connect((uri.host().unwrap(), uri.port_u16().unwrap())).await?;
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(config));
        let name = "shop.example".try_into().unwrap();
        Ok(TokioIo::new(connector.connect(name, stream).await?.into_inner().0))
    })
}

struct Run {
    registry: Registry,
    url: String,
    listed: String,
    layer: Layer,
    waits: Arc<Notify>,
}

impl Run {
    async fn new(case: &Case, convention: Convention) -> Self {
        let (registry, waits) = (Registry::for_test().unwrap(), Arc::new(Notify::new()));
        let address = match (case.server, case.path) {
            (Server::Closed, _) => {
                TcpListener::bind(loopback()).await.unwrap().local_addr().unwrap()
            }
            (_, "/hangs-up") => hanging_up().await,
            (_, path) => match ANSWERS.iter().find(|(of, _)| *of == path) {
                Some(&(_, answer)) => answering(answer).await,
                None => started(Arc::clone(&waits)).await,
            },
        };
        let listed = address.to_string();
        let servers = Servers::new().server("other.example", &[]).server(&listed, &TEMPLATES);
        let opts = Opts::new().convention(convention).detailed();
        let layer = opts.client(&servers, &registry).unwrap();
        let origin = match case.server {
            Server::Nowhere => "http://nowhere.invalid".to_owned(),
            Server::SpeaksPlain => format!("https://{listed}"),
            _ => format!("http://{listed}"),
        };
        Self { registry, url: format!("{origin}{}", case.path), listed, layer, waits }
    }

    async fn by_layer(&self, case: &Case) {
        let body = match (case.method, case.caller) {
            (_, Caller::FailsBody) => boxed(Pieces::new(1, End::Error)),
            (_, Caller::SendsOn) => boxed(sends_on()),
            ("POST", _) => whole(5),
            _ => whole(0),
        };
        let request = Request::builder().method(case.method).uri(&self.url).body(body).unwrap();
        let executor = TokioExecutor::new();
        let layer = self.layer;
        match (case.server, case.caller) {
            (Server::SpeaksPlain, _) => {
                let client: Client<_, RequestBody<BoxBody>> =
                    Client::builder(executor).build(service_fn(begins_tls));
                layer.layer(client).oneshot(request).await.unwrap_err();
            }
            (_, Caller::Limits) => {
                let limited = service_fn(|request: Request<RequestBody<BoxBody>>| async {
                    let client: Client<HttpConnector, _> =
                        Client::builder(TokioExecutor::new()).build_http();
                    let limit = Duration::from_millis(50);
                    let limited = tokio::time::timeout(limit, client.request(request));
                    limited.await.map_err(io::Error::other)?.map_err(io::Error::other)
                });
                layer.layer(limited).oneshot(request).await.unwrap_err();
            }
            _ => {
                let client: Client<HttpConnector, RequestBody<BoxBody>> =
                    Client::builder(executor).build_http();
                let response = layer.layer(client).oneshot(request);
                let response = async { response.await.ok().map(|response| response.map(read_on)) };
                self.finish(case, response).await;
            }
        }
    }

    async fn by_reqwest(&self, case: &Case) {
        let client = reqwest_middleware::ClientBuilder::new(reqwest::Client::new())
            .with(Middleware::from(self.layer))
            .build();
        let mut request = client.request(case.method.parse::<Method>().unwrap(), &self.url);
        request = match (case.method, case.caller) {
            (_, Caller::SendsOn) => request.body(reqwest::Body::wrap(sends_on())),
            ("POST", _) => request.body("12345"),
            _ => request,
        };
        if case.caller == Caller::Limits {
            request = request.timeout(Duration::from_millis(50));
        }
        let response = async {
            let response = request.send().await.ok()?;
            let url = if case.path == "/redirect" { "/items/7" } else { case.path };
            assert_eq!(response.url().path(), url, "{}", case.name);
            Some(Response::<reqwest::Body>::from(response).map(read_on))
        };
        self.finish(case, response).await;
    }

    async fn finish(&self, case: &Case, response: impl Future<Output = Option<Response<ReadOn>>>) {
        if case.caller == Caller::DropsRequest {
            tokio::select! {
                _ = response => panic!("{}: there is a response", case.name),
                () = self.waits.notified() => return,
            }
        }
        let response = response.await;
        let status = response.as_ref().map(|response| response.status().as_u16());
        assert_eq!(status, case.status, "{}", case.name);
        let Some(response) = response else { return };
        let mut body = response.into_body();
        let mut frames = 0;
        while let Some(Ok(_)) = body.frame().await {
            frames += 1;
            if case.caller == Caller::DropsBody && frames == 2 {
                return;
            }
        }
    }
}

type ReadOn = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

fn read_on<B>(body: B) -> ReadOn
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    body.map_err(Into::into).boxed_unsync()
}

/// The labels of the endpoint in a convention, and those of a request's response and end.
fn assert_recorded(run: &Run, case: &Case, convention: Convention, what: &str) {
    let snapshot = run.registry.snapshot();
    let method = if case.method == "BREW" { "_OTHER" } else { case.method };
    let is_other = matches!(case.server, Server::Nowhere);
    let (server, route) = if is_other { ("_other", "") } else { (&*run.listed, case.route) };
    let mut endpoint = vec![("method", method), ("server", server), ("route", route)];
    let prefix = "http_client_";
    if convention == Convention::Prometheus {
        let status = match case.status {
            Some(code) => format!("{}xx", code / 100),
            None => "_OTHER".to_owned(),
        };
        let counted = [&*endpoint, &[("status", &*status), ("error", case.error)]].concat();
        let ended = [&*endpoint, &[("outcome", case.outcome)]].concat();
        for (metric, labels) in [("requests_total", counted), ("request_outcomes_total", ended)] {
            let metric = format!("{prefix}{metric}");
            let text = snapshot.to_text();
            assert_eq!(
                snapshot.value(&metric, &labels),
                Some(1.0),
                "{metric} {labels:?} {what}\n{text}"
            );
            assert_eq!(snapshot.total(&metric, &[]), Some(1.0), "{metric} {what}");
        }
    } else {
        let (address, port) = match server.rsplit_once(':') {
            Some(parts) => parts,
            None => (server, ""),
        };
        let code = case.status.map_or_else(String::new, |code| code.to_string());
        let template = if route == "_unmatched" { "" } else { route };
        endpoint = vec![
            ("http_request_method", method),
            ("server_address", address),
            ("server_port", port),
            ("url_template", template),
        ];
        let response = [("http_response_status_code", &*code), ("error_type", case.error_type)];
        let all = [&*endpoint, &response].concat();
        let metric = format!("{prefix}request_duration_seconds");
        let duration = snapshot.histogram(&metric, &all);
        assert_eq!(duration.map(|all| all.count()), Some(1), "{all:?} {what}");
    }
    let mut histograms = vec!["request_duration_seconds", "request_body_size_bytes"];
    histograms.push("response_body_size_bytes");
    if convention == Convention::Prometheus {
        histograms.push("exchange_duration_seconds");
    }
    let (sent, received) = case.sizes;
    for metric in histograms {
        let metric = format!("{prefix}{metric}");
        let found = snapshot.histogram(&metric, &endpoint).unwrap();
        // There is a time to the head if there is a head, and to the end of each.
        assert_eq!(found.count(), 1, "{metric} {what}");
        let all = snapshot.histogram(&metric, &[]).unwrap();
        assert_eq!(all.count(), 1, "{metric} {what}");
        let size = match metric.as_str() {
            "http_client_request_body_size_bytes" => Some(sent),
            "http_client_response_body_size_bytes" => received,
            _ => None,
        };
        assert_eq!(size.unwrap_or(found.sum()), found.sum(), "{metric} {what}");
    }
}

fn in_flight(registry: &Registry) -> f64 {
    let snapshot = registry.snapshot();
    let names = ["http_client_requests_in_flight", "http_client_active_requests"];
    names.iter().filter_map(|name| snapshot.total(name, &[])).sum()
}

/// Whether the request has ended, and its body, which a client may hold longer.
fn is_recorded(registry: &Registry) -> bool {
    let body = registry.snapshot().histogram("http_client_request_body_size_bytes", &[]);
    in_flight(registry) == 0.0 && body.is_some_and(|body| body.count() > 0)
}

/// Sends a request anew after a 503, as retries outside of the meter do.
struct Retries;

#[async_trait::async_trait]
impl reqwest_middleware::Middleware for Retries {
    async fn handle(
        &self,
        request: reqwest::Request,
        extensions: &mut axum::http::Extensions,
        next: reqwest_middleware::Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        let first = next.clone().run(request.try_clone().unwrap(), extensions).await?;
        match first.status() {
            StatusCode::SERVICE_UNAVAILABLE => next.run(request, extensions).await,
            _ => Ok(first),
        }
    }
}

#[tokio::test]
async fn each_attempt_counts_if_the_retries_are_outside_and_the_last_one_if_they_are_inside() {
    for (is_outside, expected) in [(true, 2.0), (false, 1.0)] {
        let address = started(Arc::new(Notify::new())).await;
        let registry = Registry::for_test().unwrap();
        let servers = Servers::new().server(&address.to_string(), &TEMPLATES);
        let metered = Middleware::from(Layer::new(&servers, &registry).unwrap());
        let client = reqwest_middleware::ClientBuilder::new(reqwest::Client::new());
        let client = match is_outside {
            true => client.with(Retries).with(metered),
            false => client.with(metered).with(Retries),
        };
        let response = client.build().get(format!("http://{address}/503")).send().await.unwrap();
        assert_eq!(response.status(), 503);
        drop(response);
        until("the end", || in_flight(&registry) == 0.0).await;
        let labels = [("route", "/503"), ("status", "5xx")];
        let requests = registry.snapshot().total("http_client_requests_total", &labels);
        assert_eq!(requests, Some(expected), "outside: {is_outside}");
    }
}

#[tokio::test]
async fn each_request_is_recorded_once_by_its_server_and_its_template() {
    for convention in [Convention::Prometheus, Convention::OpenTelemetry] {
        for case in &CASES {
            for door in case.doors {
                let what = format!("{}, by {door:?}, {convention:?}", case.name);
                let run = Run::new(case, convention).await;
                match door {
                    Door::Layer => run.by_layer(case).await,
                    Door::Reqwest => run.by_reqwest(case).await,
                }
                until(&what, || is_recorded(&run.registry)).await;
                assert_recorded(&run, case, convention, &what);
            }
        }
    }
}

#[tokio::test]
async fn four_hundred_thousand_paths_and_servers_are_as_many_series_as_one() {
    let registry = Registry::for_test().unwrap();
    let servers = Servers::new().server("stock.example", &["/items/{id}"]);
    let layer = Layer::new(&servers, &registry).unwrap();
    let service = layer.layer(service_fn(async |_: Request<RequestBody<BoxBody>>| {
        Ok::<_, io::Error>(Response::new(whole(0)))
    }));
    for n in 0..400_000 {
        let url = match n % 4 {
            0 => format!("http://stock.example/items/{n}"),
            1 => format!("http://stock.example/{n}/x"),
            2 => format!("http://stock{n}.example/items/1"),
            _ => format!("http://STOCK.example:{}/items/{n}", n % 60_000 + 1),
        };
        let request = Request::builder().uri(url).body(whole(0)).unwrap();
        service.oneshot(request).await.unwrap();
    }
    let snapshot = registry.snapshot();
    for (server, route, expected) in [
        ("stock.example", "/items/{id}", 200_000.0),
        ("stock.example", "_unmatched", 100_000.0),
        ("_other", "", 100_000.0),
    ] {
        let labels = [("server", server), ("route", route), ("method", "GET"), ("status", "2xx")];
        assert_eq!(
            snapshot.total("http_client_requests_total", &labels),
            Some(expected),
            "{route}"
        );
    }
    assert_eq!(snapshot.select("http_client_requests_in_flight", &[]).count(), 3);
}

#[test]
fn a_port_that_is_listed_is_that_port_alone() {
    let registry = Registry::for_test().unwrap();
    let servers = Servers::new().server("a.example:8443", &[]).server("[::1]", &[]);
    let layer = Layer::new(&servers, &registry).unwrap();
    let service = layer.layer(service_fn(async |_: Request<RequestBody<BoxBody>>| {
        Ok::<_, io::Error>(Response::new(whole(0)))
    }));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for (url, host, server) in [
        ("https://a.example:8443/", "", "a.example:8443"),
        ("https://a.example/", "", "_other"),
        ("/", "A.example:8443", "a.example:8443"),
        ("/", "a.example", "_other"),
        ("http://[::1]:9000/", "", "[::1]"),
        ("/", "[::1]", "[::1]"),
        ("/", "[::1]:80", "[::1]"),
    ] {
        let labels = [("server", server)];
        let total = || registry.snapshot().total("http_client_requests_total", &labels).unwrap();
        let before = total();
        let request = Request::builder().uri(url).header("host", host).body(whole(0)).unwrap();
        runtime.block_on(service.oneshot(request)).unwrap();
        assert_eq!(total(), before + 1.0, "{url} {host}");
    }
}

#[test]
fn servers_and_options_that_cannot_be_used_are_refused() {
    let registry = Registry::for_test().unwrap();
    let of =
        |servers: Servers, opts: Opts| opts.client(&servers, &registry).unwrap_err().to_string();
    let servers = Servers::new;
    for (refused, expected) in [
        (
            of(servers(), Opts::new().convention(Convention::Caddy)),
            "no names for outgoing requests",
        ),
        (of(servers(), Opts::new().hosts(&["a.example"])), "list the servers in Servers"),
        (
            of(servers().server("http://a.example", &[]), Opts::new()),
            "\"http://a.example\" is not a valid",
        ),
        (of(servers().server("u@a.example", &[]), Opts::new()), "\"u@a.example\" is not a valid"),
        (of(servers().server("", &[]), Opts::new()), "\"\" is not a valid server"),
        (of(servers().server("a.example", &["/{a}", "/{b}"]), Opts::new()), "\"/{b}\", a template"),
    ] {
        assert!(refused.contains(expected), "{refused}");
    }
}

/// The values of the metrics of connections to a server: open, made, timed.
fn connections(registry: &Registry, server: &str) -> (f64, f64, u64) {
    let (snapshot, label) = (registry.snapshot(), ("server", server));
    let value = |name, labels: &[(&str, &str)]| snapshot.expect_value(name, labels);
    let durations = snapshot.histogram("http_client_connect_duration_seconds", &[label]).unwrap();
    (
        value("http_client_open_connections", &[label]),
        value("http_client_connects_total", &[label, ("error", "")]),
        durations.count(),
    )
}

#[tokio::test]
async fn a_connection_counts_when_it_is_made_and_is_open_until_it_is_closed() {
    let registry = Registry::for_test().unwrap();
    let address = started(Arc::default()).await;
    let listed = address.to_string();
    let servers = Servers::new().server("other.example", &[]).server(&listed, &[]);
    let layer = ConnectionLayer::new(&servers, &registry).unwrap();
    for server in [&*listed, "other.example", "_other"] {
        assert_eq!(connections(&registry, server), (0.0, 0.0, 0), "before the first request");
    }
    let connector = layer.layer(HttpConnector::new());
    let url: Uri = format!("http://{address}/items/7").parse().unwrap();
    let other = connector.clone().oneshot(url.clone()).await.unwrap();
    assert_eq!(connections(&registry, &listed), (1.0, 1.0, 1));
    let client: Client<_, BoxBody> = Client::builder(TokioExecutor::new()).build(connector);
    let request = Request::get(&url).body(whole(0)).unwrap();
    let response = client.request(request).await.unwrap();
    assert_eq!(connections(&registry, &listed), (2.0, 2.0, 2));
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "some item");
    drop(other);
    assert_eq!(connections(&registry, &listed), (1.0, 2.0, 2));
    drop(client);
    until("all are closed", || connections(&registry, &listed) == (0.0, 2.0, 2)).await;
    assert_eq!(connections(&registry, "other.example"), (0.0, 0.0, 0));
}

#[tokio::test]
async fn a_connection_that_fails_is_counted_by_its_error() {
    let closed = TcpListener::bind(loopback()).await.unwrap().local_addr().unwrap();
    let plain = started(Arc::default()).await;
    let accepts = TcpListener::bind(loopback()).await.unwrap();
    let silent = accepts.local_addr().unwrap();
    for (error, url) in [
        ("connect", format!("http://{closed}/")),
        ("resolve", "http://nowhere.invalid/".to_owned()),
        ("tls", format!("https://{plain}/")),
        ("cancelled", format!("https://{silent}/")),
    ] {
        let registry = Registry::for_test().unwrap();
        let layer = ConnectionLayer::new(&Servers::new(), &registry).unwrap();
        let uri: Uri = url.parse().unwrap();
        if url.starts_with("https") {
            let connects = layer.layer(service_fn(begins_tls)).oneshot(uri);
            tokio::select! {
                connected = connects => drop(connected.err().unwrap()),
                _ = accepts.accept() => {}
            }
        } else {
            layer.layer(HttpConnector::new()).oneshot(uri).await.err().unwrap();
        }
        let snapshot = registry.snapshot();
        let labels = [("server", "_other"), ("error", error)];
        snapshot.assert_value("http_client_connects_total", &labels, 1.0);
        assert_eq!(snapshot.total("http_client_connects_total", &[]), Some(1.0), "{error}");
        assert_eq!(connections(&registry, "_other"), (0.0, 0.0, 0), "{error}");
    }
}

#[test]
fn connections_to_a_server_that_is_none_are_refused() {
    let registry = Registry::for_test().unwrap();
    let servers = Servers::new().server("a b", &[]);
    let refused = ConnectionLayer::new(&servers, &registry).unwrap_err().to_string();
    assert!(refused.contains("\"a b\" is not a valid server"), "{refused}");
}
