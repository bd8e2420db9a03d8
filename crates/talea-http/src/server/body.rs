//! The body of a response, which notes when the client has taken a piece of it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ::axum::body::{Body, Bytes};
use bytes::Buf;
use http_body::{Frame, SizeHint};

use super::phase::Answering;

/// A body that notes what the client takes of it.
#[derive(Debug)]
pub(super) struct WatchedBody {
    body: Body,
    answering: Arc<Answering>,
}

/// A piece, dropped as soon as it is written. The request counts as being answered until the last
/// piece is dropped.
#[derive(Debug)]
pub(super) struct Piece {
    bytes: Bytes,
    answering: Arc<Answering>,
}

impl WatchedBody {
    pub(super) fn new(body: Body, answering: Answering) -> Self {
        answering.answered();
        Self { body, answering: Arc::new(answering) }
    }
}

impl http_body::Body for WatchedBody {
    type Data = Piece;
    type Error = ::axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, ::axum::Error>>> {
        self.answering.asked();
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(
            frame.map(|frame| {
                Ok(frame?.map_data(|bytes| Piece::new(bytes, self.answering.clone())))
            }),
        )
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Piece {
    fn new(bytes: Bytes, answering: Arc<Answering>) -> Self {
        answering.gave();
        Self { bytes, answering }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.answering.taken();
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, len: usize) {
        self.bytes.advance(len);
    }
}
