//! One connection, from the handshake to its end.

use std::sync::Arc;

use axum::Router;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpStream;

use super::answers::Answers;
use super::counts::{Counts, Reason};
use super::phase::Phase;
use super::web::Web;
use super::wire::Watched;
use crate::stop::Stop;

/// The head of a request: its line and its headers. hyper allows 100 of them over HTTP/1.
const HEAD: u32 = 16 << 10;
/// Requests at a time over one connection of HTTP/2.
const STREAMS: u32 = 16;
/// What one may send of a body that nobody reads.
const STREAM_WINDOW: u32 = 16 << 10;
/// The least that HTTP/2 has for all of them.
const CONNECTION_WINDOW: u32 = 65_535;
/// The least that HTTP/2 has.
const FRAME: u32 = 16 << 10;
/// What is buffered of an answer over HTTP/2, beside the piece that it consists of.
const SENDING: usize = 16 << 10;
/// Streams that a client has reset before they were looked at. One more ends the connection.
const RESETS: usize = 20;
/// Streams that were reset for what the client did wrong. One more ends the connection.
const WRONGS: usize = 20;

/// Serves connections.
pub(super) struct Server {
    web: Arc<Web>,
    answers: Arc<Answers>,
    stop: Stop,
    any: Builder<TokioExecutor>,
    http1: Builder<TokioExecutor>,
}

impl Server {
    pub(super) fn new(app: Router, web: Arc<Web>, counts: Arc<Counts>, stop: Stop) -> Self {
        let answers = Arc::new(Answers::new(app, web.clone(), counts));
        let any = protocols();
        let http1 = protocols().http1_only();
        Self { web, answers, stop, any, http1 }
    }

    /// Serves until it ends by itself: whoever is over a limit is ended from outside.
    pub(super) async fn serve(self: Arc<Self>, tcp: TcpStream, phase: Arc<Phase>) {
        // Pieces are large enough as they are.
        let _ = tcp.set_nodelay(true);
        let rules = self.web.current();
        let Some(tls) = rules.tls() else {
            phase.shook_hands();
            return self.answer(Watched::new(tcp, phase.clone()), phase, rules.http2()).await;
        };
        let mut stop = self.stop.clone();
        let encrypted = tokio::select! {
            encrypted = tls.accept(tcp) => encrypted,
            () = stop.requested() => return,
        };
        // Whoever does not speak it has been told so, by an alert.
        let Ok(encrypted) = encrypted else { return self.answers.counts().end(Reason::Handshake) };
        phase.shook_hands();
        self.answer(Watched::new(encrypted, phase.clone()), phase, rules.http2()).await;
    }

    async fn answer(&self, wire: Watched, phase: Arc<Phase>, http2: bool) {
        let answers = self.answers.clone();
        let service = service_fn(move |request| answers.clone().answer(request, phase.clone()));
        let protocols = if http2 { &self.any } else { &self.http1 };
        let mut served = std::pin::pin!(protocols.serve_connection(TokioIo::new(wire), service));
        let mut stop = self.stop.clone();
        // How it ended says nothing that a client has not been told.
        tokio::select! {
            _ = &mut served => return,
            () = stop.requested() => {}
        }
        served.as_mut().graceful_shutdown();
        let _ = served.await;
    }
}

fn protocols() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // The watch sees to time.
    builder.http1().header_read_timeout(None).max_buf_size(HEAD as usize);
    builder
        .http2()
        .max_header_list_size(HEAD)
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME)
        .max_send_buf_size(SENDING)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(WRONGS);
    builder
}
