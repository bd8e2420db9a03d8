//! The bodies of a call: messages are counted as they pass, and the trailers have the status.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::messages::MessageCount;
use crate::request::bodies::RequestBody as CountedBody;
use crate::request::call::Call;

pin_project! {
    /// A call's request body whose messages are counted as they pass.
    #[derive(Debug)]
    pub struct RequestBody<B> {
        #[pin]
        pub(super) inner: CountedBody<B>,
        pub(super) messages: MessageCount,
    }
}

impl<B: Body<Data = Bytes>> Body for RequestBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    #[inline]
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        let polled = ready!(this.inner.poll_frame(cx));
        if let Some(Ok(frame)) = &polled {
            this.messages.pass(frame.data_ref().map_or(&[], |data| data));
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
    /// A call's response body, which ends the call with the status in its trailers. If it is dropped
    /// before, the call counts as cancelled, or as past its deadline.
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        // Dropped first, so that its state is freed while the call is in flight.
        #[pin]
        pub(super) inner: B,
        pub(super) messages: MessageCount,
        // `None` if the call has ended with the head of the response, or is not metered.
        pub(super) call: Option<Call>,
        // The status if the body fails.
        pub(super) failure: u16,
    }
}

impl<B: Body<Data = Bytes>> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    #[inline]
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut this = self.project();
        let Some(call) = this.call else { return this.inner.poll_frame(cx) };
        let guard = call.call();
        let polled = this.inner.as_mut().poll_frame(cx);
        guard.returned();
        let polled = ready!(polled);
        match &polled {
            Some(Ok(frame)) => {
                let data: &[u8] = frame.data_ref().map_or(&[], |data| data);
                this.messages.pass(data);
                call.add(data.len() as u64);
                // A reader asks for nothing after trailers, or if the body says that it has ended.
                if frame.is_trailers() || this.inner.is_end_stream() {
                    call.end_body(frame.trailers_ref());
                }
            }
            Some(Err(_)) => call.fail(*this.failure),
            None => call.end_body(None),
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
