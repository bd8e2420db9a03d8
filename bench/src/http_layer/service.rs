//! The service: `GET /hello/{name}` of axum, a handler that answers at once, and layers
//! that do nothing. It is called as a server calls it, but for the network: hyper-util
//! clones the service for each request too.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

use anyhow::Result;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::get;
use bytes::Bytes;
use http_body::{Body as _, Frame};
use tower_layer::layer_fn;
use tower_service::Service;

use super::{Answer, Case};
use crate::work::Work;

pub(super) const ROUTE: &str = "/hello/{name}";
const PATH: &str = "/hello/world";

pub(super) const HELLO: &str = "Hello, world!";
const FRAMES: u8 = 4;

/// The router with its layers.
pub(super) fn router(case: Case) -> Router {
    (0..case.layers).fold(handled(case), |router, _| router.layer(layer_fn(Passing)))
}

/// The router without them.
pub(super) fn handled(case: Case) -> Router {
    let handler = match case.answer {
        Answer::InMemory => get(async || HELLO),
        Answer::Streamed => get(async || streamed()),
    };
    Router::new().route(ROUTE, handler)
}

/// A layer's service that does nothing but pass on.
#[derive(Clone)]
pub(super) struct Passing<S>(pub(super) S);

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

/// A body of some frames, whose length is not known beforehand.
pub(super) fn streamed() -> Body {
    Body::new(Frames { left: FRAMES })
}

struct Frames {
    left: u8,
}

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(left) = self.left.checked_sub(1) else { return Poll::Ready(None) };
        self.left = left;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(HELLO.as_bytes())))))
    }
}

/// Requests to a service, and how many of them its metrics say there were.
pub(super) fn requests(
    service: impl Called,
    case: Case,
    counted: impl Fn() -> Result<u64> + Send + Sync + 'static,
) -> Result<Box<dyn Work>> {
    Ok(Box::new(Requests::new(service, case, Some(Box::new(counted)))))
}

/// The same of a service without metrics.
pub(super) fn uncounted(service: impl Called, case: Case) -> Result<Box<dyn Work>> {
    Ok(Box::new(Requests::new(service, case, None)))
}

/// What can be called as axum serves it.
pub(super) trait Called:
    Service<Request, Response = Response, Error = Infallible> + Clone + Send + Sync + 'static
{
}

impl<S> Called for S where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + Sync + 'static
{
}

type Counted = Box<dyn Fn() -> Result<u64> + Send + Sync>;

struct Requests<S> {
    service: S,
    /// Of a response's body.
    length: usize,
    answered: AtomicU64,
    counted: Option<Counted>,
}

impl<S> Requests<S> {
    fn new(service: S, case: Case, counted: Option<Counted>) -> Self {
        let length = match case.answer {
            Answer::InMemory => HELLO.len(),
            Answer::Streamed => HELLO.len() * usize::from(FRAMES),
        };
        Self { service, length, answered: AtomicU64::new(0), counted }
    }
}

impl<S: Called> Work for Requests<S> {
    fn run(&self, _: usize, n: u64) {
        let path = Uri::from_static(PATH);
        for _ in 0..n {
            let mut request = Request::new(Body::empty());
            *request.uri_mut() = path.clone();
            assert_eq!(received(self.service.clone().call(request)), self.length);
        }
        self.answered.fetch_add(n, Relaxed);
    }

    fn done(&self) -> Result<u64> {
        self.counted.as_ref().map_or(Ok(self.answered.load(Relaxed)), |counted| counted())
    }
}

/// Waits for a response, and reads its body to the end. Nothing here ever has to wait.
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
