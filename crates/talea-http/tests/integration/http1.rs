//! HTTP/1 as clients may write it, well formed or not, over real sockets: the responses of Talea's server
//! beside those of `axum::serve`, which leaves all of it to hyper.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use hyper::server::conn::http1::Builder;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use talea::{Counter, Opts};
use talea_http::server::Reason;
use talea_http::{Exposition, Limits, MetricsServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::support::client::{loopback, serve};
use crate::support::counts::registry;
use crate::support::wait::{LONGEST, until};

/// More than the buffers of a connection.
const LARGE: usize = 4 << 20;

fn routes() -> Router {
    Router::new()
        .route("/", get(async || "root\n"))
        .route("/large", get(async || "x".repeat(LARGE)))
        .route("/sent", post(async |_: String| "sent\n"))
}

/// Writes to a server, closes its half of the connection if it is asked to, and reads to the end.
async fn exchange(address: SocketAddr, bytes: &[u8], closes_half: bool) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A server that refuses a head closes before it has read all.
    let _ = stream.write_all(bytes).await;
    if closes_half {
        stream.shutdown().await.unwrap();
    }
    let mut response = Vec::new();
    // It may be a reset, if the server did not read all bytes.
    let _ = timeout(LONGEST, stream.read_to_end(&mut response)).await.expect("the server closes");
    String::from_utf8(response).unwrap()
}

/// The statuses of all responses.
fn statuses(response: &str) -> Vec<u16> {
    let lines = response.lines().filter_map(|line| line.strip_prefix("HTTP/1."));
    lines.map(|line| line[2..5].parse().unwrap()).collect()
}

type Statuses = &'static [u16];

