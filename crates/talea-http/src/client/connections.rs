//! The connections of an HTTP client: a tower layer around its connector.

use std::error::Error as StdError;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use http::Uri;
use http::uri::Scheme;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use pin_project_lite::pin_project;
use talea::{Counter, DynamicLabels, Error, Family, Histogram, Registry, Seconds, UpDownCounter};
use tower_service::Service;

use super::ErrorKind;
use super::error_kinds::kind_of_connect;
use super::servers::{Address, OTHER_SERVER, Servers};

type BoxError = Box<dyn StdError + Send + Sync>;

/// A layer that meters the connections of an HTTP client, around the connector of hyper-util's client.
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::Full;
/// use hyper_util::client::legacy::{Client, connect::HttpConnector};
/// use hyper_util::rt::TokioExecutor;
/// use talea_http::client::{ConnectionLayer, Servers};
/// use tower::Layer;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let registry = talea::Registry::for_test()?;
/// let servers = Servers::new().server("stock.example", &["/items/{id}"]);
/// let connector = ConnectionLayer::new(&servers, &registry)?.layer(HttpConnector::new());
/// let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
/// # let _ = client;
/// # Ok(())
/// # }
/// ```
///
/// | metric | type | labels |
/// |---|---|---|
/// | `http_client_open_connections` | gauge | `server` |
/// | `http_client_connects_total` | counter: connections that were made, or failed | `server`, `error` |
/// | `http_client_connect_duration_seconds` | histogram: time until a connection was made, with its TLS handshake | `server` |
///
/// `server` is as [listed](Servers), or `_other`; `error` is empty, or an [`ErrorKind`]. All series exist from the start. A
/// proxy counts as the server that the connector connects to.
///
/// Cost: two reads of the clock for each connection; nothing for a request over one that is open.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLayer {
    servers: &'static ConnectedServers,
}

#[derive(Debug)]
struct ConnectedServers {
    list: Vec<(Address, ConnectionMeters)>,
    other: ConnectionMeters,
}

/// The metrics of the connections to one server.
#[derive(Debug)]
struct ConnectionMeters {
    open: UpDownCounter,
    made: Counter,
    failed: [Counter; ErrorKind::ALL.len()],
    durations: Histogram<Seconds>,
}

struct Families {
    open: Family<DynamicLabels, UpDownCounter>,
    connects: Family<DynamicLabels, Counter>,
    durations: Family<DynamicLabels, Histogram<Seconds>>,
}

impl Families {
    fn meters(&self, server: &str) -> ConnectionMeters {
        let failed =
            ErrorKind::ALL.map(|kind| self.connects.with_values(&[server, kind.as_str()]).keep());
        ConnectionMeters {
            open: self.open.with_values(&[server]).keep(),
            made: self.connects.with_values(&[server, ""]).keep(),
            failed,
            durations: self.durations.with_values(&[server]).keep(),
        }
    }
}

impl ConnectionLayer {
    /// A layer for connections to these servers. The templates of their paths are not used.
    ///
    /// # Errors
    ///
    /// A server is not valid; a metric cannot be registered: see [`Registry::register`].
    pub fn new(servers: &Servers, registry: &Registry) -> Result<Self, Error> {
        let open = talea::Opts::new("http_client_open_connections", "Connections that are open.");
        let connects = talea::Opts::new(
            "http_client_connects",
            "Connections that were made, or failed, by the error.",
        );
        let durations = talea::Opts::new(
            "http_client_connect_duration",
            "Time until a connection was made, with its TLS handshake.",
        );
        let families = Families {
            open: registry.family(open, &["server"])?,
            connects: registry.family(connects, &["server", "error"])?,
            durations: registry.family(durations, &["server"])?,
        };
        let list = servers.names().map(|server| {
            let address = Address::parse(server).map_err(|reason| Error::Register {
                name: "http_client_connects".to_owned(),
                reason,
            });
            Ok((address?, families.meters(server)))
        });
        let servers = ConnectedServers {
            list: list.collect::<Result<_, Error>>()?,
            other: families.meters(OTHER_SERVER),
        };
        Ok(Self { servers: Box::leak(Box::new(servers)) })
    }
}

impl ConnectedServers {
    fn find(&self, uri: &Uri) -> &ConnectionMeters {
        let usual = if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
        let (host, port) = (uri.host().unwrap_or_default(), uri.port_u16().unwrap_or(usual));
        let found = self.list.iter().find(|(address, _)| address.is(host, Some(port)));
        found.map_or(&self.other, |(_, meters)| meters)
    }
}

impl<S> tower_layer::Layer<S> for ConnectionLayer {
    type Service = MeteredConnector<S>;

    fn layer(&self, inner: S) -> MeteredConnector<S> {
        MeteredConnector { inner, layer: *self }
    }
}

/// A connector whose connections are metered by a [`ConnectionLayer`].
#[derive(Clone, Copy, Debug)]
pub struct MeteredConnector<S> {
    inner: S,
    layer: ConnectionLayer,
}

impl<S> Service<Uri> for MeteredConnector<S>
where
    S: Service<Uri>,
    S::Error: Into<BoxError>,
{
    type Response = MeteredConnection<S::Response>;
    type Error = BoxError;
    type Future = ConnectFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> ConnectFuture<S::Future> {
        let attempt =
            Attempt { meters: Some(self.layer.servers.find(&uri)), began: Instant::now() };
        ConnectFuture { future: self.inner.call(uri), attempt }
    }
}

/// A connection that is being made. If it is dropped before its end, it was cancelled.
#[derive(Debug)]
struct Attempt {
    /// `None` once it has ended.
    meters: Option<&'static ConnectionMeters>,
    began: Instant,
}

impl Attempt {
    fn succeed(&mut self) -> Option<OpenConnection> {
        let meters = self.meters.take()?;
        meters.durations.observe(self.began.elapsed());
        meters.made.inc();
        meters.open.inc();
        Some(OpenConnection(meters))
    }

    fn fail(&mut self, kind: ErrorKind) {
        if let Some(meters) = self.meters.take() {
            meters.failed[kind as usize].inc();
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.fail(ErrorKind::Cancelled);
    }
}

pin_project! {
    /// The future of a [`MeteredConnector`].
    #[derive(Debug)]
    pub struct ConnectFuture<F> {
        #[pin]
        future: F,
        attempt: Attempt,
    }
}

impl<F, T, E> Future for ConnectFuture<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<MeteredConnection<T>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        Poll::Ready(match ready!(this.future.poll(cx)) {
            Ok(inner) => Ok(MeteredConnection { inner, _open: this.attempt.succeed() }),
            Err(error) => {
                let error = error.into();
                this.attempt.fail(kind_of_connect(&*error));
                Err(error)
            }
        })
    }
}

/// Counts a connection as open while it lives.
#[derive(Debug)]
struct OpenConnection(&'static ConnectionMeters);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.dec();
    }
}

pin_project! {
    /// A connection that counts as open until it is dropped.
    #[derive(Debug)]
    pub struct MeteredConnection<T> {
        // Dropped first, so that it is closed while it counts.
        #[pin]
        inner: T,
        _open: Option<OpenConnection>,
    }
}

impl<T: Connection> Connection for MeteredConnection<T> {
    fn connected(&self) -> Connected {
        self.inner.connected()
    }
}

impl<T: Read> Read for MeteredConnection<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.project().inner.poll_read(cx, buf)
    }
}

impl<T: Write> Write for MeteredConnection<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.project().inner.poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.project().inner.poll_write_vectored(cx, bufs)
    }
}
