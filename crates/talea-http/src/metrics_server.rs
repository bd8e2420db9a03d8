//! A server for the metrics, on a port and a thread of its own.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;

use ::axum::http::header::CONTENT_TYPE;
use ::axum::routing::get;
use talea::Registry;
use tokio::sync::oneshot;

/// Serves `GET /metrics` in the Prometheus text format. It has a thread and a
/// runtime of its own, so that a scrape neither waits for the service's workers
/// nor counts among its tasks. It stops when it is dropped.
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Listens on an address; port 0 picks a free one.
    ///
    /// # Errors
    ///
    /// The address is taken or not ours; no thread can be started.
    pub fn bind(address: SocketAddr, registry: &Registry) -> io::Result<Self> {
        Self::bind_with(address, registry, ::axum::Router::new())
    }

    /// The same with further routes beside `/metrics`.
    ///
    /// # Errors
    ///
    /// As [`bind`](Self::bind).
    ///
    /// # Panics
    ///
    /// `routes` declares `/metrics` itself.
    pub fn bind_with(
        address: SocketAddr,
        registry: &Registry,
        routes: ::axum::Router,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let registry = registry.clone();
        let scrape = async move || {
            ([(CONTENT_TYPE, talea::TEXT_CONTENT_TYPE)], registry.snapshot().to_text())
        };
        let app = routes.route("/metrics", get(scrape));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let serve = async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            tokio::select! {
                _ = ::axum::serve(listener, app) => {}
                _ = stopped => {}
            }
        };
        let thread = std::thread::Builder::new()
            .name("talea-metrics".to_owned())
            .spawn(move || runtime.block_on(serve))?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
