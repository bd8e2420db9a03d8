//! Windows: the observations of the last minutes.
//!
//! Counts only grow. So a reader that knows the counts at the beginning of a window can compute the
//! observations since. For each series it keeps the buckets at the beginning of the window, and the
//! observations of each of its sixty steps of at most ten seconds. Steps are of time and not of
//! scrapes, so that any number of scrapers see the same.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, SystemTime};

use crate::definition::Recent;
use crate::histogram::native_buckets::NativeBuckets;
use crate::snapshot::{FamilySnapshot, SeriesSnapshot, Snapshot};

/// Steps of a window.
const STEPS: u32 = 60;
const LONGEST_STEP: Duration = Duration::from_secs(10);
const SHORTEST_STEP: Duration = Duration::from_secs(1);

/// The windows of the summaries that a reader knows.
///
/// A [`Registry`](crate::Registry) has its own. Keep one where snapshots come from
/// elsewhere, and give it every snapshot before that is shown.
///
/// Memory for each series: its buckets, and at most 61 steps of 100 bytes and 16 for each
/// bucket that was counted in during the step.
#[derive(Debug, Default)]
pub struct Windows {
    /// By the family's name.
    families: Vec<Rings>,
    /// The latest time that a caller passed.
    now: Duration,
    /// How many snapshots it was given.
    round: u64,
    /// Buffers for the buckets of the current series, and for its recent observations.
    buckets: NativeBuckets,
    memory: NativeBuckets,
}

/// The windows of a family's series, in the order that these had the last time, and how long a
/// step of them is.
#[derive(Debug)]
struct Rings {
    name: String,
    step: Duration,
    series: Vec<Ring>,
}

/// The window of one series.
#[derive(Debug)]
struct Ring {
    /// The label text of the series.
    text: Vec<u8>,
    /// The buckets when the window began.
    before: NativeBuckets,
    /// The observations of each step since that had any, with the end of the step.
    steps: VecDeque<(Duration, NativeBuckets)>,
    /// The buckets at the end of the last step.
    latest: NativeBuckets,
    ended: Duration,
    /// When the series began to count.
    created: Option<SystemTime>,
    /// The last round that it was there, and which of the family's series it was.
    seen: u64,
    place: usize,
}

impl Windows {
    /// No windows yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts the quantiles of its summaries into a snapshot, and notes what they hold where
    /// a step is over. `now` is a time since any instant, the same for all calls; one that
    /// is before the last counts as that one. A series that was there before the first
    /// call, and is older than its window, counts from that call on.
    ///
    /// Cost: a look at each bucket of each summary.
    pub fn show(&mut self, snapshot: &mut Snapshot, now: Duration) {
        self.now = self.now.max(now);
        self.round += 1;
        // Both are sorted by name.
        let (mut at, count) = (0, snapshot.families().len());
        for n in 0..count {
            snapshot.fill_quantiles(n, |family, recent, shown| {
                let Self { families, .. } = self;
                at += families[at..]
                    .iter()
                    .take_while(|rings: &&Rings| rings.name.as_str() < family.name())
                    .count();
                if families.get(at).is_none_or(|rings| rings.name != family.name()) {
                    families.insert(at, Rings::new(family.name()));
                }
                self.family(at, family, recent, shown);
            });
        }
    }

    /// The summaries that it has seen: their names, and how often each should be shown at
    /// least, so that nothing of its window is lost.
    pub fn summaries(&self) -> impl Iterator<Item = (&str, Duration)> {
        self.families.iter().map(|rings| (rings.name.as_str(), rings.step))
    }

    /// Adds the quantiles of each series of one of the families, one series after the other.
    fn family(
        &mut self,
        at: usize,
        family: &FamilySnapshot<'_>,
        recent: &Recent,
        shown: &mut Vec<f64>,
    ) {
        let Self { families, now, round, buckets, memory } = self;
        let rings = &mut families[at];
        rings.step = recent.step();
        let (mut next, mut places) = (0, None);
        for (place, series) in family.all_series().enumerate() {
            if !series.native_into(buckets) {
                continue;
            }
            let found = rings.find(series.label_bytes(), next, &mut places, || {
                Ring::new(&series, buckets, recent, *now)
            });
            next = found + 1;
            let ring = &mut rings.series[found];
            (ring.seen, ring.place) = (*round, place);
            ring.move_on(&series, buckets, recent, *now, memory);
            let in_window = buckets.since(&ring.before, memory);
            shown.extend(
                recent
                    .quantiles
                    .iter()
                    .map(|&q| in_window.and_then(|found| found.quantile(q)).unwrap_or(f64::NAN)),
            );
        }
        if next < rings.series.len() || places.is_some() {
            rings.series.retain(|ring| ring.seen == *round);
            rings.series.sort_unstable_by_key(|ring| ring.place);
        }
    }
}

