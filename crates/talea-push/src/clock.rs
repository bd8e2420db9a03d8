//! The times of collections, which ascend though the system's clock may not.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// How far the clock can be set back without a gap: receivers refuse samples that are further in the
/// future than ten minutes, so what was collected then is not there either.
const MOST_AHEAD: i64 = 600_000;

/// The time of the newest sample that a receiver took.
#[derive(Debug)]
pub(crate) struct Clock {
    accepted: AtomicI64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { accepted: AtomicI64::new(i64::MIN) }
    }

    /// Notes that a receiver took samples of a time, if it did.
    pub(crate) fn accepted(&self, time: i64, did: bool) {
        if did {
            self.accepted.fetch_max(time, Relaxed);
        }
    }

    /// The time of a collection at `now`, all in milliseconds since 1970, if the last one was at `last`. It is
    /// later than each that the receiver took, and than the last one unless the clock was set back by
    /// more than that receiver would have taken.
    pub(crate) fn next(&self, now: i64, last: i64) -> i64 {
        let accepted = self.accepted.load(Relaxed);
        let is_near = last.saturating_sub(now) <= MOST_AHEAD;
        let floor = if is_near { last.max(accepted) } else { accepted };
        now.max(floor.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_ascend_as_a_receiver_takes_them() {
        const HOUR: i64 = 3_600_000;
        for (what, accepted, now, last, expected) in [
            ("the first", i64::MIN, 5, i64::MIN, 5),
            ("the next", 5, 9, 5, 9),
            ("the same millisecond", 5, 5, 5, 6),
            ("a second back", 5_000, 4_000, 5_000, 5_001),
            ("a second back, while all waits", i64::MIN, 4_000, 5_000, 5_001),
            ("an hour back after what was taken", HOUR, 5, HOUR, HOUR + 1),
            ("back from an hour ahead, which was refused", 5, 9, HOUR, 9),
        ] {
            let clock = Clock::new();
            clock.accepted(accepted, true);
            clock.accepted(HOUR * 9, false);
            assert_eq!(clock.next(now, last), expected, "{what}");
        }
    }
}
