//! A service that responds to scrapes.

mod body;
mod encoder;
mod piece;
mod scrape_request;
mod scrapers;
mod stream;

pub use body::ExpositionBody;
pub use scrape_request::accepts_gzip;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

#[cfg(feature = "axum")]
use ::axum::extract::ConnectInfo;
#[cfg(feature = "axum")]
use ::axum::handler::Handler;
use ::http::header::{
    ALLOW, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, InvalidHeaderValue, RETRY_AFTER, VARY,
};
use ::http::{Extensions, Request, Response, StatusCode};
use bytes::Bytes;
use talea::{Registry, Scrapable};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};
use tower_service::Service;

use piece::SnapshotPieces;
use scrape_request::{Coding, Refusal, ScrapeRequest};
use scrapers::Scrapers;
use stream::Pieces;

use crate::turns::Client;

/// The number of scrapes that are served at once.
const AT_ONCE: usize = 4;
/// The time that a client may take for a piece of a scrape.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time that a client may take for a whole scrape, unless it asks for less.
const LONGEST: Duration = Duration::from_secs(300);

/// A service that responds to scrapes of a registry, or of [several](Scrapable), for a router of your
/// own, and a handler of axum's; `MetricsServer` serves it on a port of its own.
///
#[cfg_attr(feature = "axum", doc = "```")]
#[cfg_attr(not(feature = "axum"), doc = "```ignore")]
/// use axum::{Router, routing::get};
///
/// # fn main() -> Result<(), talea::Error> {
/// # let registry = talea::Registry::for_test()?;
/// let metrics = talea_http::Exposition::new(&registry);
/// let app: Router = Router::new().route_service("/metrics", metrics.clone());
/// let app: Router = Router::new().route("/metrics", get(metrics)); // or as a handler
/// # Ok(())
/// # }
/// ```
///
/// - **Requests.** It responds to `GET` and `HEAD`, in the format that the request's Accept header
///   asks for ([`Format::negotiate`](talea::Format::negotiate)), compressed as its
///   Accept-Encoding header prefers, if the features `gzip` or `zstd` are on. With
///   `?name[]=`, once or more often, it shows only the families that have such a name or samples
///   of it: `calls`, `calls_total` and `calls_created` are the same counter, `wait_seconds_bucket`
///   is the whole histogram `wait_seconds`. An unknown name is no error: the response
///   to it alone has no families, as with Prometheus' clients for Java and Python.
/// - **Large scrapes** are sent in pieces of 256 KiB, each encoded while the one before is sent,
///   so that a scrape has its snapshot and two pieces in memory. A small scrape has a
///   Content-Length. The memory of one snapshot is kept for the next scrape.
/// - **Turns.** [`at_once`](Self::at_once) scrapes have a snapshot in memory at once; 16 more
///   wait for a turn, five seconds at most and no longer than half of their time. Turns go round
///   among client addresses, and among the connections of an address. Both are known if requests
///   have axum's `ConnectInfo<SocketAddr>`, or a `SocketAddr`, among their extensions; IPv6
///   addresses count by their first 64 bits. A waiting scrape aborts one whose client took nothing
///   for a second. After a second of waiting it aborts the slowest scrape of an address, or of a
///   connection of its own address, that has two turns more; else the slowest that has had its turn
///   for ten seconds.
/// - **Refusals.** Other methods get 405; a scrape that gets no turn 503 with Retry-After; an
///   Accept-Encoding that refuses all codings here, identity included, 406.
/// - **Time.** A scrape takes at most the time in `X-Prometheus-Scrape-Timeout-Seconds`, or five
///   minutes: if the snapshot takes longer the response is a 503, if the body takes longer it is
///   aborted. The body of a client that stops reading is aborted too, see
///   [`patience`](Self::patience).
///
/// # Cost
///
/// A worker of the runtime only hands pieces over. Snapshots (some 20 ms for a million series, and
/// the functions of [`Registry::on_snapshot`]) and pieces (about 0.1 ms; several if they are
/// compressed) are made in the runtime's pool for blocking work, at the cost of a hand-over for
/// each.
///
/// It needs a tokio runtime with time enabled, as `#[tokio::main]` has.
#[derive(Clone, Debug)]
pub struct Exposition<S = Registry> {
    registry: S,
    scrapers: Scrapers<S>,
    pub(crate) patience: Duration,
}

impl Exposition {
    /// An exposition with the default limits. Clones share the turns and the memory that is kept.
    pub fn new(registry: &Registry) -> Self {
        Self::of(registry)
    }
}

impl<S: Scrapable> Exposition<S> {
    /// An exposition of anything that can be scraped, with the default limits.
    pub fn of(registry: &S) -> Self {
        let scrapers = Scrapers::new(registry, AT_ONCE);
        Self { registry: registry.clone(), scrapers, patience: PATIENCE }
    }

    /// The number of scrapes that are served at once, at least one; each has a snapshot in
    /// memory. Default: 4.
    #[must_use]
    pub fn at_once(mut self, scrapes: usize) -> Self {
        self.scrapers = Scrapers::new(&self.registry, scrapes.max(1));
        self
    }

