//! The increases from one reading to the next one.

use std::time::{Duration, Instant};

use super::health::Health;
use super::requests::{Counts, Requests};
use super::source::Reading;

/// A reading, as far as steps need it.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    began: Instant,
    pub(crate) ended: Instant,
    pub(crate) requests: Requests,
    pub(crate) health: Health,
    pub(crate) processes: Option<usize>,
}

/// The increases between two readings.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) ended: Instant,
    /// From the middle of a reading to the middle of the next one.
    pub(crate) length: Duration,
    /// By how much that may be wrong.
    pub(crate) uncertainty: Duration,
    /// Also endpoints to which nothing came. Requests in flight are those at its end.
    pub(crate) grown: Requests,
    /// As it was at its end.
    pub(crate) health: Health,
}

impl Moment {
    /// A reading, after the one before.
    pub(crate) fn of(reading: &Reading, before: Option<&Self>) -> Self {
        let mut health = Health::of(&reading.families, reading.ended);
        before.into_iter().for_each(|before| health.follow(&before.health));
        Self {
            began: reading.began,
            ended: reading.ended,
            requests: Requests::of(&reading.families),
            health,
            processes: reading.processes,
        }
    }

    fn middle(&self) -> Instant {
        self.began + self.took() / 2
    }

    fn took(&self) -> Duration {
        self.ended.saturating_duration_since(self.began)
    }
}

impl Step {
    /// An endpoint that counts less than before began anew from 0.
    pub(crate) fn between(before: &Moment, now: &Moment) -> Self {
        let anew = Counts::default();
        let grown = now.requests.0.iter().map(|(name, counts)| {
            let before = before.requests.0.get(name).unwrap_or(&anew);
            (name.clone(), counts.since(before))
        });
        Self {
            ended: now.ended,
            length: now.middle().saturating_duration_since(before.middle()),
            uncertainty: (before.took() + now.took()) / 2,
            grown: Requests(grown.collect()),
            health: now.health.clone(),
        }
    }

    /// Adds the step that followed.
    pub(crate) fn extend(&mut self, next: Self) {
        let mut all = std::mem::take(&mut self.grown.0);
        // An endpoint that is gone has nothing in flight any more.
        all.values_mut().for_each(|counts| counts.in_flight = None);
        for (name, counts) in next.grown.0 {
            let sum = all.entry(name).or_default();
            sum.add(&counts);
            sum.in_flight = counts.in_flight;
        }
        *self = Self {
            ended: next.ended,
            length: self.length + next.length,
            // The ends of both together are two readings; the one between does not matter.
            uncertainty: self.uncertainty.max(next.uncertainty),
            grown: Requests(all),
            health: next.health,
        };
    }
}
