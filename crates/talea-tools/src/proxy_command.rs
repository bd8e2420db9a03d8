//! `talea proxy`: a reverse proxy that meters the operations of an OpenAPI document, for a service that cannot meter
//! itself.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use axum::body::Body;
use axum::http::header::{CONNECTION, CONTENT_LENGTH, HeaderName, TE, TRANSFER_ENCODING, UPGRADE};
use axum::http::uri::{Authority, PathAndQuery};
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use axum::response::IntoResponse;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use talea::Registry;
use talea_agent::descriptors;
use talea_http::{Endpoints, MetricsServer, OpenApi, RequestBody};
use talea_load::stop::Stop;
use talea_view::screen::note;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tower::{Layer, Service, ServiceExt};

use crate::arguments::ProxyArguments;
use crate::ending::Ending;

type BoxError = Box<dyn Error + Send + Sync>;

/// Headers of a connection rather than of a message (RFC 9110, section 7.6.1), beside those that `Connection` names.
const HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-authenticate"),
    HeaderName::from_static("proxy-authorization"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Shorter than services keep an idle connection: gunicorn closes it after 2 s, Node.js after 5 s. A request over one
/// that is being closed would fail.
const IDLE: Duration = Duration::from_secs(1);
/// How long a client may take until the head of its next request has arrived.
const HEAD_TIME: Duration = Duration::from_secs(60);
/// How long responses may take to their end once it is to stop.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);
/// The pause before the system is asked again for a connection that it could not give.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until it is stopped.
/// Fails when the document cannot be used or an address cannot be listened on.
pub(crate) async fn run(arguments: ProxyArguments, stop: Stop) -> Result<Ending> {
    let ProxyArguments { upstream, openapi, under, listen, metrics, timeout } = arguments;
    let mut document =
        read(&openapi).with_context(|| format!("--openapi {}", openapi.display()))?;
    if let Some(prefix) = under {
        document = document.under(&prefix);
    }
    let registry = Registry::from_env()?;
    let endpoints = Endpoints::new(&registry)?;
    let find = document.finder::<Incoming>(&endpoints);
    let find = find.with_context(|| format!("--openapi {}", openapi.display()))?;
    descriptors::raise_limit();
    let metrics =
        MetricsServer::bind(metrics, &registry).map_err(|error| anyhow!("--metrics: {error}"))?;
    let listener = TcpListener::bind(listen).await.with_context(|| format!("--listen {listen}"))?;
    note(format_args!(
        "talea proxy: listening on http://{}, for http://{upstream}",
        listener.local_addr()?
    ));
    note(format_args!("talea proxy: metrics at http://{}/metrics", metrics.local_addr()));
    let proxy = Arc::new(Proxy::new(upstream, timeout));
    let service = endpoints.layer(find).layer(tower::service_fn(move |request| {
        let proxy = Arc::clone(&proxy);
        async move { Ok::<_, Infallible>(proxy.respond(request).await) }
    }));
    serve(listener, service, stop).await;
    Ok(Ending::Clean)
}

fn read(path: &Path) -> Result<OpenApi> {
    // YAML includes JSON.
    serde_saphyr::from_str(&std::fs::read_to_string(path)?).map_err(|error| anyhow!("{error}"))
}

/// Serves until it is to stop, then finishes what is in flight.
async fn serve<S, B>(listener: TcpListener, service: S, mut stop: Stop)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: hyper::body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    let connections = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.requested() => break,
        };
        match accepted {
            Ok((stream, client)) => connection(stream, client, service.clone(), &connections),
            // One connection's error, or no free descriptor.
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
    drop(listener);
    let _ = timeout(DRAIN_LIMIT, connections.shutdown()).await;
}

fn connection<S, B>(
    stream: TcpStream,
    client: SocketAddr,
    service: S,
    connections: &GracefulShutdown,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: hyper::body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    // Refused only by a socket that is already closed, as serving will find out.
    let _ = stream.set_nodelay(true);
    let responds = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(client);
        service.clone().oneshot(request)
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .serve_connection(TokioIo::new(stream), responds);
    let serving = connections.watch(serving);
    tokio::spawn(async move {
        // Errors are of the client, which is gone.
        let _ = serving.await;
    });
}

