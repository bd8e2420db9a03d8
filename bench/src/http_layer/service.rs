//! The service: a handler that answers at once, and layers that do nothing.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};

use anyhow::Result;
use axum::Router;
use axum::body::Body;
use axum::routing::get;
use bytes::Bytes;
use http_body::Frame;
use tower_layer::layer_fn;

use super::call::{AxumService, HELLO, PassThrough, ROUTE, ask, path};
use super::case::{Answer, Case};
use crate::work::Work;

const FRAMES: u8 = 4;

pub(super) fn router(case: Case) -> Router {
    (0..case.layers).fold(without_layers(case), |router, _| router.layer(layer_fn(PassThrough)))
}

pub(super) fn without_layers(case: Case) -> Router {
    let handler = match case.answer {
        Answer::InMemory => get(async || HELLO),
        Answer::Streamed => get(async || streamed()),
    };
    Router::new().route(ROUTE, handler)
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

/// Requests to a service, and a reader of its own count.
pub(super) fn requests(
    service: impl AxumService,
    case: Case,
    counted: impl Fn() -> Result<u64> + Send + Sync + 'static,
) -> Result<Box<dyn Work>> {
    Ok(Box::new(Requests::new(service, case, Some(Box::new(counted)))))
}

pub(super) fn uncounted(service: impl AxumService, case: Case) -> Result<Box<dyn Work>> {
    Ok(Box::new(Requests::new(service, case, None)))
}

type Counted = Box<dyn Fn() -> Result<u64> + Send + Sync>;

struct Requests<S> {
    service: S,
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

impl<S: AxumService> Work for Requests<S> {
    fn run(&self, _: usize, n: u64) {
        let path = path();
        for _ in 0..n {
            assert_eq!(ask(&self.service, &path), self.length);
        }
        self.answered.fetch_add(n, Relaxed);
    }

    fn done(&self) -> Result<u64> {
        self.counted.as_ref().map_or(Ok(self.answered.load(Relaxed)), |counted| counted())
    }
}
