//! A tower layer that meters the service inside. Its bodies have static types, so it allocates
//! nothing.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::request::arrival::Exchange;
use crate::request::bodies::{RequestBody, ResponseBody};
use crate::request::meters::Endpoint;

/// A layer that meters a service; see [`Endpoints::layer`](crate::Endpoints::layer).
///
/// Each request is recorded once, with everything inside of the layer. If the service returns an
/// error, the request counts as aborted.
#[derive(Clone, Copy, Debug)]
pub struct EndpointLayer<F> {
    pub(crate) endpoint: F,
}

/// A service that is metered by an [`EndpointLayer`].
#[derive(Clone, Copy, Debug)]
pub struct MeteredService<S, F> {
    inner: S,
    endpoint: F,
}

impl<S, F: Clone> tower_layer::Layer<S> for EndpointLayer<F> {
    type Service = MeteredService<S, F>;

    fn layer(&self, inner: S) -> MeteredService<S, F> {
        MeteredService { inner, endpoint: self.endpoint.clone() }
    }
}

impl<S, F, B, R> Service<Request<B>> for MeteredService<S, F>
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
        let count = exchange.open(meters, &request);
        let call = exchange.call();
        let future = self.inner.call(request.map(|inner| RequestBody { inner, count }));
        call.returned();
        MeteredFuture { future, exchange }
    }
}

pin_project! {
    /// The future of a [`MeteredService`].
    #[derive(Debug)]
    pub struct MeteredFuture<F> {
        // Dropped first, so that the service's state is freed while the request is in flight.
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
        let call = this.exchange.poll();
        let result = this.future.poll(cx);
        call.returned();
        let result = ready!(result);
        if result.is_err() {
            this.exchange.refuse();
        }
        Poll::Ready(result.map(|response| watched(response, this.exchange)))
    }
}

#[inline]
fn watched<R: Body>(response: Response<R>, exchange: &mut Exchange) -> Response<ResponseBody<R>> {
    // A body costs nothing to watch.
    let transfer = exchange.respond(&response, 0).map(|head| head.begin(exchange));
    response.map(|inner| ResponseBody { inner, transfer })
}