/// Why the upstream gave no response.
enum Failure {
    Gone(hyper_util::client::legacy::Error),
    Stalled,
}

/// Sends requests to one upstream.
struct Proxy {
    client: Client<HttpConnector, Body>,
    upstream: Authority,
    limit: Duration,
}

impl Proxy {
    fn new(upstream: Authority, limit: Duration) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(limit));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        Self { client, upstream, limit }
    }

    async fn respond(&self, request: Request<RequestBody<Incoming>>) -> Response<Body> {
        if request.method() == Method::CONNECT {
            return refusal(StatusCode::METHOD_NOT_ALLOWED, "CONNECT is not forwarded");
        }
        let Ok(uri) = self.uri(request.uri()) else {
            return refusal(StatusCode::BAD_REQUEST, "the request's target has no path");
        };
        match self.forward(request, uri).await {
            // Nobody asked for another protocol.
            Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                refusal(StatusCode::BAD_GATEWAY, "the upstream switched protocols unasked")
            }
            Ok(mut response) => {
                remove_hop_by_hop(response.headers_mut());
                *response.version_mut() = Version::HTTP_11;
                response.map(Body::new)
            }
            Err(Failure::Gone(error)) if error.is_connect() => {
                refusal(StatusCode::BAD_GATEWAY, "the upstream cannot be reached")
            }
            Err(Failure::Gone(_)) => {
                refusal(StatusCode::BAD_GATEWAY, "the upstream closed the connection")
            }
            Err(Failure::Stalled) => {
                refusal(StatusCode::GATEWAY_TIMEOUT, "the upstream did not respond in time")
            }
        }
    }

    /// The same path at the upstream.
    fn uri(&self, requested: &Uri) -> Result<Uri, axum::http::Error> {
        let path = requested.path_and_query().cloned();
        Uri::builder()
            .scheme("http")
            .authority(self.upstream.clone())
            .path_and_query(path.unwrap_or_else(|| PathAndQuery::from_static("/")))
            .build()
    }

    /// Sends a request, and waits for the head of the response as long as the upstream takes pieces of the body.
    async fn forward(
        &self,
        request: Request<RequestBody<Incoming>>,
        uri: Uri,
    ) -> Result<Response<Incoming>, Failure> {
        let (mut parts, body) = request.into_parts();
        parts.uri = uri;
        parts.version = Version::HTTP_11;
        remove_hop_by_hop(&mut parts.headers);
        if let Some(client) = parts.extensions.remove::<SocketAddr>() {
            add_forwarded(&mut parts.headers, client);
        }
        let taken = Arc::new(AtomicU64::new(0));
        let counts = Arc::clone(&taken);
        let body = body.map_frame(move |frame| {
            counts.fetch_add(1, Relaxed);
            frame
        });
        let mut response = pin!(self.client.request(Request::from_parts(parts, Body::new(body))));
        loop {
            let before = taken.load(Relaxed);
            match timeout(self.limit, response.as_mut()).await {
                Ok(response) => return response.map_err(Failure::Gone),
                Err(_) if taken.load(Relaxed) == before => return Err(Failure::Stalled),
                Err(_) => {}
            }
        }
    }
}

fn refusal(status: StatusCode, reason: &str) -> Response<Body> {
    (status, format!("talea proxy: {reason}\n")).into_response()
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    // hyper frames the message anew; a length beside chunks is not the message's.
    if headers.contains_key(TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    }
    let of_connection: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in of_connection.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Names the client to the upstream. What other proxies said before stays.
fn add_forwarded(headers: &mut HeaderMap, client: SocketAddr) {
    let client = client.ip().to_canonical().to_string();
    if let Ok(client) = HeaderValue::from_str(&client) {
        headers.append("x-forwarded-for", client);
    }
    headers.entry("x-forwarded-proto").or_insert(HeaderValue::from_static("http"));
}
