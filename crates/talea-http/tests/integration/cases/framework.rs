//! The table of cases for frameworks with servers of their own, over real connections: whatever clients and handlers
//! do, each request is recorded once, at its route. The package `frameworks` includes this file too.

use std::net::SocketAddr;

use talea::{Registry, Snapshot};
use talea_http::{Convention, Endpoints, Opts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::support::wait::{LONGEST, until};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Client {
    Reads,
    /// Resets the connection while the handler waits.
    ResetsWhileItWaits,
    /// Resets it once it has some of the response, or once some of its own body is read.
    ResetsInResponse,
    ResetsInRequest,
}

struct Case {
    name: &'static str,
    method: &'static str,
    path: &'static str,
    client: Client,
    body: &'static str,
    declared: &'static str,
    route: &'static str,
    status: Option<u16>,
    outcome: &'static str,
    error_type: &'static str,
    sizes: (Option<f64>, Option<f64>),
}

const fn case(name: &'static str, method: &'static str, path: &'static str, status: u16) -> Case {
    Case {
        name,
        method,
        path,
        client: Client::Reads,
        body: "",
        declared: method,
        route: path,
        status: Some(status),
        outcome: "complete",
        error_type: "",
        sizes: (Some(0.0), Some(0.0)),
    }
}

/// A request that does not end as it should.
const fn broken(case: Case, outcome: &'static str, error_type: &'static str) -> Case {
    Case { outcome, error_type, sizes: (None, None), ..case }
}

/// What differs between frameworks.
pub(crate) struct Framework {
    /// The status of a method that a route does not have.
    pub(crate) undeclared: u16,
    /// The bytes that are recorded of an error that a handler returns.
    pub(crate) error: f64,
    /// The status if a client resets its request in the body; `None` if the handler is dropped.
    pub(crate) reset: Option<u16>,
    /// The route of `/unlisted`, which is not listed; empty if only listed ones are known.
    pub(crate) unlisted: &'static str,
}

const fn cases(framework: &Framework) -> [Case; 20] {
    [
        Case {
            route: "/items/{id}",
            sizes: (Some(0.0), Some(7.0)),
            ..case("a buffered body", "GET", "/items/7", 200)
        },
        case("no content", "GET", "/204", 204),
        Case { sizes: (Some(0.0), Some(7.0)), ..case("a 404 of a handler", "GET", "/404", 404) },
        Case { error_type: "503", ..case("an error of the server", "GET", "/503", 503) },
        Case { outcome: "timed_out", error_type: "timeout", ..case("a 504", "GET", "/504", 504) },
        Case {
            sizes: (Some(0.0), Some(framework.error)),
            ..case("an error that a handler returns", "GET", "/errs", 404)
        },
        Case { declared: "GET", ..case("a HEAD", "HEAD", "/head", 200) },
        Case { sizes: (Some(0.0), Some(30.0)), ..case("a stream", "GET", "/streams", 200) },
        Case {
            sizes: (Some(0.0), Some(30.0)),
            ..case("a stream of known length", "GET", "/streams-known", 200)
        },
        Case {
            body: "12345",
            sizes: (Some(5.0), Some(5.0)),
            ..case("a body both ways", "POST", "/echo", 200)
        },
        Case {
            body: "12345",
            sizes: (Some(0.0), Some(0.0)),
            ..case("an unread body", "POST", "/ignores", 200)
        },
        Case {
            declared: "_OTHER",
            // The body is the framework's own.
            sizes: (Some(0.0), None),
            ..case("a method that is not declared", "PUT", "/204", framework.undeclared)
        },
        Case {
            declared: "_OTHER",
            route: "_unmatched",
            sizes: (Some(0.0), None),
            ..case("a path that is not declared", "GET", "/nowhere", 404)
        },
        Case {
            route: "/files/{*path}",
            sizes: (Some(0.0), Some(3.0)),
            ..case("a rest of a path", "GET", "/files/a/b", 200)
        },
        Case {
            declared: if framework.unlisted.is_empty() { "_OTHER" } else { "GET" },
            route: if framework.unlisted.is_empty() { "_unmatched" } else { framework.unlisted },
            sizes: (Some(0.0), Some(3.0)),
            ..case("a route that is not listed", "GET", "/unlisted", 200)
        },
        Case {
            client: Client::ResetsWhileItWaits,
            status: None,
            ..broken(case("a reset before the head", "GET", "/never", 0), "aborted", "aborted")
        },
        Case {
            client: Client::ResetsInResponse,
            ..broken(case("a reset in the body", "GET", "/endless", 200), "aborted", "aborted")
        },
        Case {
            client: Client::ResetsInRequest,
            body: "12345",
            status: framework.reset,
            ..broken(case("a reset in the request", "POST", "/echo", 0), "aborted", "aborted")
        },
        broken(case("a panic", "GET", "/panics", 500), "panicked", "panic"),
        broken(case("a body that fails", "GET", "/breaks", 200), "aborted", "aborted"),
    ]
}

pub(crate) const LISTED: [(&str, &str); 17] = [
    ("GET", "/items/{id}"),
    ("GET", "/204"),
    ("GET", "/404"),
    ("GET", "/503"),
    ("GET", "/504"),
    ("GET", "/errs"),
    ("GET", "/head"),
    ("GET", "/streams"),
    ("GET", "/streams-known"),
    ("POST", "/echo"),
    ("POST", "/ignores"),
    ("GET", "/files/{*path}"),
    ("GET", "/never"),
    ("GET", "/endless"),
    ("GET", "/panics"),
    ("GET", "/breaks"),
    ("GET", "/body-panics"),
];

/// A server of a framework, which stops when this is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) registry: Registry,
    pub(crate) _stop: oneshot::Sender<()>,
}

