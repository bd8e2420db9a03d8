//! The body of a response: whole, or piece by piece.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ::axum::body::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, sleep_until};

use super::piece::Pieces;

/// How soon it is tried again to give up a scrape while a piece of it is made.
const AGAIN: Duration = Duration::from_millis(100);

/// The body of an [`Exposition`](crate::Exposition)'s response. Dropping it frees its
/// snapshot at once.
pub struct ExpositionBody {
    next: Option<Bytes>,
    rest: Option<Rest>,
}

/// What is not made yet.
struct Rest {
    shared: Arc<Shared>,
    making: Option<JoinHandle<io::Result<(Bytes, bool)>>>,
    runtime: Handle,
    watch: AbortHandle,
}

/// What the body shares with who makes a piece of it and who watches its progress.
struct Shared {
    /// Locked while a piece is made; `None` when there is none left, or the scrape was
    /// given up.
    source: Mutex<Option<Box<dyn Pieces>>>,
    /// When the last piece was handed over.
    progress: Mutex<Instant>,
}

impl ExpositionBody {
    pub(super) fn of_text(text: &'static str) -> Self {
        Self { next: Some(Bytes::from_static(text.as_bytes())), rest: None }
    }

    /// One that begins with a piece and goes on with what else the source has.
    pub(super) fn new(
        first: Bytes,
        source: Box<dyn Pieces>,
        patience: Duration,
        until: Instant,
    ) -> Self {
        let rest = source.has_more().then(|| Rest::new(source, patience, until));
        Self { next: Some(first), rest }
    }
}

impl Rest {
    /// Needs a tokio runtime.
    fn new(source: Box<dyn Pieces>, patience: Duration, until: Instant) -> Self {
        let source = Mutex::new(Some(source));
        let shared = Arc::new(Shared { source, progress: Mutex::new(Instant::now()) });
        let runtime = Handle::current();
        // A body is not polled while the client takes nothing, so it cannot see to it
        // itself.
        let watch = runtime.spawn(watch(Arc::downgrade(&shared), patience, until));
        Self { shared, making: None, watch: watch.abort_handle(), runtime }
    }

    /// The next piece, and whether there is another behind it.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(Bytes, bool)>> {
        let Self { shared, making, runtime, .. } = self;
        let making = making.get_or_insert_with(|| {
            let shared = Arc::clone(shared);
            runtime.spawn_blocking(move || shared.next())
        });
        let made = ready!(Pin::new(making).poll(cx));
        self.making = None;
        *self.shared.progress() = Instant::now();
        Poll::Ready(made.unwrap_or_else(|error| Err(io::Error::other(error))))
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

impl Shared {
    fn next(&self) -> io::Result<(Bytes, bool)> {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(pieces) = source.as_mut() else {
            let told = "the scrape was given up, because the client was too slow";
            return Err(io::Error::new(io::ErrorKind::TimedOut, told));
        };
        let piece = pieces.next()?;
        let more = pieces.has_more();
        if !more {
            // Its memory is for the next scrape, however long the last piece takes.
            *source = None;
        }
        Ok((piece, more))
    }

    /// Frees what is left of the scrape; false while a piece of it is made.
    fn give_up(&self) -> bool {
        match self.source.try_lock() {
            Ok(mut source) => *source = None,
            Err(TryLockError::Poisoned(source)) => *source.into_inner() = None,
            Err(TryLockError::WouldBlock) => return false,
        }
        true
    }

    fn progress(&self) -> MutexGuard<'_, Instant> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives the scrape up when its client takes too long, for a piece or for all.
async fn watch(shared: Weak<Shared>, patience: Duration, until: Instant) {
    loop {
        // Only while it looks, so that a body that is dropped is freed.
        let Some(watched) = shared.upgrade() else { return };
        let now = Instant::now();
        let mut due = (*watched.progress() + patience).min(until);
        if due <= now {
            if watched.give_up() {
                return;
            }
            due = now + AGAIN;
        }
        drop(watched);
        sleep_until(due).await;
    }
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
        let made = ready!(rest.poll_piece(cx));
        if !matches!(made, Ok((_, true))) {
            self.rest = None;
        }
        Poll::Ready(Some(made.map(|(piece, _)| Frame::data(piece))))
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
