//! A future that counts when it is woken, polled and done.
//!
//! # Implementation details
//!
//! The inner future is polled with our own waker. It notes the wake and then forwards it, always,
//! to the waker that the runtime gave. A task is
//!
//! ```text
//!            wake                     poll returns Ready, or drop
//!   IDLE ───────────► READY      IDLE, READY ───────────► DONE
//!    ▲                  │
//!    └──────────────────┘
//!        a poll begins
//! ```
//!
//! A spawned task starts as READY: it waits for its first poll. While a poll
//! runs the task is IDLE, so a wake during the poll makes it READY again, as the
//! runtime will poll it again. A wake of a task that is READY or DONE changes no
//! count.
//!
//! Only a poll moves a task out of READY, and a task has one poll at a time.
//! Wakes come from any thread. The state decides only what is counted; wakes are
//! forwarded without looking at it, so no wake can be lost to a race here.
//!
//! N.B. Our waker holds the runtime's waker, which holds the task, which holds our waker. Dropping
//! the future takes the runtime's waker out, which breaks the cycle even if our waker is kept for
//! ever.

use super::tally::Tallies;
use atomic_waker::AtomicWaker;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};

const IDLE: u8 = 0;
const READY: u8 = 1;
const DONE: u8 = 2;

pin_project! {
    pub(super) struct Metered<F> {
        #[pin]
        future: F,
        task: Arc<Task>,
        // A waker of `task`, made once.
        waker: Waker,
    }

    impl<F> PinnedDrop for Metered<F> {
        fn drop(this: Pin<&mut Self>) {
            this.task.finish();
            drop(this.task.runtime.take());
        }
    }
}

impl<F> Metered<F> {
    pub(super) fn new(future: F, tallies: Arc<Tallies>) -> Self {
        tallies.note_spawned();
        let task =
            Arc::new(Task { state: AtomicU8::new(READY), runtime: AtomicWaker::new(), tallies });
        let waker = Waker::from(Arc::clone(&task));
        Metered { future, task, waker }
    }
}

impl<F: Future> Future for Metered<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.task.runtime.register(cx.waker());
        this.task.begin_poll();
        let polled = this.future.poll(&mut Context::from_waker(this.waker));
        if polled.is_ready() {
            this.task.finish();
        }
        polled
    }
}

struct Task {
    state: AtomicU8,
    runtime: AtomicWaker,
    tallies: Arc<Tallies>,
}

impl Task {
    fn begin_poll(&self) {
        // Not a plain swap: a future may be polled again after it is done.
        let was_ready = self.state.compare_exchange(READY, IDLE, Relaxed, Relaxed).is_ok();
        if was_ready {
            self.tallies.ready.fall();
        }
    }

    fn note_wake(&self) {
        let was_idle = self.state.compare_exchange(IDLE, READY, Relaxed, Relaxed).is_ok();
        if was_idle {
            self.tallies.ready.rise();
        }
    }

    /// Takes the task out of the counts, at its first call.
    fn finish(&self) {
        match self.state.swap(DONE, Relaxed) {
            DONE => return,
            READY => self.tallies.ready.fall(),
            _ => {}
        }
        self.tallies.alive.fall();
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.note_wake();
        self.runtime.wake();
    }
}
