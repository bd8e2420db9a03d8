//! A client of HTTP/2 that resets a stream and keeps the connection.

use axum::body::Bytes;
use axum::http::Request;
use h2::Reason;

use super::socket::SOME;
use crate::case::{Case, Client, Protocol};
use crate::server::Server;
use crate::witness::NAME;

pub(super) async fn stream(case: &Case, server: &Server) {
    let name = server.name(case);
    let socket = server.connect(Protocol::Http2).await;
    let (sends, connection) = h2::client::handshake(socket).await.unwrap();
    let drives = tokio::spawn(connection);
    let request = Request::builder()
        .method(case.told(server.way).method)
        .uri(format!("http://shop.example{}", case.path))
        .header(NAME, name)
        .body(())
        .unwrap();
    let has_body = case.client == Client::ResetsInRequest;
    let mut sends = sends.ready().await.unwrap();
    let (answer, mut stream) = sends.send_request(request, !has_body).unwrap();
    match case.client {
        Client::ResetsInRequest => {
            stream.send_data(Bytes::from(vec![b'y'; SOME as usize]), false).unwrap();
            server.sees(name, |record| record.request() >= SOME).await;
            stream.send_reset(Reason::CANCEL);
        }
        Client::ResetsWhileItWaits => {
            server.sees(name, |record| record.is_running()).await;
            stream.send_reset(Reason::CANCEL);
        }
        _ => {
            let mut answer = answer.await.unwrap();
            answer.body_mut().data().await.unwrap().unwrap();
            stream.send_reset(Reason::CANCEL);
        }
    }
    // The connection lives until the stream alone has ended the request.
    server.sees(name, |record| record.is_over()).await;
    drives.abort();
}
