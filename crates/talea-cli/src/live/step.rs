//! The increases from one reading to the next one.

use std::time::{Duration, Instant};

use super::health::Health;
use super::marks::UnreadableRegions;
use super::requests::{Counts, Requests};
use super::source::Reading;

/// The most endpoints whose counts are kept while their region cannot be read.
const MOST_HIDDEN: usize = 10_000;

/// A reading, as far as steps need it.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    began: Instant,
    pub(crate) ended: Instant,
    pub(crate) requests: Requests,
    /// The latest counts of endpoints that are missing while a region cannot be read.
    hidden: Requests,
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
        let requests = Requests::of(&reading.families);
        let unreadable = UnreadableRegions::of(&reading.families);
        let known = before.into_iter().flat_map(|it| it.hidden.0.iter().chain(&it.requests.0));
        let is_hidden = |name: &str| unreadable.may_have(name) && !requests.0.contains_key(name);
        let hidden = known.filter(|(name, _)| is_hidden(name)).take(MOST_HIDDEN);
        let hidden = Requests(hidden.map(|(name, it)| (name.clone(), it.clone())).collect());
        Self {
            began: reading.began,
            ended: reading.ended,
            requests,
            hidden,
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
            let known = before.requests.0.get(name).or_else(|| before.hidden.0.get(name));
            let before = known.unwrap_or(&anew);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families;

    #[test]
    fn an_endpoint_of_a_region_that_could_not_be_read_counts_on_from_what_it_had() {
        let histogram = |route: &str, count: u64| {
            let name = "http_request_duration_seconds";
            let of = format!("method=\"GET\",route=\"{route}\",region=\"shop\"");
            format!(
                "# TYPE {name} histogram\n{name}_bucket{{{of},le=\"+Inf\"}} {count}\n\
                 {name}_sum{{{of}}} 0\n{name}_count{{{of}}} {count}\n"
            )
        };
        // Beside another region, which is served all the time.
        let up = |is_up: u8| {
            let name = "talea_agent_region_up";
            format!(
                "# TYPE {name} gauge\n{name}{{region=\"shop\"}} {is_up}\n{name}{{region=\"bar\"}} 1\n"
            )
        };
        // Of a region that is not there at all, the endpoint begins anew.
        for (between, expected) in [(up(0), 7.0), (String::new(), 1_007.0)] {
            let pages = [up(1) + &histogram("/a", 1_000), between.clone(), between];
            let pages = pages.into_iter().chain([up(1) + &histogram("/a", 1_007)]);
            let (mut last, mut grown): (Option<Moment>, _) = (None, 0.0);
            for (second, page) in (0..).zip(pages) {
                let families = families::read(page.as_bytes()).unwrap();
                let reading = Reading::recorded(Duration::from_secs(second), families);
                let now = Moment::of(&reading, last.as_ref());
                if let Some(before) = last.replace(now.clone()) {
                    let counts = Step::between(&before, &now).grown.0;
                    grown += counts.values().map(|it| it.times.durations.count).sum::<f64>();
                }
            }
            assert_eq!(grown, expected);
        }
    }
}
