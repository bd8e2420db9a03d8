//! Names, units, types and labels, compared with the tables that others publish: OpenTelemetry's semantic conventions
//! 1.44 (docs/http/http-metrics.md, docs/rpc/rpc-metrics.md) and the metrics of go-grpc-middleware's provider for
//! Prometheus (providers/prometheus).

use std::collections::BTreeSet;
use std::convert::Infallible;

use axum::body::Body;
use axum::http::{Method, Request, Response};
use talea::{Escaping, Format, Registry};
use talea_http::client::Servers;
use talea_http::grpc::{self, MethodType, Services};
use talea_http::{Convention, Opts, RequestBody};
use tower::{Layer, ServiceExt, service_fn};

use self::Level::{IfKnown, LeftOut, OptIn, Required};

/// How much a convention asks for an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Required,
    /// Required under a condition, which can be met.
    IfKnown,
    OptIn,
    /// Recommended, and left out here.
    LeftOut,
}

/// The instrument, the unit and the attributes of a metric.
type Published = (&'static str, &'static str, &'static str, &'static [(&'static str, Level)]);

const ACTIVE_ON_SERVER: &[(&str, Level)] = &[
    ("http.request.method", Required),
    ("url.scheme", Required),
    ("server.address", OptIn),
    ("server.port", OptIn),
];

const OF_SERVER: &[(&str, Level)] = &[
    ("http.request.method", Required),
    ("url.scheme", Required),
    ("error.type", IfKnown),
    ("http.response.status_code", IfKnown),
    ("http.route", IfKnown),
    ("network.protocol.version", IfKnown),
    ("server.address", OptIn),
    ("server.port", OptIn),
    ("user_agent.synthetic.type", OptIn),
];

const HTTP_SERVER: &[Published] = &[
    ("http.server.request.duration", "histogram", "s", OF_SERVER),
    ("http.server.active_requests", "updowncounter", "{request}", ACTIVE_ON_SERVER),
    ("http.server.request.body.size", "histogram", "By", OF_SERVER),
    ("http.server.response.body.size", "histogram", "By", OF_SERVER),
];

const OF_CLIENT: &[(&str, Level)] = &[
    ("http.request.method", Required),
    ("server.address", Required),
    ("server.port", Required),
    ("error.type", IfKnown),
    ("http.response.status_code", IfKnown),
    // The version is known with the response only.
    ("network.protocol.version", LeftOut),
    ("url.scheme", OptIn),
    // Opt-in for the duration.
    ("url.template", IfKnown),
];

const ACTIVE_ON_CLIENT: &[(&str, Level)] = &[
    ("server.address", Required),
    ("server.port", Required),
    ("url.template", IfKnown),
    ("http.request.method", IfKnown),
    ("url.scheme", OptIn),
];

const HTTP_CLIENT: &[Published] = &[
    ("http.client.request.duration", "histogram", "s", OF_CLIENT),
    ("http.client.active_requests", "updowncounter", "{request}", ACTIVE_ON_CLIENT),
    ("http.client.request.body.size", "histogram", "By", OF_CLIENT),
    ("http.client.response.body.size", "histogram", "By", OF_CLIENT),
];

const RPC_SERVER: &[Published] = &[(
    "rpc.server.call.duration",
    "histogram",
    "s",
    &[
        ("rpc.system.name", Required),
        ("error.type", IfKnown),
        ("rpc.method", IfKnown),
        ("rpc.response.status_code", IfKnown),
        ("server.address", OptIn),
        ("server.port", OptIn),
    ],
)];

const RPC_CLIENT: &[Published] = &[(
    "rpc.client.call.duration",
    "histogram",
    "s",
    &[
        ("rpc.system.name", Required),
        ("error.type", IfKnown),
        ("rpc.method", IfKnown),
        ("rpc.response.status_code", IfKnown),
        ("server.address", IfKnown),
        ("server.port", IfKnown),
    ],
)];

/// The metrics that the conventions do not have.
const UNPUBLISHED: [&str; 2] = ["rpc_client_active_calls", "rpc_server_active_calls"];

/// The thresholds of all durations there.
const DURATIONS: [&str; 15] = [
    "0.005", "0.01", "0.025", "0.05", "0.075", "0.1", "0.25", "0.5", "0.75", "1.0", "2.5", "5.0",
    "7.5", "10.0", "+Inf",
];

/// An answer that has all attributes.
fn fails() -> Result<Response<Body>, Infallible> {
    let response = Response::builder().status(500).header("grpc-status", "13");
    Ok(response.body(Body::from("on purpose")).unwrap())
}

async fn ask_server(opts: Opts, registry: &Registry) {
    let endpoints = opts.register(registry).unwrap();
    let endpoint = endpoints.declare(&Method::GET, "/items/{id}");
    let layer = endpoints.layer(move |_: &Request<Body>| endpoint);
    let service = layer.layer(service_fn(async |_: Request<RequestBody<Body>>| fails()));
    service.oneshot(Request::new(Body::empty())).await.unwrap();
}

async fn ask_client(opts: Opts, registry: &Registry) {
    let servers = Servers::new().server("stock.example:80", &["/items/{id}"]);
    let layer = opts.client(&servers, registry).unwrap();
    let client = layer.layer(service_fn(async |_: Request<RequestBody<Body>>| fails()));
    let request = Request::get("http://stock.example/items/7").body(Body::empty()).unwrap();
    client.oneshot(request).await.unwrap();
}

async fn call(layer: grpc::Layer) {
    let service = layer.layer(service_fn(async |_: Request<grpc::RequestBody<Body>>| fails()));
    service
        .oneshot(Request::post("/shop.v1.Shop/Show").body(Body::empty()).unwrap())
        .await
        .unwrap();
}

/// The calls of the four types, whose series exist from the start.
fn services() -> Services {
    [
        (MethodType::Unary, "Show"),
        (MethodType::ClientStream, "Put"),
        (MethodType::ServerStream, "Watch"),
        (MethodType::BidiStream, "Chat"),
    ]
    .into_iter()
    .fold(Services::new(), |services, (kind, method)| {
        services.methods("shop.v1.Shop", kind, &[method])
    })
}

fn page(registry: &Registry) -> String {
    let mut scraper = registry.scraper();
    scraper.format(Format::OpenMetrics, Escaping::default());
    String::from_utf8(scraper.scrape().to_vec()).unwrap()
}

/// The texts after a word at the beginning of lines.
fn after<'a>(page: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    page.lines().filter_map(move |line| line.strip_prefix(word))
}

fn metadata<'a>(page: &'a str, word: &str, name: &str) -> Option<&'a str> {
    page.lines().find_map(|line| line.strip_prefix(&format!("# {word} {name} ")))
}

