//! A client that writes HTTP/1 by hand.

use axum::http::Request;
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::app::MEMORY;
use crate::case::{Case, Client, Protocol};
use crate::server::{PATIENCE, Server};
use crate::witness::NAME;

/// What of its body a client sends that resets.
pub(super) const SOME: u64 = 3_000;
/// What it says that it will send.
const MORE: u64 = 100_000;

/// Does what the case says.
pub(super) async fn speaks(case: &Case, server: &Server) {
    let stream = server.connect(Protocol::Http1).await;
    let mut socket = Socket { stream, read: Vec::new() };
    match case.client {
        Client::ResetsInRequest => {
            let name = socket.sends(case, server, &format!("content-length: {MORE}\r\n")).await;
            socket.sends_bytes(SOME).await;
            server.sees(name, |record| record.request() >= SOME).await;
            socket.resets(server);
        }
        Client::ResetsWhileItWaits => {
            let name = socket.sends(case, server, "").await;
            server.sees(name, |record| record.is_running()).await;
            socket.resets(server);
        }
        Client::ResetsInResponse => {
            socket.sends(case, server, "").await;
            socket.reads_until(|read| read.len() as u64 >= SOME).await;
            socket.resets(server);
        }
        Client::Closes => {
            let name = socket.sends(case, server, "").await;
            server.sees(name, |record| record.is_running()).await;
            socket.stream.shutdown().await.unwrap();
            socket.reads_to_the_end().await;
        }
        Client::Pipelines(times) => {
            let mut all = String::new();
            for n in 1..=times {
                let last = if n == times { "connection: close\r\n" } else { "" };
                all += &head(case, "1.1", server.name(case), last);
            }
            socket.stream.write_all(all.as_bytes()).await.unwrap();
            let answers = socket.reads_to_the_end().await;
            assert_eq!(answers.matches("HTTP/1.1 200 OK\r\n").count(), times);
            assert_eq!(answers.matches('x').count() as u64, times as u64 * MEMORY);
        }
        Client::Expects(bytes) => {
            let extra =
                format!("content-length: {bytes}\r\nexpect: 100-continue\r\nconnection: close\r\n");
            socket.sends(case, server, &extra).await;
            if case.told().request == Some(bytes) {
                socket.reads_until(|read| read.starts_with(b"HTTP/1.1 100 Continue\r\n")).await;
                socket.sends_bytes(bytes).await;
            }
            let answer = socket.reads_to_the_end().await;
            assert!(answer.contains("HTTP/1.1 200 OK\r\n"), "{answer}");
        }
        Client::IsOld => {
            let head = head(case, "1.0", server.name(case), "");
            socket.stream.write_all(head.as_bytes()).await.unwrap();
            let answer = socket.reads_to_the_end().await;
            assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
        }
        client => unreachable!("{client:?}"),
    }
}

/// Speaks WebSocket: sends a message, and has it back.
pub(super) async fn upgrades(case: &Case, server: &Server) {
    let stream = server.connect(Protocol::Http1).await;
    let uri = format!("ws://shop.example{}", case.path);
    let mut request: Request<()> = uri.into_client_request().unwrap();
    request.headers_mut().insert(NAME, server.name(case).into());
    let (mut socket, answer) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    assert_eq!(answer.status(), 101);
    socket.send(Message::text("there")).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), Message::text("there"));
}

struct Socket {
    stream: TcpStream,
    read: Vec<u8>,
}

fn head(case: &Case, version: &str, name: u64, extra: &str) -> String {
    let Case { path, .. } = case;
    let method = case.told().method;
    format!("{method} {path} HTTP/{version}\r\nhost: shop.example\r\n{NAME}: {name}\r\n{extra}\r\n")
}

impl Socket {
    /// Sends a request's head; returns its name.
    async fn sends(&mut self, case: &Case, server: &Server, extra: &str) -> u64 {
        let name = server.name(case);
        self.stream.write_all(head(case, "1.1", name, extra).as_bytes()).await.unwrap();
        name
    }

    async fn sends_bytes(&mut self, bytes: u64) {
        self.stream.write_all(&vec![b'y'; bytes as usize]).await.unwrap();
    }

    async fn reads_until(&mut self, is_enough: impl Fn(&[u8]) -> bool) {
        while !is_enough(&self.read) {
            let more = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.read));
            assert_ne!(more.await.expect("an answer").unwrap(), 0, "it closed");
        }
    }

    async fn reads_to_the_end(&mut self) -> String {
        let all = tokio::time::timeout(PATIENCE, self.stream.read_to_end(&mut self.read));
        all.await.expect("an end").unwrap();
        String::from_utf8_lossy(&self.read).into_owned()
    }

    fn resets(self, server: &Server) {
        server.has_some_in_flight();
        self.stream.set_zero_linger().unwrap();
    }
}
