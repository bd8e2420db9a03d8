//! A client of HTTP/2 that resets streams and connections.

use axum::body::Bytes;
use axum::http::Request;
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream, SendStream};
use tokio::task::AbortHandle;

use super::socket::SOME;
use crate::cases::case::{Case, Client, Protocol};
use crate::cases::server::Server;
use crate::cases::witness::NAME;

pub(super) async fn reset_stream(case: &Case, server: &Server) {
    let (name, mut request) =
        OpenRequest::open(case, server, case.client == Client::ResetsInRequest).await;
    match case.client {
        Client::ResetsInRequest => {
            request.stream.send_data(Bytes::from(vec![b'y'; SOME as usize]), false).unwrap();
            server.wait_for(name, |record| record.request() >= SOME).await;
        }
        Client::ResetsWhileItWaits => {
            server.wait_for(name, |record| record.is_running()).await;
        }
        _ => request.read_some().await,
    }
    server.assert_in_flight();
    request.stream.send_reset(Reason::CANCEL);
    // The connection stays open until the reset of the stream has ended the request.
    server.wait_for(name, |record| record.is_over()).await;
}

pub(super) async fn reset_connection(case: &Case, server: &Server) {
    let (_, mut request) = OpenRequest::open(case, server, false).await;
    request.read_some().await;
    server.assert_in_flight();
}

/// A request on a connection of its own, which is reset when this is dropped.
struct OpenRequest {
    response: Option<ResponseFuture>,
    body: Option<RecvStream>,
    stream: SendStream<Bytes>,
    drives: AbortHandle,
}

impl OpenRequest {
    async fn open(case: &Case, server: &Server, has_body: bool) -> (u64, Self) {
        let name = server.name(case);
        let socket = server.connect(Protocol::Http2).await;
        socket.set_zero_linger().unwrap();
        let (sends, connection) = h2::client::handshake(socket).await.unwrap();
        let drives = tokio::spawn(connection).abort_handle();
        let request = Request::builder()
            .method(case.expected.method)
            .uri(format!("http://shop.example{}", case.path))
            .header(NAME, name)
            .body(())
            .unwrap();
        let mut sends = sends.ready().await.unwrap();
        let (response, stream) = sends.send_request(request, !has_body).unwrap();
        (name, Self { response: Some(response), body: None, stream, drives })
    }

    async fn read_some(&mut self) {
        let response = self.response.take().unwrap().await.unwrap();
        let body = self.body.insert(response.into_body());
        body.data().await.unwrap().unwrap();
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.drives.abort();
    }
}
