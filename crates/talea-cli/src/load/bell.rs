//! Wakes a task, but not for what it does itself.
//!
//! A client and its connection are one task, in which they wake each other: the one has a request,
//! the other an answer. Each of these wakes would have the task run once more, to find that it has
//! seen to that already. So they only leave a mark, which the task looks at before it waits.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicU8,
    Ordering::{AcqRel, Acquire},
};
use std::task::{Wake, Waker};

/// The bell of a task.
#[derive(Debug)]
pub(super) struct Bell {
    state: AtomicU8,
    task: Waker,
}

/// The task waits: who rings wakes it.
const WAITS: u8 = 0;
/// The task is at work, and nobody has rung since it began to look.
const LOOKS: u8 = 1;
/// Somebody has rung: the task is at work, or was woken already.
const RUNG: u8 = 2;

impl Bell {
    /// That of a task which is at work.
    pub(super) fn new(task: &Waker) -> Arc<Self> {
        Arc::new(Self { state: AtomicU8::new(LOOKS), task: task.clone() })
    }

    /// Whether it is the bell of this task.
    pub(super) fn is_of(&self, task: &Waker) -> bool {
        self.task.will_wake(task)
    }

    /// The task begins to look at whatever it was rung for until now.
    pub(super) fn look(&self) {
        self.state.swap(LOOKS, AcqRel);
    }

    /// The task waits, unless the bell has rung since it began to look.
    pub(super) fn wait(&self) -> bool {
        self.state.compare_exchange(LOOKS, WAITS, AcqRel, Acquire).is_ok()
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(RUNG, AcqRel) == WAITS {
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
        let bell = Bell::new(&woken.clone().into());
        let waker = Waker::from(bell.clone());
        let times = || woken.0.load(SeqCst);

        waker.wake_by_ref();
        assert!(!bell.wait(), "it was rung for while it looked");
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