/// The labels of the series whose lines begin with a name, without `le`. A label that is empty is not shown.
fn labels(page: &str, sample: &str) -> BTreeSet<String> {
    let start = format!("{sample}{{");
    let series = after(page, &start).filter_map(|line| line.split_once("} "));
    let labels = series.flat_map(|(labels, _)| labels.split("\","));
    let names = labels.filter_map(|label| label.split_once('=')).map(|(name, _)| name.to_owned());
    names.filter(|name| name != "le").collect()
}

/// A name as the exporter for Prometheus writes it.
fn written(name: &str) -> String {
    name.replace('.', "_")
}

fn assert_published(page: &str, metrics: &[Published]) {
    for &(name, instrument, unit, attributes) in metrics {
        let (kind, suffix, sample) = match (instrument, unit) {
            ("histogram", "s") => ("histogram", "_seconds", "_bucket"),
            ("histogram", "By") => ("histogram", "_bytes", "_bucket"),
            _ => ("gauge", "", ""),
        };
        let family = format!("{}{suffix}", written(name));
        assert_eq!(metadata(page, "TYPE", &family), Some(kind), "{family}: {page}");
        let unit = suffix.strip_prefix('_');
        assert_eq!(metadata(page, "UNIT", &family), unit, "{family}");
        let asked = attributes.iter().filter(|(_, level)| matches!(level, Required | IfKnown));
        let expected: BTreeSet<String> = asked.map(|(name, _)| written(name)).collect();
        assert_eq!(labels(page, &format!("{family}{sample}")), expected, "{family}");
        if unit == Some("seconds") {
            let start = format!("{family}_bucket{{");
            let bounds = after(page, &start).filter_map(|line| line.split_once("le=\""));
            let bounds: Vec<_> = bounds.filter_map(|(_, bound)| bound.split('"').next()).collect();
            assert_eq!(bounds[..DURATIONS.len()], DURATIONS, "{family}");
        }
    }
    let known: BTreeSet<String> = metrics.iter().map(|(name, ..)| written(name)).collect();
    for family in after(page, "# TYPE ").filter_map(|line| line.split(' ').next()) {
        let name = family.trim_end_matches("_seconds").trim_end_matches("_bytes");
        let is_own = UNPUBLISHED.contains(&name) || name.starts_with("talea_");
        assert!(is_own || known.contains(name), "{family} is not published");
    }
}

#[tokio::test]
async fn opentelemetrys_names_units_and_attributes_are_the_published_ones() {
    let opts = || Opts::new().convention(Convention::OpenTelemetry);
    let registry = || Registry::for_test().unwrap();

    let server = registry();
    ask_server(opts(), &server).await;
    assert_published(&page(&server), HTTP_SERVER);

    let client = registry();
    ask_client(opts(), &client).await;
    assert_published(&page(&client), HTTP_CLIENT);

    let rpc_server = registry();
    call(opts().grpc_server(&services(), &rpc_server).unwrap()).await;
    assert_published(&page(&rpc_server), RPC_SERVER);

    let rpc_client = registry();
    let to_shop = opts().constant_label("server_address", "shop.example");
    let to_shop = to_shop.constant_label("server_port", "50051");
    call(to_shop.grpc_client(&services(), &rpc_client).unwrap()).await;
    assert_published(&page(&rpc_client), RPC_CLIENT);
}

