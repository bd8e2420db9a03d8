//! A server for the metrics, on a port and a thread of its own.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::process;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use ::axum::response::Html;
use ::axum::routing::get;
use talea::Registry;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::exposition::Exposition;
#[cfg(unix)]
use crate::server::UnixAddress;
use crate::server::{Address, Counts, Limits, OpenGate, Server};

/// Serves the program's [default registry](talea::default_registry) at `/metrics`, with default limits;
/// port 0 picks a free port. It stops when the result is dropped.
///
/// ```no_run
/// use talea::Counter;
///
/// /// Orders accepted.
/// #[talea::register]
/// static ORDERS: Counter = Counter::new();
///
/// fn main() -> Result<(), talea_http::ServeError> {
///     let _metrics = talea_http::serve(([127, 0, 0, 1], 9464))?;
///     ORDERS.inc();
///     Ok(())
/// }
/// ```
///
/// # Errors
///
/// As [`talea::default_registry`] and [`MetricsServer::bind`].
pub fn serve(address: impl Into<SocketAddr>) -> Result<MetricsServer, ServeError> {
    let registry = talea::default_registry().map_err(ServeError::Registry)?;
    MetricsServer::bind(address.into(), registry).map_err(ServeError::Listen)
}

/// Why the default registry is not served; see [`serve`]. Its `Debug` form is its text.
#[non_exhaustive]
pub enum ServeError {
    /// The registry could not be opened, or a metric not registered.
    Registry(talea::Error),
    /// The address cannot be listened on, or no thread can be started.
    Listen(io::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry(error) => error.fmt(f),
            Self::Listen(error) => error.fmt(f),
        }
    }
}

impl fmt::Debug for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Without a source, since the text has the cause.
impl std::error::Error for ServeError {}

/// Serves `GET /metrics` as an [`Exposition`] does, and at `/` a page that leads there.
///
/// It has a thread and a runtime of its own, so that a scrape neither waits for the service's
/// workers nor counts among its tasks. It stops when it is dropped, without waiting for a snapshot
/// that is being taken. In a child made by `fork` there is no server, and to drop its copy does
/// nothing: the parent goes on serving, and the port is free once the parent has ended.
///
/// Clients cannot take more than [`Limits`] allow: 64 connections at once, ten seconds for the
/// head of a request, five minutes without a request, and the exposition's
/// [`patience`](Exposition::patience) to take a piece of a response. At the limit, a new
/// connection takes the place of an idle one. It speaks HTTP/1. A client that shuts down its side of
/// the connection, as `nc -N` and `socat` do at the end of their input, still gets its response. A
/// request with a body is the last of its connection, as its body is not read.
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    counts: Arc<Counts>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// The id of the process that has the thread.
    process: u32,
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

    /// Listens on a Unix socket and serves a registry with default limits. Prometheus scrapes such sockets from
    /// version 3.15 on, and curl with `--unix-socket`.
    ///
    /// ```no_run
    /// use talea_http::{MetricsServer, UnixAddress};
    ///
    /// # let registry = talea::Registry::for_test()?;
    /// let server = MetricsServer::bind_unix(UnixAddress::new("/run/shop/metrics.sock"), &registry)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A living process listens there, the file is no socket, or no thread can be started.
    #[cfg(unix)]
    pub fn bind_unix(address: UnixAddress, registry: &Registry) -> io::Result<Self> {
        Self::builder(Exposition::new(registry)).bind_unix(address)
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
        let limits = Limits { patience: exposition.patience, ..Limits::default() };
        MetricsServerBuilder { exposition, routes: None, limits }
    }

    /// The address that it listens on; 0.0.0.0 and port 0 if it listens on a Unix socket.
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
    routes: Option<::axum::Router>,
    limits: Limits,
}

impl MetricsServerBuilder {
    /// Further routes beside `/metrics`. Default: `/`, a page that leads there.
    #[must_use]
    pub fn routes(mut self, routes: ::axum::Router) -> Self {
        self.routes = Some(routes);
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
        self.serve(address.into())
    }

    /// Listens on a Unix socket and serves.
    ///
    /// # Errors
    ///
    /// A living process listens there, the file is no socket, or no thread can be started.
    ///
    /// # Panics
    ///
    /// The routes have `/metrics` already.
    #[cfg(unix)]
    pub fn bind_unix(self, address: UnixAddress) -> io::Result<MetricsServer> {
        self.serve(address.into())
    }

    fn serve(self, address: Address) -> io::Result<MetricsServer> {
        let app = self
            .routes
            .unwrap_or_else(|| ::axum::Router::new().route("/", get(async || Html(INDEX))))
            .route_service("/metrics", self.exposition);
        let (stop, stopped) = oneshot::channel::<()>();
        let (started, starts) = mpsc::channel();
        // The runtime lives and ends on this thread: the caller may be in another runtime, where
        // no runtime may be dropped.
        let thread = thread::Builder::new().name("talea-metrics".to_owned()).spawn(move || {
            let (runtime, server) = match bind(address, self.limits) {
                Ok(bound) => bound,
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
            // A snapshot may wait for what the thread that stops the server holds.
            runtime.shutdown_background();
        })?;
        let bound = starts.recv().unwrap_or_else(|_| Err(io::Error::other("its thread ended")));
        let (address, counts) = match bound {
            Ok(bound) => bound,
            Err(error) => {
                let _ = thread.join();
                return Err(error);
            }
        };
        let (stop, thread, process) = (Some(stop), Some(thread), process::id());
        Ok(MetricsServer { address, counts, stop, thread, process })
    }
}

const INDEX: &str = "<!doctype html><html lang=en><meta charset=utf-8><title>Metrics</title>\
    <h1>Metrics</h1><p><a href=metrics>/metrics</a></html>\n";

/// A server, and the runtime in which it serves.
fn bind(address: Address, limits: Limits) -> io::Result<(Runtime, Server)> {
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_all().thread_name("talea-scrape").build()?;
    let server = runtime.block_on(async { Server::bind(address, limits, Arc::new(OpenGate)) })?;
    Ok((runtime, server))
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        if self.process != process::id() {
            // A child made by `fork` has no such thread, and to join it panics.
            return std::mem::forget((self.stop.take(), self.thread.take()));
        }
        drop(self.stop.take());
        // A route of its own drops it on that very thread, which cannot wait for itself.
        if let Some(thread) = self
            .thread
            .take()
            .filter(|thread: &JoinHandle<()>| thread.thread().id() != thread::current().id())
        {
            let _ = thread.join();
        }
    }
}
