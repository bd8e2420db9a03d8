//! The door for actix-web: a middleware around an application.

use std::cell::Cell;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready as polled};

use actix_web::body::{BodySize, MessageBody};
use actix_web::dev::{Payload, Service, ServiceRequest, ServiceResponse, Transform};
use actix_web::error::PayloadError;
use actix_web::http::Version as ActixVersion;
use actix_web::web::Bytes;
use actix_web::{Error, HttpMessage};
use http::{Method, Version};
use pin_project_lite::pin_project;
use talea::Registry;

use crate::endpoints::Endpoints;
use crate::request::costs::PollStart;
use crate::request::manual::ManualExchange;
use crate::request::meters::Endpoint;
use crate::templates::Templates;

/// A middleware that meters an application of actix-web. Add it last, so that it is around all others:
///
/// ```no_run
/// use actix_web::{App, HttpServer, web};
/// use talea_http::actix::Meter;
///
/// # async fn item() -> &'static str { "an item" }
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = talea::Registry::new()?;
/// let meter = Meter::new(&registry)?.routes(&[("GET", "/items/{id}"), ("POST", "/items")])?;
/// let server = HttpServer::new(move || {
///     App::new().route("/items/{id}", web::get().to(item)).wrap(meter)
/// });
/// server.bind(("127.0.0.1", 3000))?.run().await?;
/// # Ok(())
/// # }
/// ```
///
/// A request is recorded at the template of its route, by the same metrics as
/// [one of axum](crate#metrics). The series of [listed routes](Self::routes) exist from the start. A route that
/// is not listed has its pattern as actix writes it, with series for every method, from its first request on;
/// a request that matches no pattern is `_unmatched`.
///
/// Cost: a request to a listed route allocates nothing for it. A body of a request allocates two times.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    endpoints: Endpoints,
    unmatched: Endpoint,
    listed: Option<&'static Templates>,
}

/// Routes that cannot be listed.
#[derive(Clone, Debug)]
pub struct RouteError(String);

impl std::fmt::Display for RouteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RouteError {}

impl Meter {
    /// A middleware with default options.
    ///
    /// # Errors
    ///
    /// As [`Opts::register`](crate::Opts::register).
    pub fn new(registry: &Registry) -> Result<Self, talea::Error> {
        Ok(Self::by(&Endpoints::new(registry)?))
    }

    /// A middleware with options from [`Opts::register`](crate::Opts::register).
    pub fn by(endpoints: &Endpoints) -> Self {
        Self { endpoints: *endpoints, unmatched: endpoints.unmatched(), listed: None }
    }

    /// Lists routes as methods and templates; their series are created at once. `ANY` stands for every
    /// method. Templates have the placeholders `{id}`, for a segment, and `{*path}`, for the rest of the path,
    /// where actix has `{path:.*}`. A later call replaces an earlier one.
    ///
    /// # Errors
    ///
    /// A template is not valid, or clashes with another; a method is not a known one.
    pub fn routes(self, routes: &[(&str, &str)]) -> Result<Self, RouteError> {
        let listed = Templates::new(&self.endpoints, routes.iter().copied()).map_err(RouteError)?;
        Ok(Self { listed: Some(Box::leak(Box::new(listed))), ..self })
    }

    fn endpoint(&self, method: &Method, request: &ServiceRequest) -> Endpoint {
        let listed = self.listed.and_then(|listed| listed.find(method, request.path()));
        listed.unwrap_or_else(|| match request.match_pattern() {
            Some(pattern) => self.endpoints.declare_any(&pattern),
            None => self.unmatched,
        })
    }
}

impl<S, B> Transform<S, ServiceRequest> for Meter
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    type Response = ServiceResponse<MeteredBody<B>>;
    type Error = Error;
    type Transform = MeteredApp<S>;
    type InitError = ();
    type Future = Ready<Result<MeteredApp<S>, ()>>;

    fn new_transform(&self, inner: S) -> Self::Future {
        ready(Ok(MeteredApp { inner, meter: *self }))
    }
}

/// An application that is metered by a [`Meter`].
#[derive(Debug)]
pub struct MeteredApp<S> {
    inner: S,
    meter: Meter,
}

impl<S, B> Service<ServiceRequest> for MeteredApp<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    type Response = ServiceResponse<MeteredBody<B>>;
    type Error = Error;
    type Future = MeteredFuture<S::Future>;

    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&self, mut request: ServiceRequest) -> Self::Future {
        let method = Method::from_bytes(request.method().as_str().as_bytes()).unwrap_or_default();
        let version = match request.version() {
            ActixVersion::HTTP_2 => Version::HTTP_2,
            ActixVersion::HTTP_09 | ActixVersion::HTTP_10 => Version::HTTP_10,
            ActixVersion::HTTP_3 => Version::HTTP_3,
            _ => Version::HTTP_11,
        };
        let endpoint = self.meter.endpoint(&method, &request);
        let mut exchange = ManualExchange::arrived();
        exchange.enter(endpoint, &method, version, request.app_config().secure());
        let received = watch_payload(&mut request);
        let guard = PanicGuard::call(&mut exchange);
        let future = self.inner.call(request);
        guard.returned();
        MeteredFuture { future, exchange, received }
    }
}

