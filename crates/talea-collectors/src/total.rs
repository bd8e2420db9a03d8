//! External totals that a counter follows.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How far a counter follows a total that only grows.
#[derive(Debug, Default)]
pub(crate) struct Total(AtomicU64);

impl Total {
    /// The growth since the last call. If snapshots are concurrent, each growth is returned once,
    /// to one of them.
    pub(crate) fn grown(&self, total: u64) -> u64 {
        total.saturating_sub(self.0.fetch_max(total, Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn each_growth_is_returned_once_to_concurrent_callers() {
        let (followed, total) = (Total::default(), AtomicU64::new(0));
        let all_growth = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        // Another thread may have read a higher total.
                        let seen = total.fetch_add(3, Relaxed) + 3;
                        all_growth.fetch_add(followed.grown(seen), Relaxed);
                    }
                });
            }
        });
        assert_eq!(all_growth.into_inner(), 120_000);
    }
}
