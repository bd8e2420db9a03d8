//! `talea proxy` between raw clients and raw services.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::support::{
    LONGEST, Running, TALEA, assert_refused, interrupt, sample, talea, until, with_default_signals,
};

const DOCUMENT: &str = "
openapi: 3.0.3
paths:
  /items: { get: {}, post: {} }
  /items/{id}: { get: {}, delete: {} }
";

/// Takes connections on threads, and gives each to a function.
fn upstream(serve: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (serve, stream) = (serve.clone(), stream.unwrap());
            stream.set_read_timeout(Some(LONGEST)).unwrap();
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// A service that gives each head to the test, and responds with the same text.
fn responding(response: &'static str) -> (SocketAddr, Receiver<String>) {
    let (heads, received) = channel();
    let address = upstream(move |mut stream| {
        while let Some(head) = read_head(&mut stream) {
            let _ = heads.send(head);
            stream.write_all(response.as_bytes()).unwrap();
        }
    });
    (address, received)
}

/// Reads to the end of a head, or `None` at the end of the connection.
fn read_head(stream: &mut impl Read) -> Option<String> {
    read_until(stream, "\r\n\r\n")
}

/// Reads until what came ends with a text.
fn read_until(stream: &mut impl Read, end: &str) -> Option<String> {
    let mut read = Vec::new();
    let mut byte = [0];
    while !read.ends_with(end.as_bytes()) {
        match stream.read(&mut byte) {
            Ok(1) => read.push(byte[0]),
            _ => return None,
        }
    }
    Some(String::from_utf8(read).unwrap())
}

struct Proxy {
    process: Running,
    service: SocketAddr,
    metrics: SocketAddr,
    folder: tempfile::TempDir,
}

impl Proxy {
    fn start(upstream: SocketAddr, more: &[&str]) -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let document = folder.path().join("openapi.yaml");
        std::fs::write(&document, DOCUMENT).unwrap();
        let upstream = format!("http://{upstream}");
        let mut process = with_default_signals(TALEA)
            .args(["proxy", &upstream, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"])
            .arg("--openapi")
            .arg(document)
            .args(more)
            .env("TALEA_REGION", folder.path().join("region"))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut address = || -> SocketAddr {
            let line = lines.next().unwrap().unwrap();
            let (_, rest) = line.split_once("http://").unwrap_or_else(|| panic!("{line}"));
            rest.split([',', '/']).next().unwrap().parse().unwrap()
        };
        let (service, metrics) = (address(), address());
        Self { process: Running(process), service, metrics, folder }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.service).unwrap();
        stream.set_read_timeout(Some(LONGEST)).unwrap();
        stream
    }

    /// The whole response to one request.
    fn ask(&self, request: &str) -> String {
        exchange(self.service, request)
    }

    fn page(&self) -> String {
        exchange(self.metrics, "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    }

    fn value(&self, series: &str) -> Option<f64> {
        sample(&self.page(), series)
    }

    #[track_caller]
    fn until(&self, series: &str, value: f64) {
        until(series, || self.value(series) == Some(value));
    }
}

fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONGEST)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

fn outcome(outcome: &str, method: &str, route: &str) -> String {
    format!(
        r#"http_request_outcomes_total{{method="{method}",route="{route}",outcome="{outcome}"}}"#
    )
}

fn series(page: &str) -> usize {
    page.lines().filter(|line| line.starts_with("http_requests_in_flight{")).count()
}

#[test]
fn all_series_are_there_from_the_start_and_random_paths_make_one() {
    let (upstream, _) = responding("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    let proxy = Proxy::start(upstream, &[]);
    let page = proxy.page();
    assert_eq!(series(&page), 4, "{page}");
    for (method, route) in
        [("GET", "/items"), ("POST", "/items"), ("GET", "/items/{id}"), ("DELETE", "/items/{id}")]
    {
        let series = outcome("complete", method, route);
        assert_eq!(sample(&page, &series), Some(0.0), "{series}");
    }
    const REQUESTS: usize = 4_000;
    let mut stream = proxy.connect();
    let mut reads = stream.try_clone().unwrap();
    let writer = thread::spawn(move || {
        for n in 0..REQUESTS {
            let path = if n % 2 == 0 { format!("/{n}/x") } else { format!("/items/{n}") };
            stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).unwrap();
        }
        stream
    });
    for _ in 0..REQUESTS {
        assert!(read_head(&mut reads).unwrap().starts_with("HTTP/1.1 404 Not Found\r\n"));
    }
    drop(writer.join().unwrap());
    let page = proxy.page();
    assert_eq!(series(&page), 5);
    for (method, route) in [("_OTHER", "_unmatched"), ("GET", "/items/{id}")] {
        let series = outcome("complete", method, route);
        assert_eq!(sample(&page, &series), Some(REQUESTS as f64 / 2.0), "{series}");
    }
    let region = proxy.folder.path().join("region");
    let inspected =
        talea(["inspect", region.to_str().unwrap(), "--family", "http_request_outcomes"]);
    let text = String::from_utf8(inspected.stdout).unwrap();
    assert!(text.contains("/items/{id}"), "{text}");
}

#[test]
fn headers_of_a_connection_stay_there_and_all_others_pass() {
    let (upstream, heads) = responding(
        "HTTP/1.1 200 OK\r\nconnection: keep-alive, x-private\r\nx-private: 1\r\nx-public: 2\r\n\
         set-cookie: a=1\r\nset-cookie: b=2\r\nkeep-alive: timeout=5\r\nupgrade: h2c\r\n\
         proxy-authenticate: Basic\r\ncontent-length: 2\r\n\r\nok",
    );
    let proxy = Proxy::start(upstream, &[]);
    let response = proxy.ask(
        "GET /items?page=2%20 HTTP/1.1\r\nhost: shop.example\r\nconnection: close, x-secret, host\r\nx-secret: 1\r\n\
         x-request-id: 7\r\nte: trailers\r\nproxy-authorization: x\r\nproxy-connection: close\r\n\
         x-forwarded-for: 192.0.2.1\r\nupgrade: websocket\r\n\r\n",
    );
    let head = heads.recv_timeout(LONGEST).unwrap().to_lowercase();
    assert!(head.starts_with("get /items?page=2%20 http/1.1\r\n"), "{head}");
    for kept in ["x-request-id: 7", "x-forwarded-for: 192.0.2.1", "x-forwarded-for: 127.0.0.1"] {
        assert!(head.contains(&format!("\r\n{kept}\r\n")), "{kept} is not in {head}");
    }
    for removed in ["x-secret", "\r\nte:", "proxy-", "upgrade", "connection", "shop.example"] {
        assert!(!head.contains(removed), "{removed} is in {head}");
    }
    let response = response.to_lowercase();
    assert!(response.starts_with("http/1.1 200 ok\r\n") && response.ends_with("\r\n\r\nok"));
    for kept in ["x-public: 2", "set-cookie: a=1", "set-cookie: b=2", "content-length: 2"] {
        assert!(response.contains(&format!("\r\n{kept}\r\n")), "{kept} is not in {response}");
    }
    for removed in ["x-private", "keep-alive", "upgrade", "proxy-authenticate"] {
        assert!(!response.contains(removed), "{removed} is in {response}");
    }
    let response =
        proxy.ask("GET /items HTTP/1.1\r\nhost: shop.example\r\nconnection: close\r\n\r\n");
    assert!(response.ends_with("ok"), "{response}");
    let head = heads.recv_timeout(LONGEST).unwrap().to_lowercase();
    assert!(head.contains("\r\nhost: shop.example\r\n"), "{head}");
    let response = proxy.ask("GET /items HTTP/1.0\r\n\r\n");
    assert!(response.starts_with("HTTP/1.0 200 OK\r\n") && response.ends_with("ok"), "{response}");
}

#[test]
fn a_length_beside_chunks_is_not_forwarded_and_what_is_no_request_of_a_path_is_refused() {
    let (upstream, heads) = responding("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
    let proxy = Proxy::start(upstream, &[]);
    for both in [
        "content-length: 4\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 4\r\n",
    ] {
        let response = proxy.ask(&format!(
            "POST /items HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{both}\r\n0\r\n\r\n"
        ));
        let refused = response.starts_with("HTTP/1.1 400");
        if !refused {
            let head = heads.recv_timeout(LONGEST).unwrap().to_lowercase();
            assert!(!head.contains("content-length: 4"), "{head}");
        }
    }
    for (request, status) in [
        ("CONNECT shop.example:443 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", 405),
        ("OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", 204),
        ("GET http://other.example/items HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", 204),
    ] {
        let response = proxy.ask(request);
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{request}{response}");
    }
    // Not to the other host.
    let heads: Vec<_> = heads.try_iter().collect();
    assert!(heads.iter().any(|head| head.starts_with("GET /items HTTP/1.1\r\n")), "{heads:?}");
}

#[test]
fn an_upgrade_is_not_forwarded_and_the_service_s_refusal_passes() {
    let (upstream, heads) =
        responding("HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\n\r\n");
    let proxy = Proxy::start(upstream, &[]);
    let mut stream = proxy.connect();
    let upgrade = "GET /items HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                   sec-websocket-key: x\r\nsec-websocket-version: 13\r\n\r\n";
    stream.write_all(upgrade.as_bytes()).unwrap();
    assert!(read_head(&mut stream).unwrap().starts_with("HTTP/1.1 426 "));
    assert!(!heads.recv_timeout(LONGEST).unwrap().to_lowercase().contains("upgrade"));
    // The connection goes on.
    stream.write_all(b"GET /items HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    assert!(read_head(&mut stream).unwrap().starts_with("HTTP/1.1 426 "));
}

#[test]
fn a_service_that_is_gone_is_a_502_and_one_that_stalls_a_504() {
    let request = "GET /items HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    let closes = upstream(|mut stream| drop(read_head(&mut stream)));
    let stalls = upstream(|mut stream| while read_head(&mut stream).is_some() {});
    for (address, options, status, ended) in [
        (nobody, &[][..], 502, "complete"),
        (closes, &[], 502, "complete"),
        (stalls, &["--timeout", "100ms"], 504, "timed_out"),
    ] {
        let proxy = Proxy::start(address, options);
        let response = proxy.ask(request);
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
        assert!(response.contains("\r\n\r\ntalea proxy: the upstream "), "{response}");
        proxy.until(&outcome(ended, "GET", "/items"), 1.0);
    }
}

#[test]
fn a_service_that_dies_in_its_response_breaks_it_off() {
    let address = upstream(|mut stream| {
        read_head(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nsome").unwrap();
    });
    let proxy = Proxy::start(address, &[]);
    let mut stream = proxy.connect();
    stream.write_all(b"GET /items HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    assert!(read_head(&mut stream).unwrap().starts_with("HTTP/1.1 200 OK\r\n"));
    let mut body = Vec::new();
    let _ = stream.read_to_end(&mut body); // reset or closed
    assert!(body.len() < 100, "{body:?}");
    proxy.until(&outcome("aborted", "GET", "/items"), 1.0);
}

#[test]
fn the_service_loses_its_connection_when_the_client_is_gone() {
    for response in ["", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nsome"] {
        let (sender, events): (Sender<&str>, _) = channel();
        let address = upstream(move |mut stream| {
            read_head(&mut stream);
            stream.write_all(response.as_bytes()).unwrap();
            sender.send("has the request").unwrap();
            assert_eq!(stream.read(&mut [0; 16]).unwrap_or(0), 0);
            sender.send("lost the connection").unwrap();
        });
        let proxy = Proxy::start(address, &[]);
        let mut stream = proxy.connect();
        stream.write_all(b"GET /items HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        assert_eq!(events.recv_timeout(LONGEST), Ok("has the request"));
        if !response.is_empty() {
            read_until(&mut stream, "some").unwrap();
        }
        drop(stream);
        assert_eq!(events.recv_timeout(LONGEST), Ok("lost the connection"), "{response:?}");
        proxy.until(&outcome("aborted", "GET", "/items"), 1.0);
        proxy.until(r#"http_requests_in_flight{method="GET",route="/items"}"#, 0.0);
    }
}

#[test]
fn bodies_pass_piece_by_piece_in_both_directions() {
    let (sender, received) = channel();
    let (go, gone) = channel::<()>();
    let gone = Arc::new(Mutex::new(gone));
    let address = upstream(move |mut stream| {
        let head = read_head(&mut stream).unwrap().to_lowercase();
        assert!(head.contains("\r\ncontent-length: 6\r\n"), "{head}");
        for _ in 0..2 {
            let mut piece = [0; 3];
            stream.read_exact(&mut piece).unwrap();
            sender.send(piece).unwrap();
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
        for piece in ["3\r\nsix\r\n", "5\r\nseven\r\n", "0\r\n\r\n"] {
            gone.lock().unwrap().recv_timeout(LONGEST).unwrap();
            stream.write_all(piece.as_bytes()).unwrap();
        }
    });
    let proxy = Proxy::start(address, &[]);
    let mut stream = proxy.connect();
    stream.write_all(b"POST /items HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\n\r\n").unwrap();
    for piece in [b"one", b"two"] {
        stream.write_all(piece).unwrap();
        assert_eq!(received.recv_timeout(LONGEST).unwrap(), *piece);
    }
    let head = read_head(&mut stream).unwrap().to_lowercase();
    assert!(head.contains("\r\ntransfer-encoding: chunked\r\n"), "{head}");
    for piece in ["3\r\nsix\r\n", "5\r\nseven\r\n", "0\r\n\r\n"] {
        // The service sends no more before the client has this one.
        go.send(()).unwrap();
        assert_eq!(read_until(&mut stream, piece).unwrap(), piece);
    }
    proxy.until(&outcome("complete", "POST", "/items"), 1.0);
}

#[test]
fn a_client_that_waits_for_100_continue_gets_it() {
    let address = upstream(|mut stream| {
        read_head(&mut stream);
        let mut body = [0; 3];
        stream.read_exact(&mut body).unwrap();
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n").unwrap();
        stream.write_all(b"content-length: 2\r\n\r\nok").unwrap();
    });
    let proxy = Proxy::start(address, &[]);
    let mut stream = proxy.connect();
    let head =
        "POST /items HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(read_head(&mut stream).unwrap(), "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"one").unwrap();
    assert!(read_head(&mut stream).unwrap().starts_with("HTTP/1.1 200 OK\r\n"));
    read_until(&mut stream, "ok").unwrap();
}

#[test]
fn a_response_before_the_end_of_a_large_body_passes() {
    let address = upstream(|mut stream| {
        read_head(&mut stream);
        let refusal =
            "HTTP/1.1 413 Content Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(refusal.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        // The rest of the body, so that the response is not reset.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let proxy = Proxy::start(address, &[]);
    let mut stream = proxy.connect();
    let head = "POST /items HTTP/1.1\r\nhost: x\r\ncontent-length: 100000000\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&[b'x'; 100_000]).unwrap();
    assert!(read_head(&mut stream).unwrap().starts_with("HTTP/1.1 413 "));
    drop(stream);
    proxy.until(r#"http_requests_total{method="POST",route="/items",status="4xx"}"#, 1.0);
}

#[test]
fn a_signal_lets_the_response_in_flight_end() {
    let (begun, begins) = channel();
    let (go, gone) = channel::<()>();
    let gone = Arc::new(Mutex::new(gone));
    let address = upstream(move |mut stream| {
        read_head(&mut stream);
        begun.send(()).unwrap();
        gone.lock().unwrap().recv_timeout(LONGEST).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
    });
    let mut proxy = Proxy::start(address, &[]);
    let mut stream = proxy.connect();
    stream.write_all(b"GET /items HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    begins.recv_timeout(LONGEST).unwrap();
    interrupt(&proxy.process.0);
    until("no more connections", || TcpStream::connect(proxy.service).is_err());
    go.send(()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("ok"), "{response}");
    let process: &mut Child = &mut proxy.process.0;
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

#[test]
fn what_cannot_be_served_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let swagger = file("swagger.json", r#"{"swagger": "2.0", "paths": {}}"#);
    let clashing =
        file("clash.yaml", "{openapi: 3.1.0, paths: {'/{a}': {get: {}}, '/{b}': {get: {}}}}");
    let good = file("good.yaml", DOCUMENT);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let free = "127.0.0.1:0";
    for (document, listen, metrics, part) in [
        (swagger.as_str(), free, free, "of Swagger 2.0; expected OpenAPI 3.0 or 3.1"),
        (&clashing, free, free, "the template \"/{b}\" cannot be used"),
        ("nowhere.yaml", free, free, "nowhere.yaml: No such file"),
        (&good, &taken, free, "--listen"),
        (&good, free, &taken, "--metrics"),
    ] {
        let options = ["--openapi", document, "--listen", listen, "--metrics", metrics];
        assert_refused(&talea(["proxy", "http://127.0.0.1:1"].iter().chain(&options)), &[part]);
    }
    for upstream in ["https://x", "x", "http://x/api", "ftp://x"] {
        let output = talea(["proxy", upstream, "--openapi", &good]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("such as http://127.0.0.1:4000"), "{stderr}");
    }
}