/// What passed of a request's body.
#[derive(Clone, Copy, Debug, Default)]
struct Received {
    bytes: u64,
    failed: bool,
}

/// Watches the body of a request, if it has one.
fn watch_payload(request: &mut ServiceRequest) -> Option<Rc<Cell<Received>>> {
    let inner = request.take_payload();
    if matches!(inner, Payload::None) {
        return None;
    }
    let received = Rc::new(Cell::new(Received::default()));
    let payload = Box::pin(WatchedPayload { inner, received: Rc::clone(&received) });
    request.set_payload(Payload::Stream { payload });
    Some(received)
}

/// The body of a request, whose bytes are counted as the application reads them.
struct WatchedPayload {
    inner: Payload,
    received: Rc<Cell<Received>>,
}

impl futures_core::Stream for WatchedPayload {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = polled!(Pin::new(&mut self.inner).poll_next(cx));
        let Received { bytes, failed } = self.received.get();
        self.received.set(match &next {
            Some(Ok(piece)) => Received { bytes: bytes + piece.len() as u64, failed },
            Some(Err(_)) => Received { bytes, failed: true },
            None => Received { bytes, failed },
        });
        Poll::Ready(next)
    }
}

/// A call of the application's code. If this is dropped, the call panicked.
struct PanicGuard<'a> {
    exchange: &'a mut ManualExchange,
    /// The beginning of a poll.
    start: PollStart,
}

impl<'a> PanicGuard<'a> {
    fn call(exchange: &'a mut ManualExchange) -> Self {
        Self { exchange, start: PollStart::UNMEASURED }
    }

    fn poll(exchange: &'a mut ManualExchange) -> Self {
        Self { start: exchange.begin_poll(), exchange }
    }

    fn returned(self) {
        self.exchange.end_poll(self.start);
        std::mem::forget(self);
    }
}

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        self.exchange.end_poll(self.start);
        self.exchange.failed();
    }
}

pin_project! {
    /// The future of a [`MeteredApp`].
    #[derive(Debug)]
    pub struct MeteredFuture<F> {
        // Dropped first, so that its state is freed while the request is in flight.
        #[pin]
        future: F,
        exchange: ManualExchange,
        received: Option<Rc<Cell<Received>>>,
    }
}

impl<F, B> Future for MeteredFuture<F>
where
    F: Future<Output = Result<ServiceResponse<B>, Error>>,
    B: MessageBody,
{
    type Output = Result<ServiceResponse<MeteredBody<B>>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let guard = PanicGuard::poll(this.exchange);
        let result = this.future.poll(cx);
        guard.returned();
        let result = polled!(result);
        let exchange = this.exchange;
        if let Some(received) = this.received.as_ref().map(|received| received.get()) {
            exchange.received(received.bytes);
            if received.failed {
                exchange.note_aborted_body();
            }
        }
        Poll::Ready(match result {
            Ok(response) => {
                let status = response.status().as_u16();
                match response.response().body().size() {
                    BodySize::None | BodySize::Sized(0) => exchange.respond(status, 0),
                    _ => exchange.begin_response(status),
                }
                let begun = exchange.take_open();
                Ok(response.map_body(|_, inner| MeteredBody { inner, exchange: begun }))
            }
            // actix makes the response of the error further out.
            Err(error) => {
                exchange.respond(error.as_response_error().status_code().as_u16(), 0);
                Err(error)
            }
        })
    }
}

pin_project! {
    /// The body of a response, which ends its request when it has passed. If it is dropped earlier, the request
    /// counts as aborted.
    #[derive(Debug)]
    pub struct MeteredBody<B> {
        // Dropped first, so that its state is freed while the request is in flight.
        #[pin]
        inner: B,
        exchange: Option<ManualExchange>,
    }
}

impl<B: MessageBody> MessageBody for MeteredBody<B> {
    type Error = B::Error;

    fn size(&self) -> BodySize {
        self.inner.size()
    }

    fn poll_next(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let this = self.project();
        let Some(exchange) = this.exchange else { return this.inner.poll_next(cx) };
        let guard = PanicGuard::call(exchange);
        let next = this.inner.poll_next(cx);
        guard.returned();
        let next = polled!(next);
        match &next {
            Some(Ok(piece)) => exchange.sent(piece.len() as u64),
            Some(Err(_)) => exchange.fail_body(),
            None => exchange.end(),
        }
        Poll::Ready(next)
    }
}
