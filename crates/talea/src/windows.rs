//! Windows: what was observed in the last minutes.
//!
//! Observations only ever add. So what a reader needs to tell what there was lately is
//! what there was before: it keeps, of each series, the buckets at the beginning of the
//! window and what came in each of its steps, of which there are sixty, of ten seconds at
//! most. Steps are of time and not of scrapes, so that however many scrapers there are,
//! they see the same.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, SystemTime};

use crate::definition::Recent;
use crate::native_buckets::NativeBuckets;
use crate::snapshot::{FamilySnapshot, SeriesSnapshot, Snapshot};

/// Steps of a window.
const STEPS: u32 = 60;
/// The longest step.
const LONGEST_STEP: Duration = Duration::from_secs(10);
/// The shortest.
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
    /// By the family's name, then by the series' label text.
    families: HashMap<String, Rings>,
    /// The latest time that it was told.
    now: Duration,
    /// How many snapshots it was given.
    round: u64,
    /// The buckets of the series that it looks at, and what was observed lately.
    buckets: NativeBuckets,
    memory: NativeBuckets,
}

/// The windows of a family's series, by their label text, and how long a step of them is.
#[derive(Debug, Default)]
struct Rings {
    step: Duration,
    series: HashMap<Vec<u8>, Ring>,
}

/// The window of one series.
#[derive(Debug)]
struct Ring {
    /// What there was when the window began.
    before: NativeBuckets,
    /// What came in each step since, where anything did, and when the step ended.
    steps: VecDeque<(Duration, NativeBuckets)>,
    /// What there was at the end of the last step.
    latest: NativeBuckets,
    ended: Duration,
    /// When the series began to count.
    created: Option<SystemTime>,
    /// The last round that it was there.
    seen: u64,
}

impl Windows {
    /// None yet.
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
        let count = snapshot.families().len();
        for n in 0..count {
            snapshot.put_quantiles(n, |family, recent, shown| self.family(family, recent, shown));
        }
    }

    /// The summaries that it has seen: their names, and how often each should be shown at
    /// least, so that nothing of its window is lost.
    pub fn summaries(&self) -> impl Iterator<Item = (&str, Duration)> {
        self.families.iter().map(|(name, rings)| (name.as_str(), rings.step))
    }

    /// Adds the quantiles of each series of a family, one series after the other.
    fn family(&mut self, family: &FamilySnapshot<'_>, recent: &Recent, shown: &mut Vec<f64>) {
        let Self { families, now, round, buckets, memory } = self;
        let Rings { step, series: rings } = match families.get_mut(family.name()) {
            Some(rings) => rings,
            None => families.entry(family.name().to_owned()).or_default(),
        };
        *step = recent.step();
        let mut seen = 0;
        for series in family.all_series() {
            if !series.native_into(buckets) {
                continue;
            }
            let text = series.label_bytes();
            let ring = match rings.get_mut(text) {
                Some(ring) => ring,
                None => {
                    let new = Ring::new(&series, buckets, recent, *now);
                    rings.entry(text.to_vec()).or_insert(new)
                }
            };
            seen += usize::from(ring.seen != *round);
            ring.seen = *round;
            ring.move_on(&series, buckets, recent, *now, memory);
            let lately = buckets.since(&ring.before, memory);
            let quantile = |&q| lately.and_then(|lately| lately.quantile(q)).unwrap_or(f64::NAN);
            shown.extend(recent.quantiles.iter().map(quantile));
        }
        if seen < rings.len() {
            rings.retain(|_, ring| ring.seen == *round);
        }
    }
}

impl Recent {
    /// The time that its quantiles are of.
    fn window(&self) -> Duration {
        Duration::from_secs(u64::from(self.seconds))
    }

    /// How long a step of the window is.
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
        Self { before, steps: VecDeque::new(), latest, ended: now, created, seen: 0 }
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
        let has_grown =
            |latest, memory| buckets == latest || buckets.since(latest, memory).is_some();
        // Counted from 0 again.
        if self.created != series.created() || !has_grown(&self.latest, memory) {
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
