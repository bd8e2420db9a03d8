//! A count and its high-water mark in one word.
//!
//! Both halves change in one compare-and-swap, so no reader and no reset can
//! ever see a peak below the count, and no moment between two samples is lost.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use talea::Counter;

/// The upper 32 bits hold the peak, the lower 32 bits the count, both as `i32`.
///
/// The count may pass below zero for an instant: a thread that makes a task ready may be overtaken,
/// between changing the task and changing the tally, by the thread that polls it. So the count is
/// never too high.
///
/// Nothing else is published through this word, so relaxed order suffices.
#[derive(Debug, Default)]
pub(super) struct Tally(AtomicU64);

/// The values of a tally at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Level {
    pub(super) now: i32,
    pub(super) peak: i32,
}

impl Tally {
    pub(super) fn rise(&self) {
        self.change(|Level { now, peak }| Level { now: now + 1, peak: peak.max(now + 1) });
    }

    pub(super) fn fall(&self) {
        self.change(|Level { now, peak }| Level { now: now - 1, peak });
    }

    /// Sets the peak to the count of this moment.
    pub(super) fn reset_peak(&self) {
        self.change(|Level { now, .. }| Level { now, peak: now });
    }

    pub(super) fn read(&self) -> Level {
        unpack(self.0.load(Relaxed))
    }

    fn change(&self, change: impl Fn(Level) -> Level) {
        let mut seen = self.0.load(Relaxed);
        while let Err(newer) =
            self.0.compare_exchange_weak(seen, pack(change(unpack(seen))), Relaxed, Relaxed)
        {
            seen = newer;
        }
    }
}

fn pack(Level { now, peak }: Level) -> u64 {
    u64::from(peak as u32) << 32 | u64::from(now as u32)
}

fn unpack(word: u64) -> Level {
    Level { now: word as u32 as i32, peak: (word >> 32) as u32 as i32 }
}

/// The authoritative counts. Each snapshot copies the levels into the registry, so that a count and
/// its peak always belong together.
#[derive(Debug, Default)]
pub(super) struct Tallies {
    pub(super) alive: Tally,
    pub(super) ready: Tally,
    /// All that were ever spawned.
    pub(super) spawned: AtomicU64,
    /// That number in the registry, counted as it happens: a child made by `fork` has a copy of the count above, and
    /// would add what its parent adds too.
    pub(super) shown_spawned: Option<Counter>,
}

impl Tallies {
    pub(super) fn note_spawned(&self) {
        self.spawned.fetch_add(1, Relaxed);
        self.shown_spawned.iter().for_each(Counter::inc);
        self.alive.rise();
        self.ready.rise();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    #[test]
    fn a_peak_is_the_highest_count_since_its_reset() {
        for (case, changes, now, peak) in [
            ("a peak outlives the fall", "++-", 1, 2),
            ("a reset peak is the current count", "+++++-=", 4, 4),
            ("a count below zero leaves the peak alone", "-", -1, 0),
            ("a count is 0 again", "-+", 0, 0),
        ] {
            let tally = Tally::default();
            changes.chars().for_each(|change| match change {
                '+' => tally.rise(),
                '-' => tally.fall(),
                _ => tally.reset_peak(),
            });
            assert_eq!(tally.read(), Level { now, peak }, "{case}");
        }
    }

    #[test]
    fn resets_beside_changes_never_leave_a_peak_below_the_count() {
        let tally = Tally::default();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let changers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        for _ in 0..50_000 {
                            tally.rise();
                            tally.rise();
                            tally.fall();
                            tally.fall();
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    tally.reset_peak();
                    let level = tally.read();
                    assert!(level.peak >= level.now, "{level:?}");
                }
            });
            for changer in changers {
                changer.join().expect("a changer panicked");
            }
            done.store(true, Relaxed);
        });
        assert_eq!(tally.read().now, 0);
        tally.reset_peak();
        assert_eq!(tally.read(), Level { now: 0, peak: 0 });
    }
}
