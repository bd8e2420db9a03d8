//! Turns to compare a password with a hash, which is made to be slow.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// How many are compared at once: whoever guesses takes one core at most.
const AT_ONCE: usize = 1;
/// How many may wait for that, which bounds what they keep in memory.
const WAITING: usize = 64;

/// Who compares and who waits. One for a whole agent, whatever its file says from time to time.
pub(super) struct Guesses {
    at_once: Arc<Semaphore>,
    waiting: Semaphore,
}

/// May compare until it is dropped, on whatever thread.
pub(super) struct Turn {
    _permit: OwnedSemaphorePermit,
}

impl Default for Guesses {
    fn default() -> Self {
        Self { at_once: Arc::new(Semaphore::new(AT_ONCE)), waiting: Semaphore::new(WAITING) }
    }
}

impl Guesses {
    /// Waits for a turn; none where too many wait already.
    pub(super) async fn turn(&self) -> Option<Turn> {
        // Given back when the turn comes, or when whoever waits goes away.
        let _waiting: SemaphorePermit<'_> = self.waiting.try_acquire().ok()?;
        let permit = self.at_once.clone().acquire_owned().await.ok()?;
        Some(Turn { _permit: permit })
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn one_has_a_turn_so_many_wait_and_the_rest_are_refused() {
        let guesses = Guesses::default();
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(Some(first)) = Box::pin(guesses.turn()).as_mut().poll(&mut cx) else {
            panic!("the first has its turn at once");
        };
        let mut waiting: Vec<_> = (0..WAITING).map(|_| Box::pin(guesses.turn())).collect();
        assert!(waiting.iter_mut().all(|turn| turn.as_mut().poll(&mut cx).is_pending()));
        assert!(matches!(Box::pin(guesses.turn()).as_mut().poll(&mut cx), Poll::Ready(None)));
        // One who goes away leaves the place to another.
        waiting.pop();
        let mut late = Box::pin(guesses.turn());
        assert!(late.as_mut().poll(&mut cx).is_pending());
        drop(first);
        assert!(matches!(waiting[0].as_mut().poll(&mut cx), Poll::Ready(Some(_))));
    }
}