    /// The time that a client may take for a piece of a large scrape before the scrape is given up
    /// and its memory is freed. Default: 30 s.
    ///
    /// The buffers of the connection stay until the server ends it;
    /// [`MetricsServer`](crate::MetricsServer) ends it after the same time.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    async fn respond(
        self,
        request: Result<ScrapeRequest, Refusal>,
        client: Client,
    ) -> Response<ExpositionBody> {
        let request = match request {
            Ok(request) => request,
            Err(Refusal::Method) => {
                let allowed = [(ALLOW, HeaderValue::from_static("GET, HEAD"))];
                return refuse(StatusCode::METHOD_NOT_ALLOWED, allowed, "Ask by GET or HEAD.\n");
            }
            Err(Refusal::Encoding) => {
                let reason = match (cfg!(feature = "gzip"), cfg!(feature = "zstd")) {
                    (true, true) => "There are gzip, zstd and identity (not compressed).\n",
                    (true, false) => "There are gzip and identity (not compressed).\n",
                    (false, true) => "There are zstd and identity (not compressed).\n",
                    (false, false) => "There is identity (not compressed).\n",
                };
                return refuse(StatusCode::NOT_ACCEPTABLE, [vary()], reason);
            }
        };
        let Ok(headers) = headers(&request) else {
            return refuse(StatusCode::INTERNAL_SERVER_ERROR, [], "");
        };
        let until = Instant::now() + request.timeout.unwrap_or(LONGEST).min(LONGEST);
        let Some(scraper) = self.scrapers.lend(&client, until).await else {
            let soon = [(RETRY_AFTER, HeaderValue::from_static("1"))];
            let reason = "As many scrapes are being served as are allowed at once.\n";
            return refuse(StatusCode::SERVICE_UNAVAILABLE, soon, reason);
        };
        let first = spawn_blocking(move || {
            let mut pieces: Box<dyn Pieces> = Box::new(SnapshotPieces::new(scraper, &request)?);
            Ok::<_, io::Error>((pieces.next()?, pieces))
        });
        let body = match timeout_at(until, first).await {
            Ok(Ok(Ok(((first, true), pieces)))) => {
                let stream = self.scrapers.streams.begin(pieces, client);
                ExpositionBody::streamed(first, stream, self.patience, until)
            }
            Ok(Ok(Ok(((whole, false), _)))) => ExpositionBody::whole(whole),
            // The task panicked, or its snapshot cannot be written.
            Ok(Ok(Err(_)) | Err(_)) => {
                let reason = "The snapshot could not be taken.\n";
                return refuse(StatusCode::INTERNAL_SERVER_ERROR, [], reason);
            }
            Err(_) => {
                let reason = "The snapshot took longer than the scraper waits.\n";
                return refuse(StatusCode::SERVICE_UNAVAILABLE, [], reason);
            }
        };
        respond(StatusCode::OK, headers, body)
    }
}

/// Takes requests with any body, which it does not read.
impl<S: Scrapable, B> Service<Request<B>> for Exposition<S> {
    type Response = Response<ExpositionBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let scrape = ScrapeRequest::parse(request.method(), request.uri(), request.headers());
        let client = client_of(request.extensions());
        let exposition = self.clone();
        Box::pin(async move { Ok(exposition.respond(scrape, client).await) })
    }
}

/// For a method router, as in `get(exposition)`, which responds to other methods itself.
#[cfg(feature = "axum")]
impl<S: Scrapable, T> Handler<ExpositionBody, T> for Exposition<S> {
    type Future = Pin<Box<dyn Future<Output = ::axum::response::Response> + Send>>;

    fn call(self, request: ::axum::extract::Request, _: T) -> Self::Future {
        let scrape = ScrapeRequest::parse(request.method(), request.uri(), request.headers());
        let client = client_of(request.extensions());
        Box::pin(async move { self.respond(scrape, client).await.map(::axum::body::Body::new) })
    }
}

fn client_of(extensions: &Extensions) -> Client {
    let address = extensions.get::<SocketAddr>();
    #[cfg(feature = "axum")]
    let address = address.or_else(|| Some(&extensions.get::<ConnectInfo<SocketAddr>>()?.0));
    match address {
        // The port identifies the connection.
        Some(client) => Client::new(Some(client.ip()), client.port().to_ne_bytes()),
        None => Client::new(None, ""),
    }
}

type Header = (::http::HeaderName, HeaderValue);

fn vary() -> Header {
    (VARY, HeaderValue::from_static("Accept, Accept-Encoding"))
}

fn headers(request: &ScrapeRequest) -> Result<Vec<Header>, InvalidHeaderValue> {
    let kind = HeaderValue::try_from(request.format.content_type(request.escaping))?;
    let mut headers = vec![(CONTENT_TYPE, kind), vary()];
    if request.coding != Coding::Identity {
        headers.push((CONTENT_ENCODING, HeaderValue::from_static(request.coding.as_str())));
    }
    Ok(headers)
}

fn refuse(
    status: StatusCode,
    headers: impl IntoIterator<Item = Header>,
    reason: &'static str,
) -> Response<ExpositionBody> {
    let plain = (CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    let body = ExpositionBody::whole(Bytes::from_static(reason.as_bytes()));
    respond(status, headers.into_iter().chain([plain]), body)
}

fn respond(
    status: StatusCode,
    headers: impl IntoIterator<Item = Header>,
    body: ExpositionBody,
) -> Response<ExpositionBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().extend(headers);
    response
}
