//! A service that answers scrapes.

mod asked;
mod body;
mod encoder;
mod piece;
mod scrapers;
mod stream;

pub use body::ExpositionBody;

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
use talea::{Registry, Scrapable};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};
use tower_service::Service;

use asked::{Asked, Coding, Refused};
use piece::{Pieces, Source};
use scrapers::Scrapers;

use crate::turns::Client;

/// The number of scrapes that are served at once.
const AT_ONCE: usize = 4;
/// The time that a client may take for a piece of a scrape.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time that a client may take for all of it, unless it asks for less.
const LONGEST: Duration = Duration::from_secs(300);

/// A service that answers scrapes of a registry, or of [several](Scrapable), for a router of your own, and a handler of
/// axum's; `MetricsServer` serves it on a port of its own.
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
/// - **What it answers.** `GET` and `HEAD`, in the format that the request's Accept header
///   asks for ([`Format::negotiate`](talea::Format::negotiate)), compressed as its
///   Accept-Encoding header prefers: by gzip, with the feature `zstd` also by zstd, or not. With
///   `?name[]=`, once or more often, it shows only the families that have such a name or samples
///   of it: `calls`, `calls_total` and `calls_created` are the same counter, `wait_seconds_bucket`
///   is the whole histogram `wait_seconds`. A name that nothing has is no error: the response
///   to it alone has no families, as with Prometheus' clients for Java and Python.
/// - **Large scrapes** leave in pieces of 256 KiB, each made while the one before is sent,
///   so that a scrape has its snapshot and two pieces in memory. A small one has a
///   Content-Length. The memory of one snapshot is kept for the next scrape.
/// - **Turns.** [`at_once`](Self::at_once) scrapes have a snapshot in memory at once; 16 more
///   wait for a turn, five seconds at most and no longer than half of their time. Turns go round
///   among client addresses, and among the connections of an address. Both are known if requests
///   have axum's `ConnectInfo<SocketAddr>`, or a `SocketAddr`, among their extensions; IPv6
///   addresses count by their first 64 bits. A scrape that waits breaks off one whose client
///   took nothing for a second. After a second of waiting it breaks off the slowest scrape of an
///   address, or of a connection of its own address, that has two turns more; else the slowest
///   that has had its turn for ten seconds.
/// - **Refusals.** Other methods get 405; a scrape that gets no turn 503 with Retry-After; an
///   Accept-Encoding that allows no coding of ours, not even identity, 406.
/// - **Time.** A scrape takes no longer than `X-Prometheus-Scrape-Timeout-Seconds` says, or
///   five minutes: a snapshot that is not there by then is a 503, a body that is not sent
///   by then breaks off. The body of a client that stops reading breaks off too, see
///   [`patience`](Self::patience).
///
/// # Cost
///
/// A worker of the runtime only hands pieces over. Snapshots are taken (some 20 ms for a
/// million series, and what [`Registry::on_snapshot`] calls) and pieces are made (about
/// 0.1 ms; several where they are compressed) in the runtime's pool for blocking work, at the cost of a
/// hand-over for each.
///
/// It needs a tokio runtime with time enabled, as `#[tokio::main]` has.
#[derive(Clone, Debug)]
pub struct Exposition<S = Registry> {
    of: S,
    scrapers: Scrapers<S>,
    patience: Duration,
}

impl Exposition {
    /// One with the default limits. Clones share what they serve at once and the memory
    /// that they keep.
    pub fn new(registry: &Registry) -> Self {
        Self::of(registry)
    }
}

impl<S: Scrapable> Exposition<S> {
    /// The same of anything that can be scraped.
    pub fn of(of: &S) -> Self {
        let scrapers = Scrapers::new(of, AT_ONCE);
        Self { of: of.clone(), scrapers, patience: PATIENCE }
    }

    /// The number of scrapes that are served at once, at least one; each has a snapshot in
    /// memory. Default: 4.
    #[must_use]
    pub fn at_once(mut self, scrapes: usize) -> Self {
        self.scrapers = Scrapers::new(&self.of, scrapes.max(1));
        self
    }

    /// How long a client may take for a piece of a large scrape before the scrape is given
    /// up and its memory is free. Default: 30 s.
    ///
    /// The connection's own buffers stay until it ends, which is up to the server.
    /// [`MetricsServer`](crate::MetricsServer) ends it after the same time.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    #[cfg(feature = "server")]
    pub(crate) fn patience_limit(&self) -> Duration {
        self.patience
    }

