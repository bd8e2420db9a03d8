//! Asks over HTTP.

use std::net::SocketAddr;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

pub(crate) type Answer = Result<(StatusCode, Bytes), Box<dyn std::error::Error>>;

pub async fn get(address: SocketAddr, path: &str) -> Answer {
    ask(address, Method::GET, path, String::new()).await
}

pub(crate) async fn ask(address: SocketAddr, method: Method, path: &str, body: String) -> Answer {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::builder().method(method).uri(path).header("host", "localhost");
    let answer = sender.send_request(request.body(Full::new(Bytes::from(body)))?).await?;
    Ok((answer.status(), answer.into_body().collect().await?.to_bytes()))
}
