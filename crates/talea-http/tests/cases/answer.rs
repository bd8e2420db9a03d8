//! Bodies of responses, good and bad.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Body, Frame, SizeHint};

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Answer = UnsyncBoxBody<Bytes, io::Error>;

/// The bytes of a piece of a streamed body.
pub(crate) const PIECE: u64 = 1_000;

/// How a streamed body ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    Well,
    Fails,
    Panics,
}

/// A body that comes piece by piece, and after each has to be waited for.
pub(crate) struct Pieces {
    left: u64,
    says_length: bool,
    ends: Ends,
    waits: bool,
}

impl Pieces {
    pub(crate) fn new(pieces: u64, ends: Ends) -> Self {
        Self { left: pieces, says_length: false, ends, waits: false }
    }

    pub(crate) fn of_known_length(pieces: u64) -> Self {
        Self { says_length: true, ..Self::new(pieces, Ends::Well) }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.waits = !self.waits;
        if self.waits {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.left > 0 {
            self.left -= 1;
            let piece = Bytes::from_static(&[b'x'; PIECE as usize]);
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match self.ends {
            Ends::Well => Poll::Ready(None),
            Ends::Fails => Poll::Ready(Some(Err(io::Error::other("on purpose")))),
            Ends::Panics => panics(),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.says_length && self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        match self.says_length {
            true => SizeHint::with_exact(self.left * PIECE),
            false => SizeHint::default(),
        }
    }
}

/// A body in memory.
pub(crate) fn whole(bytes: u64) -> Answer {
    Full::from(vec![b'x'; bytes as usize]).map_err(|never| match never {}).boxed_unsync()
}

pub(crate) fn empty() -> Answer {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

pub(crate) fn pieces(pieces: Pieces) -> Answer {
    pieces.boxed_unsync()
}

pub(crate) fn boxed<B>(body: B) -> Answer
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
