//! A client that writes HTTP/1 itself.

use axum::http::Request;
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::cases::case::{Case, Client, Protocol};
use crate::cases::handlers::MEMORY;
use crate::cases::server::Server;
use crate::cases::witness::NAME;
use crate::support::wait::LONGEST;

/// The bytes of its body that a client sends before it resets.
pub(super) const SOME: u64 = 3_000;
/// The length that it declares.
const MORE: u64 = 100_000;

pub(super) async fn run(case: &Case, server: &Server) {
    let stream = server.connect(Protocol::Http1).await;
    let mut socket = Socket { stream, read: Vec::new() };
    match case.client {
        Client::ResetsInRequest => {
            let name = socket.send_head(case, server, &format!("content-length: {MORE}\r\n")).await;
            socket.send_bytes(SOME).await;
            server.wait_for(name, |record| record.request() >= SOME).await;
            socket.reset(server);
        }
        Client::ResetsWhileItWaits => {
            let name = socket.send_head(case, server, "").await;
            server.wait_for(name, |record| record.is_running()).await;
            socket.reset(server);
        }
        Client::ResetsInResponse => {
            socket.send_head(case, server, "").await;
            socket.read_until(|read| read.len() as u64 >= SOME).await;
            socket.reset(server);
        }
        Client::Closes => {
            let name = socket.send_head(case, server, "").await;
            server.wait_for(name, |record| record.is_running()).await;
            socket.stream.shutdown().await.unwrap();
            socket.read_to_end().await;
        }
        Client::Pipelines(times) => {
            let mut all = String::new();
            for n in 1..=times {
                let last = if n == times { "connection: close\r\n" } else { "" };
                all += &head(case, "1.1", server.name(case), last);
            }
            socket.stream.write_all(all.as_bytes()).await.unwrap();
            let responses = socket.read_to_end().await;
            assert_eq!(responses.matches("HTTP/1.1 200 OK\r\n").count(), times);
            assert_eq!(responses.matches('x').count() as u64, times as u64 * MEMORY);
        }
        Client::Expects(bytes) => {
            let extra =
                format!("content-length: {bytes}\r\nexpect: 100-continue\r\nconnection: close\r\n");
            socket.send_head(case, server, &extra).await;
            if case.expected.request == Some(bytes) {
                socket.read_until(|read| read.starts_with(b"HTTP/1.1 100 Continue\r\n")).await;
                socket.send_bytes(bytes).await;
            }
            let response = socket.read_to_end().await;
            assert!(response.contains("HTTP/1.1 200 OK\r\n"), "{response}");
        }
        Client::IsOld => {
            let head = head(case, "1.0", server.name(case), "");
            socket.stream.write_all(head.as_bytes()).await.unwrap();
            let response = socket.read_to_end().await;
            assert!(response.starts_with("HTTP/1.0 200 OK\r\n"), "{response}");
        }
        client => unreachable!("{client:?}"),
    }
}

/// Upgrades to a WebSocket, and gets a message echoed.
pub(super) async fn upgrade(case: &Case, server: &Server) {
    let stream = server.connect(Protocol::Http1).await;
    let uri = format!("ws://shop.example{}", case.path);
    let mut request: Request<()> = uri.into_client_request().unwrap();
    request.headers_mut().insert(NAME, server.name(case).into());
    let (mut socket, response) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    assert_eq!(response.status(), 101);
    socket.send(Message::text("there")).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), Message::text("there"));
    if case.client == Client::UpgradesWithGuard {
        server.assert_in_flight();
    }
}

struct Socket {
    stream: TcpStream,
    read: Vec<u8>,
}

fn head(case: &Case, version: &str, name: u64, extra: &str) -> String {
    let Case { path, .. } = case;
    let method = case.expected.method;
    format!("{method} {path} HTTP/{version}\r\nhost: shop.example\r\n{NAME}: {name}\r\n{extra}\r\n")
}

impl Socket {
    /// Sends a request's head; returns its number.
    async fn send_head(&mut self, case: &Case, server: &Server, extra: &str) -> u64 {
        let name = server.name(case);
        self.stream.write_all(head(case, "1.1", name, extra).as_bytes()).await.unwrap();
        name
    }

    async fn send_bytes(&mut self, bytes: u64) {
        self.stream.write_all(&vec![b'y'; bytes as usize]).await.unwrap();
    }

    async fn read_until(&mut self, is_enough: impl Fn(&[u8]) -> bool) {
        while !is_enough(&self.read) {
            let more = tokio::time::timeout(LONGEST, self.stream.read_buf(&mut self.read));
            assert_ne!(more.await.expect("a response").unwrap(), 0, "it closed");
        }
    }

    async fn read_to_end(&mut self) -> String {
        let all = tokio::time::timeout(LONGEST, self.stream.read_to_end(&mut self.read));
        all.await.expect("an end").unwrap();
        String::from_utf8_lossy(&self.read).into_owned()
    }

    fn reset(self, server: &Server) {
        server.assert_in_flight();
        self.stream.set_zero_linger().unwrap();
    }
}
