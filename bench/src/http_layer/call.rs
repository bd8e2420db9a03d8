//! A call of a service: `GET /hello/{name}`, as a server calls it, but without a network. The
//! service is cloned for each request, as hyper-util does.

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

pub(crate) fn path() -> Uri {
    Uri::from_static("/hello/world")
}

/// A layer's service that only passes requests on.
#[derive(Clone)]
pub(crate) struct PassThrough<S>(pub(crate) S);

impl<S: Service<Request>> Service<Request> for PassThrough<S> {
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

pub(crate) trait AxumService:
    Service<Request, Response = Response, Error = Infallible> + Clone + Send + Sync + 'static
{
}

impl<S> AxumService for S where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + Sync + 'static
{
}

/// Makes a request to a service and reads the answer to its end. Returns the length of its body;
/// 0 if it fails.
pub(crate) fn ask(service: &impl AxumService, path: &Uri) -> usize {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = path.clone();
    read_to_end(service.clone().call(request))
}

/// Nothing here ever waits.
fn read_to_end(answer: impl Future<Output = Result<Response, Infallible>>) -> usize {
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
