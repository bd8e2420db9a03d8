//! Bodies of responses: whole, in pieces, and failing.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use axum::http::HeaderMap;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, SizeHint};

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type BoxBody = UnsyncBoxBody<Bytes, io::Error>;

pub(crate) const PIECE: u64 = 1_000;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Complete,
    /// The last frame is one of trailers.
    Trailers,
    Error,
    Panic,
}

/// A body in pieces, which is pending before each.
pub(crate) struct Pieces {
    left: u64,
    states_length: bool,
    end: End,
    is_pending: bool,
}

impl Pieces {
    pub(crate) fn new(pieces: u64, end: End) -> Self {
        Self { left: pieces, states_length: false, end, is_pending: false }
    }

    pub(crate) fn of_known_length(pieces: u64) -> Self {
        Self { states_length: true, ..Self::new(pieces, End::Complete) }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.is_pending = !self.is_pending;
        if self.is_pending {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.left > 0 {
            self.left -= 1;
            let piece = Bytes::from_static(&[b'x'; PIECE as usize]);
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match self.end {
            End::Complete => Poll::Ready(None),
            End::Trailers => {
                self.end = End::Complete;
                Poll::Ready(Some(Ok(Frame::trailers(HeaderMap::new()))))
            }
            End::Error => Poll::Ready(Some(Err(io::Error::other("on purpose")))),
            End::Panic => panics(),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.states_length && self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        match self.states_length {
            true => SizeHint::with_exact(self.left * PIECE),
            false => SizeHint::default(),
        }
    }
}

pub(crate) fn whole(bytes: u64) -> BoxBody {
    boxed(Full::from(vec![b'x'; bytes as usize]))
}

pub(crate) fn boxed<B>(body: B) -> BoxBody
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(io::Error::other).boxed_unsync()
}

/// Panics, without the backtraces that the hook would print by the thousand.
pub(crate) fn panics() -> ! {
    std::panic::resume_unwind(Box::new("on purpose"))
}
