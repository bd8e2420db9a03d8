//! `talea load`: steps that open a WebSocket.

#![expect(clippy::result_large_err, reason = "tungstenite decides the type of a refusal")]

use std::net::SocketAddr;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use talea_load::scenario::Scenario;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};

use crate::support::{assert_ends, interrupt, printed_json, start, stdout, talea, until};

/// A server of WebSockets, which behaves as the path of a request says.
struct Server {
    address: SocketAddr,
    /// How many messages it received.
    received: Arc<AtomicU64>,
    _runtime: Runtime,
}

impl Server {
    fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(AtomicU64::new(0));
        let counted = received.clone();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, counted.clone()));
            }
        });
        Self { address, received, _runtime: runtime }
    }

    fn load(&self, step: &str, more: &[&str]) -> Output {
        let folder = tempfile::tempdir().unwrap();
        let scenario = folder.path().join("scenario.toml");
        let variables = "[variables]\nname = { choice = ['ann'] }\n[[step]]\n";
        std::fs::write(&scenario, format!("{variables}{step}")).unwrap();
        let url = format!("http://{}/base", self.address);
        let load = ["load", &url, "--scenario", scenario.to_str().unwrap()];
        talea([&load, more].concat())
    }
}

async fn serve(mut stream: TcpStream, received: Arc<AtomicU64>) {
    let mut begun = [0; 64];
    let len = stream.peek(&mut begun).await.unwrap();
    let line = String::from_utf8_lossy(&begun[..len]).into_owned();
    if line.contains("/garbage") {
        let _ = stream.read(&mut begun).await;
        let head =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
        let _ = stream.write_all(format!("{head}Sec-WebSocket-Accept: x\r\n\r\n").as_bytes()).await;
        return;
    }
    if line.contains("/endless") {
        let _ = stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\n").await;
        while stream.write_all(b"a: b\r\n").await.is_ok() {}
        return;
    }
    let mut path = String::new();
    let socket = tokio_tungstenite::accept_hdr_async(stream, |request: &Request, response| {
        path = request.uri().to_string();
        opened_for_ann(request, response)
    });
    let Ok(socket) = socket.await else { return };
    let _ = talk(socket, path.strip_prefix("/base").unwrap(), &received).await;
}

fn opened_for_ann(request: &Request, response: Response) -> Result<Response, ErrorResponse> {
    match request.headers().get("x-name").is_some_and(|name| name == "ann") {
        true => Ok(response),
        false => Err(Response::builder().status(403).body(None).unwrap()),
    }
}

async fn talk(
    mut socket: WebSocketStream<TcpStream>,
    path: &str,
    received: &AtomicU64,
) -> Result<(), tokio_tungstenite::tungstenite::Error> {
    if path == "/news" {
        socket.send(Message::text("one")).await?;
        socket.send(Message::Ping("x".into())).await?;
        socket.send(Message::binary("two")).await?;
    }
    if path == "/pings" {
        while socket.send(Message::Ping("x".into())).await.is_ok() {}
    }
    if path == "/huge" {
        // The head of a text of 2^62 bytes.
        socket.get_mut().write_all(&[0x81, 127, 0x40, 0, 0, 0, 0, 0, 0, 0]).await?;
    }
    let mut number = 0;
    while let Some(message) = socket.next().await {
        let Message::Text(text) = message? else { continue };
        number += 1;
        received.fetch_add(1, SeqCst);
        match path {
            "/close" if number == 2 => return socket.close(None).await,
            "/vanish" if number == 2 => return Ok(()),
            "/silent" => {}
            _ => {
                socket
                    .send(Message::text(format!("{{\"n\": {number}, \"got\": \"{text}\"}}")))
                    .await?
            }
        }
    }
    Ok(())
}