/// The metrics of two conventions in one registry.
pub(crate) fn endpoints(registry: &Registry) -> [Endpoints; 2] {
    [Convention::Prometheus, Convention::OpenTelemetry]
        .map(|convention| Opts::new().convention(convention).detailed().register(registry).unwrap())
}

impl Server {
    async fn ask(&self, case: &Case) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let Case { method, path, body, .. } = case;
        let length = if case.client == Client::ResetsInRequest { 100 } else { body.len() };
        let length =
            if length > 0 { format!("content-length: {length}\r\n") } else { String::new() };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{length}\r\n{body}"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut read = Vec::new();
        match case.client {
            Client::Reads => {
                // A connection on which a handler panics is reset.
                let all = tokio::time::timeout(LONGEST, stream.read_to_end(&mut read));
                let _ = all.await.expect("an end");
                let text = String::from_utf8_lossy(&read);
                if case.outcome == "complete" {
                    let status = format!("HTTP/1.1 {}", case.status.unwrap());
                    assert!(text.starts_with(&status), "{}: {text}", case.name);
                }
                return;
            }
            Client::ResetsInResponse => {
                while read.len() < 3_000 {
                    assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0, "{}", case.name);
                }
            }
            Client::ResetsWhileItWaits | Client::ResetsInRequest => {
                until(case.name, || in_flight(&self.registry.snapshot()) == 2.0).await;
            }
        }
        stream.set_zero_linger().unwrap();
    }
}

fn in_flight(snapshot: &Snapshot) -> f64 {
    let names = ["http_requests_in_flight", "http_server_active_requests"];
    names.iter().filter_map(|name| snapshot.total(name, &[])).sum()
}

/// Whether both meters have recorded a request: they do it on another thread, and the size is the last.
fn are_recorded(snapshot: &Snapshot) -> bool {
    let sizes = ["http_request_body_size_bytes", "http_server_request_body_size_bytes"];
    let counts = sizes.map(|size| snapshot.histogram(size, &[]).map(|size| size.count()));
    counts == [Some(1); 2] && in_flight(snapshot) == 0.0
}

fn assert_recorded(registry: &Registry, case: &Case) {
    let (snapshot, name) = (registry.snapshot(), case.name);
    let endpoint = [("method", case.declared), ("route", case.route)];
    let status = match case.status {
        Some(code) => format!("{}xx", code / 100),
        None => "_OTHER".to_owned(),
    };
    let counted = [&endpoint[..], &[("status", &*status)]].concat();
    let ended = [&endpoint[..], &[("outcome", case.outcome)]].concat();
    for (metric, labels) in
        [("http_requests_total", counted), ("http_request_outcomes_total", ended)]
    {
        assert_eq!(snapshot.total(metric, &[]), Some(1.0), "{metric} {name}");
        assert_eq!(snapshot.value(metric, &labels), Some(1.0), "{labels:?} {name}");
    }
    let (received, sent) = case.sizes;
    for (metric, expected) in [
        ("http_request_duration_seconds", None),
        ("http_exchange_duration_seconds", None),
        ("http_request_body_size_bytes", received),
        ("http_response_body_size_bytes", sent),
    ] {
        let found = snapshot.histogram(metric, &endpoint).unwrap();
        assert_eq!(found.count(), 1, "{metric} {name}");
        assert_eq!(expected.unwrap_or(found.sum()), found.sum(), "{metric} {name}");
    }
    let code = case.status.map_or_else(String::new, |code| code.to_string());
    let labels = [
        ("http_request_method", case.method),
        ("http_route", if case.route == "_unmatched" { "" } else { case.route }),
        ("http_response_status_code", &*code),
        ("error_type", case.error_type),
        ("network_protocol_version", "1.1"),
    ];
    let duration = snapshot.histogram("http_server_request_duration_seconds", &labels);
    assert_eq!(duration.map(|all| all.count()), Some(1), "{labels:?} {name}");
}

/// Makes each request to a server of its own.
pub(crate) async fn each_is_recorded_once(framework: &Framework, start: impl AsyncFn() -> Server) {
    for case in &cases(framework) {
        let server = start().await;
        server.ask(case).await;
        until(case.name, || are_recorded(&server.registry.snapshot())).await;
        assert_recorded(&server.registry, case);
    }
}

/// Makes many requests to paths and methods that no route has.
pub(crate) async fn a_scanner_makes_no_series(server: Server) {
    let series = || server.registry.snapshot().select("http_requests_in_flight", &[]).count();
    let before = series();
    let mut all = String::new();
    for n in 0..2_000 {
        let method = ["GET", "POST", "BREW"][n % 3];
        let path = if n % 2 == 0 { format!("/scan/{n}") } else { format!("/items/{n}") };
        let last = if n == 1_999 { "connection: close\r\n" } else { "" };
        all += &format!("{method} {path} HTTP/1.1\r\nhost: x{n}\r\n{last}\r\n");
    }
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut reads, mut writes) = stream.into_split();
    let mut responses = Vec::new();
    let both =
        async { tokio::join!(writes.write_all(all.as_bytes()), reads.read_to_end(&mut responses)) };
    tokio::time::timeout(LONGEST, both).await.expect("an end").1.unwrap();
    let total = server.registry.snapshot().total("http_requests_total", &[]);
    assert_eq!(total, Some(2_000.0));
    // Those of no route, and the methods that the route of the items does not have.
    assert_eq!(series(), before + 2);
}
