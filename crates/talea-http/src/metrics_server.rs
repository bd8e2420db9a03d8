//! A server for the metrics, on a port and a thread of its own.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use talea::Registry;
use tokio::sync::oneshot;

use crate::exposition::Exposition;
use crate::server::{Counts, Limits, OpenGate, Server};

/// Serves `GET /metrics` as an [`Exposition`] does.
///
/// It has a thread and a runtime of its own, so that a scrape neither waits for the service's
/// workers nor counts among its tasks. It stops when it is dropped.
///
/// Clients cannot take more than [`Limits`] allow: 64 connections at once, ten seconds for the
/// head of a request, five minutes without a request, and the exposition's
/// [`patience`](Exposition::patience) to take a piece of a response. At the limit, a new
/// connection takes the place of an idle one. It speaks HTTP/1.
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    counts: Arc<Counts>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Listens on an address and serves a registry with default limits; port 0 picks a free
    /// port.
    ///
    /// # Errors
    ///
    /// The address cannot be listened on, or no thread can be started.
    pub fn bind(address: SocketAddr, registry: &Registry) -> io::Result<Self> {
        Self::builder(Exposition::new(registry)).bind(address)
    }

    /// A server of an exposition, with further routes or limits.
    ///
    /// ```
    /// use axum::{Router, routing::get};
    /// use talea_http::{Exposition, Limits, MetricsServer};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let registry = talea::Registry::for_test()?;
    /// let server = MetricsServer::builder(Exposition::new(&registry).at_once(2))
    ///     .routes(Router::new().route("/healthz", get(|| async { "ok" })))
    ///     .limits(Limits { connections: 16, ..Limits::default() })
    ///     .bind(([127, 0, 0, 1], 0).into())?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(exposition: Exposition) -> MetricsServerBuilder {
        let limits = Limits { patience: exposition.patience_limit(), ..Limits::default() };
        MetricsServerBuilder { exposition, routes: ::axum::Router::new(), limits }
    }

    /// The address that it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Counts of its connections.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}

/// Options of a [`MetricsServer`].
#[derive(Clone, Debug)]
pub struct MetricsServerBuilder {
    exposition: Exposition,
    routes: ::axum::Router,
    limits: Limits,
}

impl MetricsServerBuilder {
    /// Further routes beside `/metrics`. Default: none.
    #[must_use]
    pub fn routes(mut self, routes: ::axum::Router) -> Self {
        self.routes = routes;
        self
    }

    /// The limits on clients. Default: [`Limits::default`], with the exposition's
    /// [`patience`](Exposition::patience).
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Listens on an address and serves; port 0 picks a free port.
    ///
    /// # Errors
    ///
    /// The address cannot be listened on, or no thread can be started.
    ///
    /// # Panics
    ///
    /// The routes have `/metrics` already.
    pub fn bind(self, address: SocketAddr) -> io::Result<MetricsServer> {
        let app = self.routes.route_service("/metrics", self.exposition);
        let (stop, stopped) = oneshot::channel::<()>();
        let (started, starts) = mpsc::channel();
        // The runtime lives and ends on this thread: the caller may be in another runtime, where
        // none may be dropped.
        let run = move || {
            let runtime = match runtime() {
                Ok(runtime) => runtime,
                Err(error) => return drop(started.send(Err(error))),
            };
            let bound = {
                let _entered = runtime.enter();
                Server::bind(address, self.limits, Arc::new(OpenGate))
            };
            let server = match bound {
                Ok(server) => server,
                Err(error) => return drop(started.send(Err(error))),
            };
            if started.send(Ok((server.local_addr(), server.counts()))).is_err() {
                return;
            }
            runtime.block_on(async {
                tokio::select! {
                    () = server.serve(app, std::future::pending()) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("talea-metrics".to_owned()).spawn(run)?;
        let bound = starts.recv().unwrap_or_else(|_| Err(io::Error::other("its thread ended")));
        let (address, counts) = match bound {
            Ok(bound) => bound,
            Err(error) => {
                let _ = thread.join();
                return Err(error);
            }
        };
        Ok(MetricsServer { address, counts, stop: Some(stop), thread: Some(thread) })
    }
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().thread_name("talea-scrape").build()
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
