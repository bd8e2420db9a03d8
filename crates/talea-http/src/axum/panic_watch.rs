//! Notes panics that are caught between a handler and its meter.
//!
//! A layer that catches panics turns them into responses. The meter outside of it cannot see the
//! panic, so the handler's own frame notes it for the thread, and the meter reads that note at the
//! end of the same call or poll.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::axum::extract::Request;
use ::axum::handler::Handler;
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::request::arrival::Exchange;

/// A handler or a service whose meter is further out: notes its panics.
#[derive(Clone, Debug)]
pub(super) struct PanicWatch<H>(pub(super) H);

impl<H, T, S> Handler<T, S> for PanicWatch<H>
where
    H: Handler<T, S>,
    T: 'static,
    S: Send + 'static,
{
    type Future = PanicWatchFuture<H::Future>;

    #[inline]
    fn call(self, request: Request, state: S) -> Self::Future {
        PanicWatchFuture { future: note_panic(|| self.0.call(request, state)) }
    }
}

impl<S: Service<Request>> Service<Request> for PanicWatch<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = PanicWatchFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: Request) -> Self::Future {
        PanicWatchFuture { future: note_panic(|| self.0.call(request)) }
    }
}

pin_project! {
    /// A future that notes its panic for a meter further out.
    pub(super) struct PanicWatchFuture<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for PanicWatchFuture<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        note_panic(|| this.future.poll(cx))
    }
}

thread_local! {
    static PANICKED: Cell<bool> = const { Cell::new(false) };
}

/// The note of the enclosing meter, kept while a meter inside watches.
pub(super) struct OuterNote(bool);

#[inline]
pub(super) fn watch() -> OuterNote {
    OuterNote(PANICKED.replace(false))
}

impl OuterNote {
    /// Ends the watch. A panic that was noted belongs to the exchange, or, if that is closed, to
    /// the enclosing meter.
    #[inline]
    pub(super) fn end(&self, exchange: &mut Exchange) {
        if PANICKED.replace(self.0) && !exchange.note_caught_panic() {
            PANICKED.set(true);
        }
    }
}

#[inline]
fn note_panic<T>(call: impl FnOnce() -> T) -> T {
    struct NoteOnUnwind;
    impl Drop for NoteOnUnwind {
        fn drop(&mut self) {
            PANICKED.set(true);
        }
    }
    let note = NoteOnUnwind;
    let returned = call();
    std::mem::forget(note);
    returned
}
