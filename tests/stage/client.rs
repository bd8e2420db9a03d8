//! Asks over HTTP.

use std::net::SocketAddr;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// What a path answers.
///
/// # Errors
///
/// Nobody listens there, or breaks off.
pub async fn get(
    address: SocketAddr,
    path: &str,
) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error>> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::builder().uri(path).header("host", "localhost");
    let answer = sender.send_request(request.body(Empty::<Bytes>::new())?).await?;
    Ok((answer.status(), answer.into_body().collect().await?.to_bytes()))
}