/// Requests, the statuses by Talea's server, and those by `axum::serve` if they are others. Each closes the
/// connection, or is refused.
#[rustfmt::skip]
const REQUESTS: &[(&str, Statuses, Option<Statuses>)] = &[
    ("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[200], None),
    ("GET / HTTP/1.1\r\nconnection: close\r\n\r\n", &[400], Some(&[200])),
    ("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\nHost: x\r\n\r\n", &[400], Some(&[200])),
    ("GET / HTTP/1.1\r\nconnection: close\r\nhost: a b\r\n\r\n", &[400], Some(&[200])),
    ("GET / HTTP/1.1\r\nconnection: close\r\nhost:\r\n\r\n", &[400], Some(&[200])),
    ("GET / HTTP/1.1\r\nconnection: close\r\nhost: me@x\r\n\r\n", &[400], Some(&[200])),
    ("GET / HTTP/1.1\r\nconnection: close\r\nhost: x:http\r\n\r\n", &[400], Some(&[200])),
    ("GET / HTTP/1.1\r\nconnection: close\r\nhost: [::1]:80\r\n\r\n", &[200], None),
    ("GET / HTTP/1.0\r\nconnection: close\r\n\r\n", &[200], None),
    ("GET / HTTP/1.0\r\nhost: x\r\nconnection: close\r\nhost: y\r\n\r\n", &[400], Some(&[200])),
    ("GET / HTTP/1.0\r\nhost: x\r\nconnection: keep-alive\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[200, 200], None),
    ("GET / HTTP/1.0\r\nhost: x\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[200], None),
    ("GET /\r\n", &[400], None),
    ("GET / HTTP/0.9\r\n\r\n", &[400], None),
    ("GET / HTTP/1.2\r\nhost: x\r\nconnection: close\r\n\r\n", &[400], None),
    ("GET / HTTP/2.0\r\nhost: x\r\nconnection: close\r\n\r\n", &[400], None),
    ("GET / http/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[400], None),
    ("GET  / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[400], None),
    ("GET /\tHTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[400], None),
    ("GET / HTTP/1.1 \r\nhost: x\r\nconnection: close\r\n\r\n", &[400], None),
    (" GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[400], None),
    ("\r\nGET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[200], None),
    ("get / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[405], None),
    ("ODD / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[405], None),
    ("G(T / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[400], None),
    ("TRACE / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[405], None),
    ("OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[404], None),
    ("GET * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[404], None),
    ("CONNECT x:80 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[404], None),
    ("GET x:80 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[404], None),
    ("GET http://x/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[200], None),
    ("GET http://y/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[200], None),
    ("GET http://x/ HTTP/1.1\r\nconnection: close\r\n\r\n", &[400], Some(&[200])),
    ("GET http:// HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[400], None),
    ("GET /#a HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[200], None),
    ("GET /?a=b|c HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[200], None),
    ("GET /\u{f6} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[404], None),
    ("GET /%zz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[404], None),
    ("GET /../ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[404], None),
    ("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\na : b\r\n\r\n", &[400], None),
    ("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\na\r\n\r\n", &[400], None),
    ("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n: b\r\n\r\n", &[400], None),
    ("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\na: b\0c\r\n\r\n", &[400], None),
    ("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\na: b\rc\r\n\r\n", &[400], None),
    ("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\na: b\r\n  folded\r\n\r\n", &[400], None),
    ("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n a: b\r\n\r\n", &[400], None),
    ("GET / HTTP/1.1\nhost: x\nconnection: close\n\n", &[200], None),
    ("POST /sent HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 4\r\n\r\nbody", &[200], None),
    ("POST /sent HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 4\r\ncontent-length: 4\r\n\r\nbody", &[200], None),
    ("POST /sent HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 4\r\ncontent-length: 5\r\n\r\nbody", &[400], None),
    ("POST /sent HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 4, 4\r\n\r\nbody", &[400], None),
    ("POST /sent HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: +4\r\n\r\nbody", &[400], None),
    ("POST /sent HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: -4\r\n\r\nbody", &[400], None),
    ("POST /sent HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 4x\r\n\r\nbody", &[400], None),
    ("POST /sent HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length:\r\n\r\nbody", &[400], None),
    ("POST /sent HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 18446744073709551615\r\n\r\n", &[431], None),
    ("POST /sent HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 18446744073709551616\r\n\r\n", &[400], None),
    ("POST /sent HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", &[200], None),
    ("POST /sent HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n4;a=b\r\nbody\r\n0\r\n\r\n", &[200], None),
    ("POST /sent HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\ntrailer: a\r\n\r\n4\r\nbody\r\n0\r\na: b\r\n\r\n", &[200], None),
    ("POST /sent HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nbody\r\n0\r\n\r\n", &[200], Some(&[400])),
    ("POST /sent HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n4\r\nbody\r\n0\r\n\r\n", &[200], None),
    ("POST /sent HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: gzip\r\n\r\nbody", &[400], None),
    ("POST /sent HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked, gzip\r\n\r\nbody", &[400], None),
    ("POST /sent HTTP/1.0\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", &[400], None),
    ("POST /sent HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 4\r\nexpect: 100-continue\r\n\r\nbody", &[200], Some(&[100, 200])),
    ("POST /sent HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 4\r\nexpect: else\r\n\r\nbody", &[200], None),
    ("GET / HTTP/1.1\r\nhost: x\r\nconnection: close, upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n\r\n", &[200], None),
    // The beginning of HTTP/2, for a server that speaks it.
    #[cfg(not(feature = "http2"))]
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[], None),
    ("GET / HTTP/1.1\r\nhost: x\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[200, 200], None),
    ("POST /sent HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nbodyGET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[200], Some(&[200, 200])),
    ("GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nbodyGET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", &[200], Some(&[200, 200])),
];

#[tokio::test]
async fn each_request_gets_the_status_that_its_form_deserves() {
    let talea = MetricsServer::builder(Exposition::new(&registry())).routes(routes());
    let talea = talea.bind(loopback()).unwrap();
    let axum = serve(routes()).await;
    let many = (0..101).map(|n| format!("a{n}: b\r\n")).collect::<String>();
    let long = |bytes: usize| {
        format!("GET /{} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", "a".repeat(bytes))
    };
    let made = [
        (format!("GET / HTTP/1.1\r\nhost: x\r\n{many}\r\n"), &[431][..], None),
        (long(20 << 10), &[431], Some(&[404][..])),
        (long(80 << 10), &[431], Some(&[414])),
    ];
    let all = REQUESTS.iter().map(|(text, ours, theirs)| ((*text).to_owned(), *ours, *theirs));
    for (text, ours, theirs) in all.chain(made) {
        let shown: String = text.chars().take(200).collect();
        let found = exchange(talea.local_addr(), text.as_bytes(), false).await;
        assert_eq!(statuses(&found), ours, "Talea's server: {shown:?}");
        let found = exchange(axum, text.as_bytes(), false).await;
        assert_eq!(statuses(&found), theirs.unwrap_or(ours), "axum::serve: {shown:?}");
    }
}

#[tokio::test]
async fn a_refused_host_is_named_with_what_to_send() {
    let server = MetricsServer::bind(loopback(), &registry()).unwrap();
    for (hosts, expected) in [
        ("", "no Host header; send the name"),
        ("host: x\r\nhost: x\r\n", "several Host headers; send one"),
        ("host: a b\r\n", "is no host; send a name or an address"),
    ] {
        let text = format!("GET /metrics HTTP/1.1\r\nconnection: close\r\n{hosts}\r\n");
        let response = exchange(server.local_addr(), text.as_bytes(), false).await;
        assert!(statuses(&response) == [400] && response.contains(expected), "{response}");
    }
}

#[tokio::test]
async fn a_client_that_closes_its_half_gets_the_whole_response() {
    let registry = registry();
    let _orders: Counter = registry.register(Opts::new("orders", "Orders.")).unwrap();
    let server = MetricsServer::builder(Exposition::new(&registry)).routes(routes());
    let server = server.bind(loopback()).unwrap();
    for version in ["1.0", "1.1"].repeat(25) {
        let text = format!("GET /metrics HTTP/{version}\r\nhost: x\r\n\r\n");
        let response = exchange(server.local_addr(), text.as_bytes(), true).await;
        assert_eq!(statuses(&response), [200]);
        assert!(response.ends_with("\norders_total 0\n"), "{response}");
    }
    let ask = b"GET /large HTTP/1.1\r\nhost: x\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\n\r\n";
    let response = exchange(server.local_addr(), ask, true).await;
    assert!(response.starts_with("HTTP/1.1 200") && response.len() > LARGE, "{}", response.len());
    assert!(response.ends_with("root\n"), "the pipelined one too");
    until("all connections are closed", || server.counts().open() == 0).await;
}

#[tokio::test]
async fn a_half_head_behind_a_whole_request_has_the_time_of_a_head() {
    let limits = Limits { header_time: Duration::from_millis(50), ..Limits::default() };
    let server = MetricsServer::builder(Exposition::new(&registry()));
    let server = server.routes(routes()).limits(limits).bind(loopback()).unwrap();
    let whole = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
    let texts =
        [format!("{whole}GET / HT"), format!("{whole}{whole}GET / HTTP/1.1\r\nhost: x\r\n")];
    for (n, text) in texts.iter().enumerate() {
        let response = exchange(server.local_addr(), text.as_bytes(), false).await;
        assert_eq!(statuses(&response).len(), n + 1, "{response}");
        assert_eq!(server.counts().closed(Reason::Head), n as u64 + 1);
    }
}

/// In a metered service the server decides whether a client that closed its half is gone.
#[tokio::test]
async fn a_client_that_closed_its_half_is_gone_only_if_the_server_says_so() {
    for (half_close, outcome) in [(true, "complete"), (false, "aborted")] {
        let registry = registry();
        let (began, begins) = oneshot::channel::<()>();
        let (end, ends) = oneshot::channel::<()>();
        let turns = Arc::new(Mutex::new(Some((began, ends))));
        let app = talea_http::axum::Router::new().route(
            "/",
            talea_http::axum::get(async move || {
                let (began, ends) = turns.lock().unwrap().take().unwrap();
                began.send(()).unwrap();
                let _ = ends.await;
                "done"
            }),
        );
        let app = TowerToHyperService::new(app.metered(&registry).unwrap());
        let listener = TcpListener::bind(loopback()).await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let mut builder = Builder::new();
        let served = builder.half_close(half_close).serve_connection(TokioIo::new(stream), app);
        let served = tokio::spawn(served);
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        begins.await.unwrap();
        client.shutdown().await.unwrap();
        if half_close {
            end.send(()).unwrap();
        }
        let mut response = String::new();
        client.read_to_string(&mut response).await.unwrap();
        let _ = served.await.unwrap();
        assert_eq!(statuses(&response).len(), usize::from(half_close), "{response}");
        let labels = [("method", "GET"), ("route", "/"), ("outcome", outcome)];
        let found = registry.snapshot().value("http_request_outcomes_total", &labels);
        assert_eq!(found, Some(1.0), "{outcome}");
    }
}
