//! How many requests come in a time: so many at once, and one more after each interval.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::file::{Interval, RateSection};

const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Decides which requests are in time.
pub(super) struct RateLimit {
    interval: Duration,
    /// How far requests may be ahead of one after each interval.
    ahead: Duration,
    /// When the next request would come at that pace.
    next: Mutex<Instant>,
}

impl RateLimit {
    /// From the section; none if it has no interval.
    pub(super) fn new(section: &RateSection) -> Result<Option<Self>> {
        let interval = match &section.interval {
            None => return Ok(None),
            Some(Interval::Nanoseconds(nanoseconds)) => Duration::from_nanos(*nanoseconds),
            Some(Interval::Text(text)) => humantime::parse_duration(text)
                .with_context(|| format!("interval is {text}, expected a duration such as 1s"))?,
        };
        if interval.is_zero() {
            return Ok(None);
        }
        if interval > LONGEST {
            bail!("interval is more than a day, expected a day at most");
        }
        let Some(others) = section.burst.unwrap_or_default().checked_sub(1) else {
            bail!("burst must be at least 1; otherwise every request is rejected");
        };
        // The product is far from what an instant can be.
        let ahead = interval.saturating_mul(others);
        Ok(Some(Self { interval, ahead, next: Mutex::new(Instant::now()) }))
    }

    /// Counts a request, unless it comes too early.
    pub(super) fn admits(&self, now: Instant) -> bool {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let planned = (*next).max(now);
        let in_time = planned - now <= self.ahead;
        if in_time {
            *next = planned + self.interval;
        }
        in_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_come_at_once_and_one_more_after_each_interval() {
        let interval = Some(Interval::Text("1s".to_owned()));
        let pace = RateLimit::new(&RateSection { interval, burst: Some(3) }).unwrap().unwrap();
        let start = Instant::now();
        let kept = |seconds: f64, of: usize| {
            let now = start + Duration::from_secs_f64(seconds);
            (0..of).filter(|_| pace.admits(now)).count()
        };
        assert_eq!(kept(0.0, 10), 3);
        assert_eq!(kept(0.9, 10), 0);
        assert_eq!(kept(1.0, 10), 1);
        assert_eq!(kept(3.5, 10), 2);
        assert_eq!(kept(100.0, 10), 3, "no more than at first");
    }

    #[test]
    fn the_longest_pace_with_the_largest_burst_is_kept() {
        let interval = Some(Interval::Text("1day".to_owned()));
        let pace =
            RateLimit::new(&RateSection { interval, burst: Some(u32::MAX) }).unwrap().unwrap();
        assert!((0..1_000).all(|_| pace.admits(Instant::now())));
    }
}
