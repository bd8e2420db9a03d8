//! A time limit for one request after another at the price of one timer.
//!
//! A timer that is set and cleared for each request costs a lock each time. Deadlines only ever move
//! later, so the timer may stay where it is: when it fires too early it is moved to the deadline of
//! the request that is under way then.
//!
//! As in tokio's own `timeout`, the timer is polled outside the budget of the task's turn
//! (`unconstrained`): work that always has bytes to read uses the budget up, and a timer within it would
//! then never fire.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

pub(super) struct TimeLimit {
    limit: Duration,
    /// None before the first wait, so that it is one of the runtime that waits.
    timer: Option<Pin<Box<Sleep>>>,
}

impl TimeLimit {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, timer: None }
    }

    /// Waits for the work; none when it takes longer than the limit.
    pub(super) async fn wait<T>(
        &mut self,
        mut work: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        let deadline = Instant::now() + self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            while pin!(unconstrained(timer.as_mut())).poll(context).is_ready() {
                if Instant::now() >= deadline {
                    return Poll::Ready(None);
                }
                timer.as_mut().reset(deadline);
            }
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(100);

    #[test]
    fn work_that_uses_up_its_turn_ends_at_the_limit_too() {
        let (send, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            runtime.unwrap().block_on(async {
                // As a read from a connection that always has bytes.
                let busy = pin!(async {
                    loop {
                        tokio::task::coop::consume_budget().await;
                    }
                });
                let waited: Option<()> = TimeLimit::new(Duration::ZERO).wait(busy).await;
                let _ = send.send(waited);
            });
        });
        assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok(None));
    }

    #[tokio::test(start_paused = true)]
    async fn each_wait_has_the_whole_limit() {
        for waits_before in [0, 4] {
            let mut limit = TimeLimit::new(LIMIT);
            for _ in 0..waits_before {
                assert_eq!(limit.wait(pin!(tokio::time::sleep(LIMIT / 2))).await, Some(()));
            }
            let begun = Instant::now();
            assert_eq!(limit.wait(pin!(std::future::pending::<()>())).await, None);
            assert_eq!(begun.elapsed(), LIMIT, "after {waits_before} waits");
        }
    }
}
