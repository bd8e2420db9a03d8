//! Bodies whose bytes are counted as they pass.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::aborted_body;
use super::end::ResponseTransfer;
use super::request_size::RequestBytes;

pin_project! {
    /// A request's body whose bytes are counted as they are read.
    #[derive(Debug)]
    pub struct RequestBody<B> {
        #[pin]
        pub(crate) inner: B,
        pub(crate) count: Option<RequestBytes>,
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
        match (this.count, &polled) {
            (Some(count), Some(Ok(frame))) => count.add(data_len(frame)),
            (_, Some(Err(_))) => aborted_body::note(),
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
    /// A response's body that ends its request when it has passed. If it is dropped earlier, the
    /// request counts as aborted.
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        // Dropped first, so that its state is freed while the request is in flight.
        #[pin]
        pub(crate) inner: B,
        pub(crate) transfer: Option<ResponseTransfer>,
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
        let Some(transfer) = this.transfer else { return this.inner.poll_frame(cx) };
        let call = transfer.exchange.call();
        let polled = this.inner.as_mut().poll_frame(cx);
        call.returned();
        let polled = ready!(polled);
        if let Some(Ok(frame)) = &polled {
            transfer.add(frame.data_ref());
        }
        match &polled {
            // A server asks for nothing after trailers.
            Some(Ok(frame)) if !frame.is_trailers() && !this.inner.is_end_stream() => {}
            Some(Err(_)) => transfer.fail(),
            _ => transfer.end(),
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
