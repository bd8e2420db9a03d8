//! A waker that ignores wakes which a task causes while it runs.
//!
//! A client and its connection are one task, in which they wake each other: the one has a request,
//! the other an answer. Each of these wakes would run the task once more for nothing. So they only
//! set a mark, which the task checks before it waits: the states are those of a parker.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicU8,
    Ordering::{AcqRel, Acquire},
};
use std::task::{Wake, Waker};

#[derive(Debug)]
pub(super) struct CoalescingWaker {
    state: AtomicU8,
    task: Waker,
}

/// The task waits: the next wake goes to it.
const PARKED: u8 = 0;
/// The task runs, and there was no wake since it began to poll.
const POLLING: u8 = 1;
/// There was a wake: the task runs, or was woken already.
const NOTIFIED: u8 = 2;

impl CoalescingWaker {
    /// The waker of a task that runs.
    pub(super) fn new(task: &Waker) -> Arc<Self> {
        Arc::new(Self { state: AtomicU8::new(POLLING), task: task.clone() })
    }

    pub(super) fn is_of(&self, task: &Waker) -> bool {
        self.task.will_wake(task)
    }

    /// The task begins to poll; earlier wakes are served by that.
    pub(super) fn look(&self) {
        self.state.swap(POLLING, AcqRel);
    }

    /// The task waits, unless there was a wake since it began to poll.
    pub(super) fn wait(&self) -> bool {
        self.state.compare_exchange(POLLING, PARKED, AcqRel, Acquire).is_ok()
    }
}

impl Wake for CoalescingWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(NOTIFIED, AcqRel) == PARKED {
            self.task.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn a_task_is_woken_once_and_only_while_it_waits() {
        let woken = Arc::new(Woken::default());
        let bell = CoalescingWaker::new(&woken.clone().into());
        let waker = Waker::from(bell.clone());
        let times = || woken.0.load(SeqCst);

        waker.wake_by_ref();
        assert!(!bell.wait(), "there was a wake while it polled");
        bell.look();
        assert_eq!((bell.wait(), times()), (true, 0));
        waker.wake_by_ref();
        waker.wake_by_ref();
        assert_eq!(times(), 1);
        bell.look();
        assert!(bell.wait());
        waker.wake();
        assert_eq!(times(), 2);
    }
}
