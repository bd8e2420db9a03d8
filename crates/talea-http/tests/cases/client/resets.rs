//! A client of HTTP/2 that resets.

use axum::body::Bytes;
use axum::http::Request;
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream, SendStream};
use tokio::task::AbortHandle;

use super::socket::SOME;
use crate::case::{Case, Client, Protocol};
use crate::server::Server;
use crate::witness::NAME;

/// Resets a stream.
pub(super) async fn stream(case: &Case, server: &Server) {
    let (name, mut asked) = Asked::open(case, server, case.client == Client::ResetsInRequest).await;
    match case.client {
        Client::ResetsInRequest => {
            asked.stream.send_data(Bytes::from(vec![b'y'; SOME as usize]), false).unwrap();
            server.sees(name, |record| record.request() >= SOME).await;
        }
        Client::ResetsWhileItWaits => {
            server.sees(name, |record| record.is_running()).await;
        }
        _ => asked.reads_some().await,
    }
    server.has_some_in_flight();
    asked.stream.send_reset(Reason::CANCEL);
    // The connection lives until the stream alone has ended the request.
    server.sees(name, |record| record.is_over()).await;
}

/// Resets a connection with a stream in it.
pub(super) async fn connection(case: &Case, server: &Server) {
    let (_, mut asked) = Asked::open(case, server, false).await;
    asked.reads_some().await;
    server.has_some_in_flight();
}

/// A request in a connection of its own, which resets when it is dropped.
struct Asked {
    answer: Option<ResponseFuture>,
    body: Option<RecvStream>,
    stream: SendStream<Bytes>,
    drives: AbortHandle,
}

impl Asked {
    async fn open(case: &Case, server: &Server, has_body: bool) -> (u64, Self) {
        let name = server.name(case);
        let socket = server.connect(Protocol::Http2).await;
        socket.set_zero_linger().unwrap();
        let (sends, connection) = h2::client::handshake(socket).await.unwrap();
        let drives = tokio::spawn(connection).abort_handle();
        let request = Request::builder()
            .method(case.told().method)
            .uri(format!("http://shop.example{}", case.path))
            .header(NAME, name)
            .body(())
            .unwrap();
        let mut sends = sends.ready().await.unwrap();
        let (answer, stream) = sends.send_request(request, !has_body).unwrap();
        (name, Self { answer: Some(answer), body: None, stream, drives })
    }

    async fn reads_some(&mut self) {
        let answer = self.answer.take().unwrap().await.unwrap();
        let body = self.body.insert(answer.into_body());
        body.data().await.unwrap().unwrap();
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.drives.abort();
    }
}