    async fn answer(
        self,
        asked: Result<Asked, Refused>,
        client: Client,
    ) -> Response<ExpositionBody> {
        let asked = match asked {
            Ok(asked) => asked,
            Err(Refused::Method) => {
                let allowed = [(ALLOW, HeaderValue::from_static("GET, HEAD"))];
                return refuse(StatusCode::METHOD_NOT_ALLOWED, allowed, "Ask by GET or HEAD.\n");
            }
            Err(Refused::Encoding) => {
                let reason = match (cfg!(feature = "gzip"), cfg!(feature = "zstd")) {
                    (true, true) => "There are gzip, zstd and identity (not compressed).\n",
                    (true, false) => "There are gzip and identity (not compressed).\n",
                    (false, true) => "There are zstd and identity (not compressed).\n",
                    (false, false) => "There is identity (not compressed).\n",
                };
                return refuse(StatusCode::NOT_ACCEPTABLE, [vary()], reason);
            }
        };
        let Ok(headers) = headers(&asked) else {
            return refuse(StatusCode::INTERNAL_SERVER_ERROR, [], "");
        };
        let until = Instant::now() + asked.within.unwrap_or(LONGEST).min(LONGEST);
        let Some(scraper) = self.scrapers.lend(&client, until).await else {
            let soon = [(RETRY_AFTER, HeaderValue::from_static("1"))];
            let reason = "As many scrapes are being served as are allowed at once.\n";
            return refuse(StatusCode::SERVICE_UNAVAILABLE, soon, reason);
        };
        let first = spawn_blocking(move || {
            let mut source: Box<dyn Pieces> = Box::new(Source::new(scraper, &asked)?);
            Ok::<_, io::Error>((source.next()?, source))
        });
        let body = match timeout_at(until, first).await {
            Ok(Ok(Ok((first, source)))) if source.has_more() => {
                let stream = self.scrapers.streams().begin(source, client);
                ExpositionBody::streamed(first, stream, self.patience, until)
            }
            Ok(Ok(Ok((whole, _)))) => ExpositionBody::whole(whole),
            // A function given to `on_snapshot` panicked.
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
        let asked = Asked::of(request.method(), request.uri(), request.headers());
        let client = client_of(request.extensions());
        let exposition = self.clone();
        Box::pin(async move { Ok(exposition.answer(asked, client).await) })
    }
}

/// Lets it stand in a method router, as in `get(exposition)`; other methods are answered by that
/// router.
#[cfg(feature = "axum")]
impl<S: Scrapable, T> Handler<ExpositionBody, T> for Exposition<S> {
    type Future = Pin<Box<dyn Future<Output = ::axum::response::Response> + Send>>;

    fn call(self, request: ::axum::extract::Request, _: T) -> Self::Future {
        let asked = Asked::of(request.method(), request.uri(), request.headers());
        let client = client_of(request.extensions());
        Box::pin(async move { self.answer(asked, client).await.map(::axum::body::Body::new) })
    }
}

fn client_of(extensions: &Extensions) -> Client {
    let address = extensions.get::<SocketAddr>();
    #[cfg(feature = "axum")]
    let address = address.or_else(|| Some(&extensions.get::<ConnectInfo<SocketAddr>>()?.0));
    match address {
        // The port stands for the connection.
        Some(client) => Client::new(Some(client.ip()), client.port().to_ne_bytes()),
        None => Client::new(None, ""),
    }
}

type Header = (::http::HeaderName, HeaderValue);

fn vary() -> Header {
    (VARY, HeaderValue::from_static("Accept, Accept-Encoding"))
}

fn headers(asked: &Asked) -> Result<Vec<Header>, InvalidHeaderValue> {
    let kind = HeaderValue::try_from(asked.format.content_type(asked.escaping))?;
    let mut headers = vec![(CONTENT_TYPE, kind), vary()];
    if asked.coding != Coding::Identity {
        headers.push((CONTENT_ENCODING, HeaderValue::from_static(asked.coding.as_str())));
    }
    Ok(headers)
}

fn refuse(
    status: StatusCode,
    headers: impl IntoIterator<Item = Header>,
    reason: &'static str,
) -> Response<ExpositionBody> {
    let plain = (CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    respond(status, headers.into_iter().chain([plain]), ExpositionBody::of_text(reason))
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