const METHOD: [&str; 3] = ["grpc_method", "grpc_service", "grpc_type"];
const HANDLED: [&str; 4] = ["grpc_code", "grpc_method", "grpc_service", "grpc_type"];

/// The families of the provider: the name, the type, the help, the labels.
type OfProvider = (&'static str, &'static str, &'static str, &'static [&'static str]);

const PROVIDER_SERVER: [OfProvider; 5] = [
    ("grpc_server_started", "counter", "Total number of RPCs started on the server.", &METHOD),
    (
        "grpc_server_handled",
        "counter",
        "Total number of RPCs completed on the server, regardless of success or failure.",
        &HANDLED,
    ),
    (
        "grpc_server_msg_received",
        "counter",
        "Total number of RPC stream messages received on the server.",
        &METHOD,
    ),
    (
        "grpc_server_msg_sent",
        "counter",
        "Total number of gRPC stream messages sent by the server.",
        &METHOD,
    ),
    (
        "grpc_server_handling_seconds",
        "histogram",
        "Histogram of response latency (seconds) of gRPC that had been application-level handled by the server.",
        &METHOD,
    ),
];

const PROVIDER_CLIENT: [OfProvider; 5] = [
    ("grpc_client_started", "counter", "Total number of RPCs started on the client.", &METHOD),
    (
        "grpc_client_handled",
        "counter",
        "Total number of RPCs completed by the client, regardless of success or failure.",
        &HANDLED,
    ),
    (
        "grpc_client_msg_received",
        "counter",
        "Total number of RPC stream messages received by the client.",
        &METHOD,
    ),
    (
        "grpc_client_msg_sent",
        "counter",
        "Total number of gRPC stream messages sent by the client.",
        &METHOD,
    ),
    (
        "grpc_client_handling_seconds",
        "histogram",
        "Histogram of response latency (seconds) of the gRPC until it is finished by the application.",
        &METHOD,
    ),
];

/// `codes.Code.String()` of Go.
const CODES: [&str; 17] = [
    "Aborted",
    "AlreadyExists",
    "Canceled",
    "DataLoss",
    "DeadlineExceeded",
    "FailedPrecondition",
    "Internal",
    "InvalidArgument",
    "NotFound",
    "OK",
    "OutOfRange",
    "PermissionDenied",
    "ResourceExhausted",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "Unknown",
];

#[test]
fn a_dashboard_of_go_grpc_middleware_finds_what_it_asks_for() {
    for (side, provider) in [("server", PROVIDER_SERVER), ("client", PROVIDER_CLIENT)] {
        let registry = Registry::for_test().unwrap();
        let layer = match side {
            "server" => Opts::new().grpc_server(&services(), &registry),
            _ => Opts::new().grpc_client(&services(), &registry),
        };
        let _: grpc::Layer = layer.unwrap();
        let page = page(&registry);
        for (family, kind, help, expected) in provider {
            assert_eq!(metadata(&page, "TYPE", family), Some(kind), "{family}");
            assert_eq!(metadata(&page, "HELP", family), Some(help), "{family}");
            let sample = if kind == "counter" { "_total" } else { "_bucket" };
            let expected = expected.iter().map(|&label| label.to_owned()).collect();
            assert_eq!(labels(&page, &format!("{family}{sample}")), expected, "{family}");
        }
        for (kind, method) in [
            ("unary", "Show"),
            ("client_stream", "Put"),
            ("server_stream", "Watch"),
            ("bidi_stream", "Chat"),
        ] {
            let start = format!(
                "grpc_{side}_handled_total{{grpc_type=\"{kind}\",grpc_service=\"shop.v1.Shop\",\
                 grpc_method=\"{method}\",grpc_code=\""
            );
            let codes = after(&page, &start).filter_map(|line| line.split('"').next());
            assert!(codes.collect::<BTreeSet<_>>().into_iter().eq(CODES), "{side} {method}");
        }
        let start = format!("grpc_{side}_handling_seconds_bucket{{");
        let bounds = after(&page, &start).filter_map(|line| line.split_once("le=\""));
        let bounds = bounds.filter_map(|(_, bound)| bound.split('"').next());
        // `prometheus.DefBuckets`.
        let expected = [
            "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0",
            "+Inf",
        ];
        assert!(bounds.take(expected.len()).eq(expected), "{side}");
    }
}
