//! A client of the service.

use crate::service::LONGEST;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::time::timeout;

/// The content type and the text of a body, if there is one.
pub(crate) type Body<'a> = Option<(&'a str, &'a str)>;

/// A body of JSON.
pub(crate) fn json(text: &str) -> Body<'_> {
    Some(("application/json", text))
}

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

/// Sends `METHOD /path` over a connection of its own.
pub(crate) fn send(to: SocketAddr, line: &str, body: Body<'_>) -> Answer {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let answer = async { Connection::open(to).await.send(line, body).await };
    runtime
        .block_on(async { timeout(LONGEST, answer).await })
        .unwrap_or_else(|_| panic!("no answer to {line} in 30 s"))
}

/// A connection, which the runtime closes at its end.
pub(crate) struct Connection(http1::SendRequest<Full<Bytes>>);

impl Connection {
    pub(crate) async fn open(to: SocketAddr) -> Connection {
        let stream = TcpStream::connect(to).await.expect("a connection");
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(connection);
        Connection(sender)
    }

    /// Sends `METHOD /path`.
    pub(crate) async fn send(&mut self, line: &str, body: Body<'_>) -> Answer {
        let (method, path) = line.split_once(' ').expect("a method and a path");
        let mut request = Request::builder().method(method).uri(path).header("host", "items");
        if let Some((content_type, _)) = body {
            request = request.header("content-type", content_type);
        }
        let text = body.map_or("", |(_, text)| text).to_owned();
        let request = request.body(Full::new(Bytes::from(text))).expect("a request");
        self.0.ready().await.expect("a connection that lives");
        let (head, body) = self.0.send_request(request).await.expect("an answer").into_parts();
        let body = body.collect().await.expect("the whole body").to_bytes();
        Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body: String::from_utf8(body.into()).expect("a body of text"),
        }
    }
}
