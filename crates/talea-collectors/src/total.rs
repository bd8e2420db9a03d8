//! A counter that follows a total which somebody else keeps.

use std::sync::{Mutex, PoisonError};
use talea::FloatCounter;

/// Adds to a counter what a total has grown by since it was last read.
#[derive(Debug)]
pub(crate) struct Total {
    counter: FloatCounter,
    // Snapshots may run side by side: who holds this adds.
    reached: Mutex<f64>,
}

impl Total {
    pub(crate) fn new(counter: FloatCounter) -> Total {
        Total { counter, reached: Mutex::new(0.0) }
    }

    /// Brings the counter up to `total`. A total that a slower reader brings late
    /// is behind already and adds nothing.
    pub(crate) fn reach(&self, total: f64) {
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        if total > *reached {
            self.counter.add(total - *reached);
            *reached = total;
        }
    }
}
