//! A tower layer that meters what is inside, with bodies of static types: it allocates
//! nothing.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::arrival::Head;
use crate::body::{RequestBody, ResponseBody};
use crate::endpoints::Endpoint;
use crate::exchange::{Exchange, Watch};

/// Meters the service that it is put around; see
/// [`Endpoints::layer`](crate::Endpoints::layer).
///
/// Each request is told once, with all that stands inside: a service that answers by an
/// error has the status of a request that broke off.
#[derive(Clone, Copy, Debug)]
pub struct Layer<F> {
    endpoint: F,
}

/// A metered service, by a [`Layer`].
#[derive(Clone, Copy, Debug)]
pub struct Metered<S, F> {
    inner: S,
    endpoint: F,
}

impl<F> Layer<F> {
    pub(crate) fn new(endpoint: F) -> Self {
        Self { endpoint }
    }
}

impl<S, F: Clone> tower_layer::Layer<S> for Layer<F> {
    type Service = Metered<S, F>;

    fn layer(&self, inner: S) -> Metered<S, F> {
        Metered { inner, endpoint: self.endpoint.clone() }
    }
}

impl<S, F, B, R> Service<Request<B>> for Metered<S, F>
where
    F: Fn(&Request<B>) -> Endpoint,
    B: Body,
    S: Service<Request<RequestBody<B>>, Response = Response<R>>,
    R: Body,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = MeteredFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Endpoint { meters } = (self.endpoint)(&request);
        let mut exchange = Exchange::closed();
        let tally = exchange.open(meters, Head::from(&request), request.body());
        let running = exchange.run();
        let future = self.inner.call(request.map(|body| RequestBody::new(body, tally)));
        running.returned();
        MeteredFuture { future, exchange }
    }
}

pin_project! {
    /// The future of a [`Metered`] service.
    #[derive(Debug)]
    pub struct MeteredFuture<F> {
        // Dropped first: what the service holds goes while the request is in flight.
        #[pin]
        future: F,
        exchange: Exchange,
    }
}

impl<F, R, E> Future for MeteredFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: Body,
{
    type Output = Result<Response<ResponseBody<R>>, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let running = this.exchange.run();
        let answer = this.future.poll(cx);
        running.returned();
        // Dropped without a response, it broke off.
        Poll::Ready(ready!(answer).map(|response| watched(response, this.exchange)))
    }
}

#[inline]
fn watched<R: Body>(response: Response<R>, exchange: &mut Exchange) -> Response<ResponseBody<R>> {
    let body = response.body();
    let watch = match body.size_hint().exact() {
        Some(0) => Watch::Sent(0),
        None if body.is_end_stream() => Watch::Sent(0),
        _ => Watch::passing(body, response.headers()),
    };
    let (status, extensions) = (response.status(), response.extensions());
    let ahead = exchange.head(status, extensions, watch);
    let passing = ahead.map(|ahead| ahead.pass(exchange));
    response.map(|body| ResponseBody::new(body, passing))
}