#[test]
fn a_step_opens_a_web_socket_and_is_done_after_as_many_messages_as_it_expects() {
    let server = Server::start();
    let echo = "path = '/echo'\nheaders = { x-name = '{name}' }\n";
    let checks = "check.json = { '/got' = 'I am ann' }\ncheck.contains = 'ann'\ncheck.size = [10, 100]\n\
                  measure = { n = '/n' }\n";
    let step = format!("{echo}websocket = {{ send = ['I am {{name}}'] }}\n{checks}");
    let output = server.load(&step, &["-c", "2", "-n", "20", "--json"]);
    assert_ends(&output, 0, &[]);
    let summary = printed_json(&output);
    assert_eq!(summary["answers_by_status"], json!({ "101": 20 }));
    let passed: Vec<&Value> =
        summary["checks"].as_array().unwrap().iter().map(|check| &check["passed"]).collect();
    assert_eq!(passed, [20, 20, 20]);
    assert_eq!(
        (&summary["measures"][0]["sum"], &summary["connections"]),
        (&json!(20.0), &json!(20))
    );
    assert!(summary["head_p50_ms"].as_f64().unwrap() <= summary["client_max_ms"].as_f64().unwrap());

    // Messages that the server sends by itself; its pings are none.
    let news = "name = 'news'\npath = '/news'\nheaders = { x-name = 'ann' }\nwebsocket = { messages = 2 }\n\
                check.contains = \"one\\ntwo\"\n";
    assert_ends(&server.load(news, &["-c", "1", "-n", "5"]), 0, &[]);

    let output = server.load(&step, &["--dry-run"]);
    assert_ends(&output, 0, &[]);
    let shown = stdout(&output);
    for part in
        ["> GET /base/echo", "I am ann", "< 101 Switching Protocols", "\"got\": \"I am ann\""]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn what_is_no_whole_conversation_fails_and_is_named() {
    let server = Server::start();
    let timeout = ["--timeout", "300ms"];
    for (path, name, more, kind) in [
        ("/close", "ann", &[][..], "closed the WebSocket before the expected number of messages"),
        ("/vanish", "ann", &[], "closed in the body of the response"),
        ("/silent", "ann", &timeout, "no response in time"),
        ("/echo", "bob", &[], "403 Forbidden, expected 101 Switching Protocols"),
        ("/garbage", "ann", &[], "not a valid WebSocket"),
        ("/endless", "ann", &[], "more than 100 headers"),
        ("/pings", "ann", &timeout, "no response in time"),
        ("/huge", "ann", &[], "the response is longer than"),
    ] {
        let step = format!(
            "name = 'chat'\npath = '{path}'\nheaders = {{ x-name = '{name}' }}\n\
             websocket = {{ send = ['a', 'b'] }}"
        );
        let load = ["-c", "1", "-n", "2", "--json"];
        let output = server.load(&step, &[&load, more].concat());
        assert_ends(&output, 1, &[]);
        let summary = printed_json(&output);
        assert_eq!(
            (&summary["requests_sent"], &summary["failed"]),
            (&json!(2), &json!(2)),
            "{path}"
        );
        let found = summary["failures"][0]["kind"].as_str().unwrap();
        assert!(found.starts_with("chat: ") && found.contains(kind), "{path}: {found}");
        let censored = if ["/silent", "/pings"].contains(&path) { 2 } else { 0 };
        assert_eq!(summary["requests_censored"], censored, "{path}");
    }
}

#[test]
fn a_conversation_without_an_end_counts_for_as_long_as_it_was_waited_for() {
    let server = Server::start();
    let step = "path = '/silent'\nheaders = { x-name = 'ann' }\nwebsocket = { send = ['a'] }";
    let open = ["--rate", "20", "--for", "200ms", "-c", "2", "--timeout", "250ms", "--json"];
    let began = std::time::Instant::now();
    let output = server.load(step, &open);
    assert_ends(&output, 1, &[]);
    assert_eq!(printed_json(&output)["requests_censored"], 4);
    assert!(began.elapsed() >= Duration::from_millis(500), "two after the other");
}

#[test]
fn a_signal_cuts_off_the_conversations_that_wait_and_counts_them() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("scenario.toml");
    let step =
        "[[step]]\npath = '/silent'\nheaders = { x-name = 'ann' }\nwebsocket = { send = ['a'] }";
    std::fs::write(&scenario, step).unwrap();
    let url = format!("http://{}/base", server.address);
    let load = ["load", &url, "--scenario", scenario.to_str().unwrap(), "-c", "3", "-z", "600s"];
    let child = start([&load[..], &["--json", "--timeout", "600s"]].concat());
    until("all wait", || server.received.load(SeqCst) == 3);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_ends(&output, 130, &[]);
    let summary = printed_json(&output);
    let counts = ["requests_sent", "unanswered", "requests_censored", "failed"];
    assert_eq!(counts.map(|name| summary[name].as_u64().unwrap()), [3, 3, 3, 0]);
}

#[test]
fn a_wrong_web_socket_is_refused_with_what_was_expected() {
    let server = Server::start();
    for (step, part) in [
        ("websocket = { messages = 0 }", "found 0 messages, expected at least 1"),
        ("websocket = { send = ['{other}'] }", "{other}"),
        ("websocket = { sends = [] }", "sends"),
        ("method = 'GET'\nwebsocket = {}", "found method beside websocket"),
        ("websocket = {}\nevents = 2", "found events beside websocket"),
        ("websocket = {}\nbody = 'a'", "found body beside websocket"),
        ("websocket = {}\nexpect = 101", "found expect beside websocket"),
    ] {
        assert_ends(&server.load(step, &["-c", "1", "-n", "1"]), 2, &[part]);
    }
    let docs = include_str!("../../../../docs/reference/scenarios.md");
    let block = docs.split("```toml").nth(4).and_then(|rest| rest.split("```").next()).unwrap();
    let text = format!("[variables]\nname = 'ann'\n{block}");
    let scenario = Scenario::parse("chat.toml", &text).unwrap();
    assert_eq!(scenario.steps[0].name, "GET /chat");
    let output = server.load("websocket = {}", &["-c", "1", "-n", "1", "--http2"]);
    assert_ends(&output, 2, &["expected HTTP/1.1 for a WebSocket; leave out --http2"]);
}
