//! The tower layer for HTTP clients.

use std::error::Error as StdError;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::header::HOST;
use http::uri::Scheme;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use talea::{Error, Registry};
use tower_service::Service;

use super::error_kinds::kind_of;
use super::servers::{KnownServers, Servers};
use crate::convention::client::{NAME, metric_set};
use crate::labels::status::{StatusLabel, Statuses};
use crate::opts::Opts;
use crate::request::arrival::Exchange;
use crate::request::bodies::{RequestBody, ResponseBody};
use crate::request::meters::Endpoint;

/// A layer that meters the requests of an HTTP client; see [the module](crate::client).
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    pub(super) servers: &'static KnownServers,
}

impl Layer {
    /// A layer with default options; [`Opts::client`] takes others.
    ///
    /// # Errors
    ///
    /// As [`Opts::client`].
    pub fn new(servers: &Servers, registry: &Registry) -> Result<Self, Error> {
        Opts::new().client(servers, registry)
    }
}

impl Opts {
    /// Registers the metrics of outgoing requests to these servers. The layer that it returns is also what
    /// [`Middleware`](crate::client::Middleware) is made from.
    ///
    /// # Errors
    ///
    /// As [`Opts::register`]; the convention has no names for clients; a server or a template is not
    /// valid, or templates clash; there are [hosts](Self::hosts), in place of which servers are listed.
    pub fn client(self, servers: &Servers, registry: &Registry) -> Result<Layer, Error> {
        let Some(mut set) = metric_set(self.convention) else {
            let reason = format!(
                "Convention::{:?} has no names for outgoing requests; use Convention::Prometheus or \
                 Convention::OpenTelemetry",
                self.convention
            );
            return Err(Error::Register { name: NAME.to_owned(), reason });
        };
        if !self.hosts.is_empty() {
            let reason =
                "hosts are of requests that arrive; list the servers in Servers".to_owned();
            return Err(Error::Register { name: NAME.to_owned(), reason });
        }
        if self.status == StatusLabel::Code {
            set.statuses = Statuses::Client { by_code: true };
        }
        let set = self.recorded(set);
        let endpoints = self.register_set(&set, registry)?;
        let servers = KnownServers::new(servers, &endpoints)?;
        Ok(Layer { servers: Box::leak(Box::new(servers)) })
    }
}

impl<S> tower_layer::Layer<S> for Layer {
    type Service = MeteredClient<S>;

    fn layer(&self, inner: S) -> MeteredClient<S> {
        MeteredClient { inner, layer: *self }
    }
}

/// A client whose requests are metered by a [`Layer`].
#[derive(Clone, Copy, Debug)]
pub struct MeteredClient<S> {
    inner: S,
    layer: Layer,
}

impl<S, B, R> Service<Request<B>> for MeteredClient<S>
where
    B: Body,
    S: Service<Request<RequestBody<B>>, Response = Response<R>>,
    S::Error: StdError + 'static,
    R: Body,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Endpoint { meters } = endpoint(self.layer.servers, &request);
        let mut exchange = Exchange::closed();
        let count = exchange.open(meters, &request);
        let call = exchange.call();
        let future = self.inner.call(request.map(|inner| RequestBody { inner, count }));
        call.returned();
        ResponseFuture { future, exchange }
    }
}

/// The endpoint of a request, by its URI, or by its header `Host` if the URI is a path alone.
fn endpoint<B>(servers: &KnownServers, request: &Request<B>) -> Endpoint {
    let uri = request.uri();
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let (host, port) = match (uri.authority(), host) {
        (Some(authority), _) => (authority.host(), authority.port_u16()),
        (None, Some(host)) => match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
            _ => (host, None),
        },
        (None, None) => ("", None),
    };
    let usual = if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    servers.find(host, Some(port.unwrap_or(usual)), uri.path())
}

pin_project! {
    /// The future of a [`MeteredClient`].
    #[derive(Debug)]
    pub struct ResponseFuture<F> {
        // Dropped first, so that the client's state is freed while the request is in flight.
        #[pin]
        future: F,
        exchange: Exchange,
    }
}

impl<F, R, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: Body,
    E: StdError + 'static,
{
    type Output = Result<Response<ResponseBody<R>>, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let call = this.exchange.call();
        let result = this.future.poll(cx);
        call.returned();
        Poll::Ready(match ready!(result) {
            Ok(response) => {
                let transfer = this.exchange.receive(&response);
                Ok(response.map(|inner| ResponseBody { inner, transfer }))
            }
            Err(error) => {
                this.exchange.fail(kind_of(&error));
                Err(error)
            }
        })
    }
}
