//! Bodies whose bytes are counted as they pass.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::broken;
use crate::exchange::{Passing, RequestTally};

pin_project! {
    /// A request's body whose bytes are counted as they are read, whoever reads it.
    #[derive(Debug)]
    pub struct RequestBody<B> {
        #[pin]
        inner: B,
        tally: Option<RequestTally>,
    }
}

impl<B> RequestBody<B> {
    #[inline]
    pub(crate) fn new(inner: B, tally: Option<RequestTally>) -> Self {
        Self { inner, tally }
    }
}

impl<B: Body> Body for RequestBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    #[inline]
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let polled = ready!(this.inner.poll_frame(cx));
        match (this.tally, &polled) {
            (Some(tally), Some(Ok(frame))) => tally.add(data_len(frame)),
            (_, Some(Err(_))) => broken::tell(),
            _ => {}
        }
        Poll::Ready(polled)
    }

    #[inline]
    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    #[inline]
    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

pin_project! {
    /// A response's body that ends its request when it has passed. Where it is dropped
    /// before, the request was aborted.
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        // Dropped first: what it holds goes while the request is in flight.
        #[pin]
        inner: B,
        passing: Option<Passing>,
    }
}

impl<B> ResponseBody<B> {
    #[inline]
    pub(crate) fn new(inner: B, passing: Option<Passing>) -> Self {
        Self { inner, passing }
    }
}

impl<B: Body> Body for ResponseBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    #[inline]
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        let Some(passing) = this.passing else { return this.inner.poll_frame(cx) };
        let running = passing.run();
        let polled = this.inner.as_mut().poll_frame(cx);
        running.returned();
        let polled = ready!(polled);
        if let Some(Ok(frame)) = &polled {
            passing.pass(frame.data_ref());
        }
        match polled {
            Some(Ok(_)) if !this.inner.is_end_stream() => {}
            // Dropped, it broke off.
            Some(Err(_)) => *this.passing = None,
            _ => passing.end(),
        }
        Poll::Ready(polled)
    }

    #[inline]
    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    #[inline]
    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[inline]
fn data_len<D: Buf>(frame: &Frame<D>) -> u64 {
    frame.data_ref().map_or(0, |data| data.remaining() as u64)
}
