//! The body of a response: whole, or piece by piece.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use super::stream::{ScrapeStream, watch};

/// The body of an [`Exposition`](crate::Exposition)'s response. Dropping it frees its
/// snapshot at once.
pub struct ExpositionBody {
    next: Option<Bytes>,
    rest: Option<RemainingPieces>,
}

/// The pieces that are not encoded yet.
struct RemainingPieces {
    stream: Arc<ScrapeStream>,
    /// The task that encodes the next piece while the one before is sent.
    encoding: JoinHandle<io::Result<(Bytes, bool)>>,
    runtime: Handle,
    /// Aborted when this is dropped.
    _watching: JoinSet<()>,
}

impl ExpositionBody {
    pub(super) fn whole(piece: Bytes) -> Self {
        Self { next: Some(piece), rest: None }
    }

    /// A body that begins with a piece and goes on with the stream's. Its client may take
    /// `patience` for a piece and has until `until` for all of them. Needs a tokio runtime.
    pub(super) fn streamed(
        first: Bytes,
        stream: Arc<ScrapeStream>,
        patience: Duration,
        until: Instant,
    ) -> Self {
        let runtime = Handle::current();
        let mut watching = JoinSet::new();
        watching.spawn_on(watch(Arc::downgrade(&stream), patience, until), &runtime);
        let encoding = encode(&runtime, &stream);
        let rest = RemainingPieces { stream, encoding, runtime, _watching: watching };
        Self { next: Some(first), rest: Some(rest) }
    }
}

impl RemainingPieces {
    /// The next piece, and whether there is another after it.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(Bytes, bool)>> {
        let next = ready!(Pin::new(&mut self.encoding).poll(cx));
        let next = next.unwrap_or_else(|error| Err(io::Error::other(error)));
        if let Ok((piece, more)) = &next {
            self.stream.note_taken(piece.len());
            if *more {
                self.encoding = encode(&self.runtime, &self.stream);
            }
        }
        Poll::Ready(next)
    }
}

fn encode(runtime: &Handle, stream: &Arc<ScrapeStream>) -> JoinHandle<io::Result<(Bytes, bool)>> {
    let stream = Arc::clone(stream);
    runtime.spawn_blocking(move || stream.next())
}

impl Body for ExpositionBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(next) = self.next.take() {
            return Poll::Ready(Some(Ok(Frame::data(next))));
        }
        let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
        let next = ready!(rest.poll_piece(cx));
        if !matches!(next, Ok((_, true))) {
            self.rest = None;
        }
        Poll::Ready(Some(next.map(|(piece, _)| Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.next.is_none() && self.rest.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let len = self.next.as_ref().map_or(0, |next| next.len() as u64);
        match self.rest {
            None => SizeHint::with_exact(len),
            Some(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for ExpositionBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpositionBody").finish_non_exhaustive()
    }
}
