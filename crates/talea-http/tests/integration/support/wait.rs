//! Waiting for a condition.

use std::time::{Duration, Instant};

use tokio::time::sleep;

/// The time that anything may take on a busy machine.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

pub(crate) async fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < LONGEST, "waited in vain for: {what}");
        sleep(Duration::from_millis(1)).await;
    }
}
