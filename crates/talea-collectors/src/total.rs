//! Totals that somebody else keeps, and that a counter follows.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How far a counter follows a total that only grows.
#[derive(Debug, Default)]
pub(crate) struct Total(AtomicU64);

impl Total {
    /// By how much it has grown since. Snapshots may be taken side by side: all that it
    /// grew by is told once, to one of them.
    pub(crate) fn grown(&self, total: u64) -> u64 {
        total.saturating_sub(self.0.fetch_max(total, Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn what_a_total_grew_by_is_told_once_however_many_ask() {
        let (followed, total) = (Total::default(), AtomicU64::new(0));
        let told = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        // What another thread read may be more by now.
                        let seen = total.fetch_add(3, Relaxed) + 3;
                        told.fetch_add(followed.grown(seen), Relaxed);
                    }
                });
            }
        });
        assert_eq!(told.into_inner(), 120_000);
    }
}
