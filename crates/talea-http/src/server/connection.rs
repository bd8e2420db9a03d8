//! One connection, from its handshake to its end.

use std::net::SocketAddr;
use std::sync::Arc;

use ::axum::Router;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::watch;

use super::counts::{Counts, Reason};
use super::gate::{AcceptedConnection, Gate};
use super::gated_app::GatedApp;
use super::phase::Phase;
use super::socket::Socket;

#[cfg(not(feature = "http2"))]
use hyper::server::conn::http1::Builder;
#[cfg(feature = "http2")]
type Builder = hyper_util::server::conn::auto::Builder<hyper_util::rt::TokioExecutor>;

/// The head of a request: its line and its headers. hyper allows 100 headers over HTTP/1.
const HEAD: u32 = 16 << 10;
/// Limits of a connection of HTTP/2.
#[cfg(feature = "http2")]
mod http2 {
    /// Requests at once over one connection of HTTP/2.
    pub(super) const STREAMS: u32 = 16;
    /// Bytes that a client may send of a request's body, which is not read.
    pub(super) const STREAM_WINDOW: u32 = 16 << 10;
    /// Bytes that a client may send of all bodies of a connection: the least that HTTP/2 allows.
    pub(super) const CONNECTION_WINDOW: u32 = 65_535;
    /// The largest frame: the least that HTTP/2 allows.
    pub(super) const FRAME: u32 = 16 << 10;
    /// Bytes that are buffered of a response over HTTP/2, beside one piece of it.
    pub(super) const SEND_BUFFER: usize = 16 << 10;
    /// Streams that the client has reset before they were looked at. One more ends the connection.
    pub(super) const PENDING_RESETS: usize = 20;
    /// Streams that were reset for an error of the client. One more ends the connection.
    pub(super) const ERROR_RESETS: usize = 20;
}

/// Serves connections by HTTP/1, and by HTTP/2 if the gate allows it.
pub(super) struct Protocols {
    gate: Arc<dyn Gate>,
    app: Arc<GatedApp>,
    counts: Arc<Counts>,
    stopping: watch::Receiver<bool>,
    #[cfg(feature = "http2")]
    any: Builder,
    http1: Builder,
}

impl Protocols {
    pub(super) fn new(
        app: Router,
        gate: Arc<dyn Gate>,
        counts: Arc<Counts>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        Self {
            app: Arc::new(GatedApp { app, gate: gate.clone() }),
            gate,
            counts,
            stopping,
            #[cfg(feature = "http2")]
            any: builder(),
            #[cfg(feature = "http2")]
            http1: builder().http1_only(),
            #[cfg(not(feature = "http2"))]
            http1: builder(),
        }
    }

    /// Serves a connection until it ends by itself. A connection that exceeds a limit is ended
    /// from outside, by aborting its task.
    pub(super) async fn serve(
        self: Arc<Self>,
        socket: Socket,
        client: SocketAddr,
        phase: Arc<Phase>,
    ) {
        socket.send_at_once();
        let mut stopping = self.stopping.clone();
        let accepted = tokio::select! {
            accepted = self.gate.accept(socket) => accepted,
            () = stopped(&mut stopping) => return,
        };
        // The handshake has sent its own alert to the client.
        let Ok(accepted) = accepted else { return self.counts.close(Reason::Handshake) };
        phase.handshake_done();
        let AcceptedConnection { transport, http2 } = accepted;
        let transport = transport.watched(phase.clone());
        let app = self.app.clone();
        let service = service_fn(move |request| app.clone().respond(request, client, &phase));
        #[cfg(feature = "http2")]
        let protocol = if http2 { &self.any } else { &self.http1 };
        #[cfg(not(feature = "http2"))]
        let (protocol, _) = (&self.http1, http2);
        let served = protocol.serve_connection(TokioIo::new(transport), service);
        let mut served = std::pin::pin!(served);
        // Errors need no report here: the client has been informed by the protocol.
        tokio::select! {
            _ = &mut served => return,
            () = stopped(&mut stopping) => {}
        }
        served.as_mut().graceful_shutdown();
        let _ = served.await;
    }
}

async fn stopped(stopping: &mut watch::Receiver<bool>) {
    if stopping.wait_for(|stopping| *stopping).await.is_err() {
        // The server is gone without a shutdown, and ends this task.
        std::future::pending::<()>().await;
    }
}

#[cfg(not(feature = "http2"))]
fn builder() -> Builder {
    let mut builder = Builder::new();
    // The watch over the phases limits times.
    builder.header_read_timeout(None).max_buf_size(HEAD as usize);
    builder
}

#[cfg(feature = "http2")]
fn builder() -> Builder {
    let mut builder = Builder::new(hyper_util::rt::TokioExecutor::new());
    // The watch over the phases limits times.
    builder.http1().header_read_timeout(None).max_buf_size(HEAD as usize);
    builder
        .http2()
        .max_header_list_size(HEAD)
        .max_concurrent_streams(http2::STREAMS)
        .initial_stream_window_size(http2::STREAM_WINDOW)
        .initial_connection_window_size(http2::CONNECTION_WINDOW)
        .max_frame_size(http2::FRAME)
        .max_send_buf_size(http2::SEND_BUFFER)
        .max_pending_accept_reset_streams(http2::PENDING_RESETS)
        .max_local_error_reset_streams(http2::ERROR_RESETS);
    builder
}
