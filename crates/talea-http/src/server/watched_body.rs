//! The body of a response, which notes when the client takes a piece.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ::axum::body::{Body, Bytes};
use bytes::Buf;
use http_body::{Frame, SizeHint};

use super::phase::ResponseGuard;

/// A body that notes when hyper polls it and when pieces are taken.
#[derive(Debug)]
pub(super) struct WatchedBody {
    body: Body,
    guard: Arc<ResponseGuard>,
}

/// A piece, dropped as soon as it is written. The request counts as in progress until the last
/// piece is dropped.
#[derive(Debug)]
pub(super) struct Piece {
    bytes: Bytes,
    guard: Arc<ResponseGuard>,
}

impl WatchedBody {
    pub(super) fn new(body: Body, guard: ResponseGuard) -> Self {
        guard.head_given();
        Self { body, guard: Arc::new(guard) }
    }
}

impl http_body::Body for WatchedBody {
    type Data = Piece;
    type Error = ::axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, ::axum::Error>>> {
        self.guard.polled();
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(
            frame.map(|frame| Ok(frame?.map_data(|bytes| Piece::new(bytes, self.guard.clone())))),
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
    fn new(bytes: Bytes, guard: Arc<ResponseGuard>) -> Self {
        guard.piece_given();
        Self { bytes, guard }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.guard.piece_taken();
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