impl Rings {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), step: Duration::ZERO, series: Vec::new() }
    }

    /// The place of the window of a series: mostly `next`. If it is not there, it is looked up in
    /// `places` by its label text; if there is none, `new` is added at the end.
    fn find(
        &mut self,
        text: &[u8],
        next: usize,
        places: &mut Option<HashMap<Vec<u8>, usize>>,
        new: impl FnOnce() -> Ring,
    ) -> usize {
        if self.series.get(next).is_some_and(|ring| ring.text == text) {
            return next;
        }
        let places = places.get_or_insert_with(|| {
            self.series
                .iter()
                .enumerate()
                .map(|(n, ring): (usize, &Ring)| (ring.text.clone(), n))
                .collect()
        });
        *places.entry(text.to_vec()).or_insert_with(|| {
            self.series.push(new());
            self.series.len() - 1
        })
    }
}

impl Recent {
    /// The time that its quantiles are of.
    fn window(&self) -> Duration {
        Duration::from_secs(u64::from(self.seconds))
    }

    pub(crate) fn step(&self) -> Duration {
        (self.window() / STEPS).clamp(SHORTEST_STEP, LONGEST_STEP)
    }
}

impl Ring {
    fn new(
        series: &SeriesSnapshot<'_>,
        buckets: &NativeBuckets,
        recent: &Recent,
        now: Duration,
    ) -> Self {
        let created = series.created();
        // All that a young one holds is of its window.
        let age = created.and_then(|created| SystemTime::now().duration_since(created).ok());
        let is_young = age.is_none_or(|age| age <= recent.window());
        let before = if is_young { buckets.emptied() } else { buckets.clone() };
        let latest = before.clone();
        let (text, steps) = (series.label_bytes().to_vec(), VecDeque::new());
        Self { text, before, steps, latest, ended: now, created, seen: 0, place: 0 }
    }

    /// Ends the step, if it is over, and forgets those that the window has left.
    fn move_on(
        &mut self,
        series: &SeriesSnapshot<'_>,
        buckets: &NativeBuckets,
        recent: &Recent,
        now: Duration,
        memory: &mut NativeBuckets,
    ) {
        // Counted from 0 again.
        let began_anew = self.created != series.created();
        if began_anew || buckets != &self.latest && buckets.since(&self.latest, memory).is_none() {
            self.before = buckets.emptied();
            self.latest = buckets.emptied();
            self.steps.clear();
            self.created = series.created();
        }
        if now >= self.ended + recent.step() {
            let came = buckets.since(&self.latest, memory).filter(|came| came.count() > 0);
            self.steps.extend(came.map(|came| (now, came.clone())));
            self.latest.copy(buckets);
            self.ended = now;
        }
        let begin = now.saturating_sub(recent.window());
        while self.steps.front().is_some_and(|(ended, _)| *ended <= begin) {
            if let Some((_, left)) = self.steps.pop_front() {
                self.before.merge(&left);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Count, Opts, Registry, Summary};

    #[test]
    fn series_that_come_and_go_keep_their_own_windows() {
        let registry = Registry::for_test().unwrap();
        let opts = Opts::new("s", "Some.").quantiles(&[0.5]).schema(8);
        let family = registry.family::<Summary<Count>>(opts, &["x"]).unwrap();
        let mut windows = Windows::new();
        let mut lives: Vec<u64> = Vec::new();
        let rounds: u64 = if cfg!(miri) { 6 } else { 40 };
        for round in 0..rounds {
            if round % 3 == 2 {
                // One from the middle.
                let n = lives.remove(lives.len() / 2);
                assert!(family.remove_values(&[n.to_string()]));
            }
            for n in [round, 100 + round] {
                family.with_values(&[n.to_string()]).observe(10 + n);
                lives.push(n);
            }
            let mut snapshot = registry.snapshot();
            windows.show(&mut snapshot, Duration::from_secs(round));
            for n in &lives {
                let labels = [("x", &*n.to_string()), ("quantile", "0.5")];
                let median = snapshot.value("s", &labels).unwrap();
                assert!((median / (10 + n) as f64 - 1.0).abs() < 0.0014, "{n}: {median}");
            }
            // These, and the overflow series.
            assert_eq!(windows.families[0].series.len(), lives.len() + 1);
        }
    }
}
