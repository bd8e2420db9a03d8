//! A server for the metrics, on a port and a thread of its own.

mod patient;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;

use talea::Registry;
use tokio::sync::oneshot;

use crate::exposition::Exposition;
use patient::PatientListener;

/// Serves `GET /metrics` as an [`Exposition`] does. It has a thread and a runtime of its
/// own, so that a scrape neither waits for the service's workers nor counts among its
/// tasks. A connection whose client stops reading is ended as soon as the exposition's
/// [`patience`](Exposition::patience) is. It stops when it is dropped.
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
        Self::bind_exposition(address, Exposition::new(registry), routes)
    }

    /// The same with limits of its own.
    ///
    /// # Errors
    ///
    /// As [`bind`](Self::bind).
    ///
    /// # Panics
    ///
    /// As [`bind_with`](Self::bind_with).
    pub fn bind_exposition(
        address: SocketAddr,
        exposition: Exposition,
        routes: ::axum::Router,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let patience = exposition.patient_for();
        let app = routes.route_service("/metrics", exposition);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .thread_name("talea-scrape")
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let serve = async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            tokio::select! {
                _ = ::axum::serve(PatientListener::new(listener, patience), app) => {}
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
