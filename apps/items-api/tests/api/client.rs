//! A client that sends one request over a connection of its own.

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::time::timeout;

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).unwrap_or_else(|| panic!("no {name} in {self:?}"));
        value.to_str().expect("a header of text")
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), "application/json", "{self:?}");
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The message of an error answer, which must have nothing else.
    pub(crate) fn error(&self) -> String {
        let json = self.json();
        let message = json["error"]["message"].as_str().unwrap_or_else(|| panic!("{self:?}"));
        assert_eq!(json, serde_json::json!({ "error": { "message": message } }));
        message.to_owned()
    }
}

/// Sends `METHOD /path` with a body of a content type, or none.
pub(crate) fn send(to: SocketAddr, line: &str, body: Option<(&str, &str)>) -> Answer {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        timeout(Duration::from_secs(30), send_async(to, line, body))
            .await
            .unwrap_or_else(|_| panic!("no answer to {line} in 30 s"))
    })
}

async fn send_async(to: SocketAddr, line: &str, body: Option<(&str, &str)>) -> Answer {
    let (method, path) = line.split_once(' ').expect("a method and a path");
    let stream = TcpStream::connect(to).await.expect("a connection");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
    let driver = tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(path).header("host", "items");
    if let Some((content_type, _)) = body {
        request = request.header("content-type", content_type);
    }
    let text = body.map_or(String::new(), |(_, text)| text.to_owned());
    let request = request.body(Full::new(Bytes::from(text))).expect("a request");
    let answer = sender.send_request(request).await.expect("an answer");
    let (head, body) = answer.into_parts();
    let body = body.collect().await.expect("the whole body").to_bytes();
    driver.abort();
    Answer {
        status: head.status.as_u16(),
        headers: head.headers,
        body: String::from_utf8(body.into()).expect("a body of text"),
    }
}
