//! A client over real connections.

use std::io::Read;
use std::net::SocketAddr;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use flate2::read::GzDecoder;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

#[derive(Debug)]
pub(crate) struct ClientResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl ClientResponse {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn unzipped(&self) -> Vec<u8> {
        assert_eq!(self.header("content-encoding"), "gzip");
        let mut out = Vec::new();
        GzDecoder::new(&self.body[..]).read_to_end(&mut out).unwrap();
        out
    }
}

pub(crate) fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Serves a router by axum on a free port, for as long as the test's runtime lives.
pub(crate) async fn serve(app: axum::Router) -> SocketAddr {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async { axum::serve(listener, app).await });
    address
}

/// Sends a request, and returns with the head of the response.
pub(crate) async fn open(
    address: SocketAddr,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> hyper::Response<Incoming> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(path).header("host", "x");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    sender.send_request(request.body(Body::empty()).unwrap()).await.unwrap()
}

pub(crate) async fn ask(
    address: SocketAddr,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> ClientResponse {
    let (head, body) = open(address, method, path, headers).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    ClientResponse { status: head.status, headers: head.headers, body }
}

pub(crate) async fn get(
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
) -> ClientResponse {
    ask(address, Method::GET, path, headers).await
}
