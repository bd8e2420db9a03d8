//! How a service is called: `GET /hello/{name}`, as a server calls it, but for the network.
//! hyper-util clones the service for each request too.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use bytes::Bytes;
use http_body::Body as _;
use tower_service::Service;

pub(crate) const ROUTE: &str = "/hello/{name}";
pub(crate) const HELLO: &str = "Hello, world!";

/// The path of the request.
pub(crate) fn path() -> Uri {
    Uri::from_static("/hello/world")
}

/// A layer's service that does nothing but pass on.
#[derive(Clone)]
pub(crate) struct Passing<S>(pub(crate) S);

impl<S: Service<Request>> Service<Request> for Passing<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> S::Future {
        self.0.call(request)
    }
}

/// What can be called as axum serves it.
pub(crate) trait Called:
    Service<Request, Response = Response, Error = Infallible> + Clone + Send + Sync + 'static
{
}

impl<S> Called for S where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + Sync + 'static
{
}

/// Makes a request of a service, and reads the answer to its end: how long its body is.
pub(crate) fn ask(service: &impl Called, path: &Uri) -> usize {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = path.clone();
    received(service.clone().call(request))
}

/// Nothing here ever has to wait.
fn received(answer: impl Future<Output = Result<Response, Infallible>>) -> usize {
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(Ok(response)) = pin!(answer).poll(&mut cx) else { return 0 };
    if response.status() != StatusCode::OK {
        return 0;
    }
    let mut body = response.into_body();
    let mut length = 0;
    while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut cx) {
        length += frame.data_ref().map_or(0, Bytes::len);
    }
    length
}
